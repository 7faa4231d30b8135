"""Four synthetic task families that mirror the paper's suite in miniature (docs/nano.md)."""

from __future__ import annotations

from broadreach.tasks.nano.chain import NanoChain
from broadreach.tasks.nano.choice import NanoChoice
from broadreach.tasks.nano.context import NanoContext
from broadreach.tasks.nano.countdown import NanoCountdown

NANO_TASKS: dict[str, type] = {
    "nano-chain": NanoChain,
    "nano-choice": NanoChoice,
    "nano-context": NanoContext,
    "nano-countdown": NanoCountdown,
}
"""Task name -> class; each is constructed without arguments."""
