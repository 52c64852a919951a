"""A finished run in one object: what the terminal prints, exports and notebooks read. Torch-free."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .catalog import PROBES
from .config import RunConfig
from .events import Diverged, Edited, Event, Finished, Started, Step
from .verdict import Verdict, diverged, final_loss, judge


@dataclass
class Result:
    """What a run said, gathered while it says it: feed it events with `take`."""

    started: Started | None = None
    config: RunConfig | None = None
    steps: list[Step] = field(default_factory=list)
    bad: Diverged | None = None
    status: str = "stopped"
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    def take(self, event: Event) -> None:
        """Note one event. The clock starts at Started, so it times training alone."""
        match event:
            case Started():
                self.started, self.config, self.began = event, event.config, time.perf_counter()
            case Edited():
                self.config = event.config
            case Step():
                self.steps.append(event)
            case Diverged():
                self.bad = event
            case Finished():
                self.status = "diverged" if self.bad else "finished"
        self.seconds = time.perf_counter() - self.began

    @property
    def losses(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """[n] losses in nats."""
        return np.array([step.loss for step in self.steps], dtype=np.float64)

    @property
    def verdict(self) -> Verdict:
        """What came of it."""
        assert self.started is not None
        if self.bad:
            return diverged(self.bad.step, self.bad.layer, self.bad.where)
        if self.status == "stopped":
            return Verdict("stopped", f"stopped after {len(self.steps)} steps")
        steps = self.started.config.steps
        return judge(self.losses, steps, self.started.chance, self.started.floor)

    def as_json(self, at: Collection[int]) -> dict[str, Any]:
        """The result as plain JSON values; numbers that are not finite are None."""
        assert self.started is not None
        assert self.config is not None
        n = len(self.steps)
        first_bad = {"step": self.bad.step, "layer": self.bad.layer} if self.bad else None
        return {
            "id": self.config.key,
            "config": self.config.model_dump(mode="json"),
            "status": self.status,
            "verdict": self.verdict.sentence,
            "first_bad": first_bad,
            "chance": self.started.chance,
            "floor": self.started.floor,
            "first_loss": finite(self.losses[0]) if n else None,
            "final_loss": finite(final_loss(self.losses)),
            "steps": n if self.started.config.steps else 0,
            "seconds": self.seconds,
            "steps_per_second": n / self.seconds if self.seconds else None,
            "losses": [finite(x) for x in self.losses],
            "layers": [row for step in self.steps if step.step in at for row in layer_rows(step)],
        }

    def tidy(self) -> pd.DataFrame:
        """Long table: step, layer (0 embedding, 1..L blocks; empty for the whole model), probe, value.

        The whole-model probes are loss (nats), lr and grad_norm (L2, before clipping).
        """
        rows: list[dict[str, Any]] = []
        for step in self.steps:
            for name in ("loss", "lr", "grad_norm"):
                value = getattr(step, name)
                rows.append({"step": step.step, "layer": None, "probe": name, "value": value})
            rows += layer_rows(step, keep_bad=True)
        return pd.DataFrame(rows, columns=["step", "layer", "probe", "value"]).astype(
            {"layer": "Int64", "value": "float64"}
        )


def collect(events: Iterable[Event]) -> Result:
    """Run a stream of events to its end."""
    result = Result()
    for event in events:
        result.take(event)
    return result


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def layer_rows(step: Step, keep_bad: bool = False) -> list[dict[str, Any]]:
    """Records {step, layer, probe, value} of one step; a value that is not finite is None."""
    if step.layers is None:
        return []
    return [
        {"step": step.step, "layer": layer, "probe": probe.key,
         "value": float(values[layer]) if keep_bad else finite(values[layer])}
        for probe, values in zip(PROBES, step.layers, strict=True)
        for layer in range(probe.first_layer, len(values))
    ]  # fmt: skip
