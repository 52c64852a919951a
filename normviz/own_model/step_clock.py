"""Times the steps of a training loop without a wait for its device."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch


class StepClock:
    """On a CPU the time of this thread, because other work on the machine does not count. A CUDA GPU works
    while the host goes on, so a step begins and ends with an event on its stream, which is read once the GPU
    has come there. On other devices the host's time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self._ended = deque[tuple[bool, Any, Any]]()
        self.begin()

    def begin(self) -> None:
        """A step begins."""
        self._began = self._now()

    def end(self, recorded: bool) -> Iterator[tuple[bool, float]]:
        """A step ends. Yields the steps whose time is known since the last call: whether each was `recorded`,
        and its seconds."""
        self._ended.append((recorded, self._began, self._now()))
        while self._ended and self._is_over(self._ended[0][2]):
            was_recorded, began, ended = self._ended.popleft()
            on_cuda = self.device.type == "cuda"  # whose events tell milliseconds
            yield was_recorded, began.elapsed_time(ended) / 1e3 if on_cuda else ended - began

    def _now(self) -> Any:
        if self.device.type != "cuda":
            return self._clock()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def _is_over(self, moment: Any) -> bool:
        return self.device.type != "cuda" or moment.query()
