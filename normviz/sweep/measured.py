"""What a worker says of one cell. Torch-free, and small enough to travel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..events import Diverged, Started, Step

Status = Literal["finished", "diverged", "stopped", "failed"]


@dataclass(frozen=True)
class Measured:
    """A cell's run as it ended.

    status   finished, diverged, stopped (early: `message` says why) or failed (likewise)
    seconds  from building the model to the last step
    """

    status: Status
    started: Started | None = None
    steps: list[Step] = field(default_factory=list)
    bad: Diverged | None = None
    message: str | None = None
    seconds: float = 0.0
