"""A real headless Chromium, driven over its debugging pipe (no socket, no driver, nothing to install but itself)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
]

NOISE = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page in one browser; use it in a `with` block."""

    def __enter__(self) -> Browser:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.events: list[dict[str, Any]] = []
        self._number, self._rest = 0, b""
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        command = f'exec "$@" 3<&{their_in} 4>&{their_out}'
        program = [str(chromium()), f"--user-data-dir={self.profile.name}", *FLAGS]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", *program],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        target = self._call("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("Browser.close", {}, None)
        except (OSError, TimeoutError):
            self._process.kill()
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)
        self.profile.cleanup()

    def call(self, method: str, **parameters: Any) -> Any:
        """One command to the page; its result."""
        return self._call(method, parameters, self._session)

    def open(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Load a file at a screen width in a colour scheme and wait until it has loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        deadline = time.monotonic() + 60
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read(deadline)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, key: str) -> None:
        """One key of the keyboard: "Tab" or "Enter"."""
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def complaints(self) -> list[dict[str, Any]]:
        """What the page has said on its console since it was opened."""
        return [event for event in self.events if event["method"] in NOISE]

    def fetched(self) -> list[str]:
        """What the page has asked for since it was opened, its own data left out."""
        asked = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]

    def tab_to_summary(self) -> None:
        """Tab until a lid that opens has the focus; after 60 keys it gives up."""
        for _ in range(60):
            self.press("Tab")
            if self.evaluate("document.activeElement.tagName") == "SUMMARY":
                break

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _call(self, method: str, parameters: dict[str, Any], session: str | None) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer in a minute")
            block = os.read(self._in, 1 << 20)
            if not block:
                raise OSError("Chromium has ended")
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message
