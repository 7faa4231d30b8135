"""Whether the Hugging Face Hub can be reached, asked once and shortly: its client retries for half a minute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PROBE_SECONDS = 5.0


def unreachable() -> str | None:
    """Why the Hub does not answer, in a few words; None where it does (any answer counts)."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        get_session().head(constants.ENDPOINT, timeout=PROBE_SECONDS)
    except Exception as error:  # the client's own kinds, those of its transport, and of the operating system
        reason = " ".join(str(error).split())[:120]
        return f"{constants.ENDPOINT} does not answer: {type(error).__name__}{': ' if reason else ''}{reason}"
    return None


@contextmanager
def offline() -> Iterator[None]:
    """The Hub's clients use what they have cached and ask nobody, until the block ends."""
    import datasets
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before
