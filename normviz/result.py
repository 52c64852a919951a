"""A finished run in one object: what the terminal prints, and what notebooks take away. Torch-free.

from normviz import RunConfig, train
from normviz.result import collect

result = collect(train(RunConfig(scheme="post")))
print(result.verdict.sentence)
result.to_parquet("post.zip")
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .catalog import PROBES
from .config import RunConfig
from .events import Diverged, Edited, Event, Finished, Started, Step
from .store import Steps
from .verdict import Verdict, diverged, final_loss, judge

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .export import ExportLane
    from .export.columns import Table


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
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for step in self.steps:
            for name in ("loss", "lr", "grad_norm"):
                value = getattr(step, name)
                rows.append({"step": step.step, "layer": None, "probe": name, "value": value})
            rows += layer_rows(step, keep_bad=True)
        return pd.DataFrame(rows, columns=["step", "layer", "probe", "value"]).astype(
            {"layer": "Int64", "value": "float64"}
        )

    # To take away: what makes files imports pandas, PyArrow and Altair, so it is imported on use

    def lane(self, name: str = "A") -> ExportLane:
        """The run as `normviz.export` reads it, under the name of a lane."""

        from .export import ExportLane, Facts

        assert self.started is not None
        assert self.config is not None
        s, bad, depth = self.started, self.bad, self.config.depth
        status = self.status if self.steps else "stopped"
        facts = Facts(
            status, self.verdict.sentence, s.device, s.threads, s.parameters, s.chance, s.floor,
            s.text, bad and bad.step, bad and bad.layer,
        )  # fmt: skip
        layered = [step for step in self.steps if step.layers is not None]
        empty = np.empty((0, len(PROBES), depth + 1))
        arrays = Steps(
            step=np.array([step.step for step in self.steps], dtype=np.int64),
            loss=self.losses,
            lr=np.array([step.lr for step in self.steps], dtype=np.float64),
            grad_norm=np.array([step.grad_norm for step in self.steps], dtype=np.float64),
            layer_steps=np.array([step.step for step in layered], dtype=np.int64),
            layers=np.array([step.layers for step in layered]) if layered else empty,
        )
        return ExportLane(name, self.config, facts, PROBES.keys(), arrays)

    def tables(self) -> dict[Table, pa.Table]:
        """Arrow tables runs, steps, layers, probes and columns; `.to_pandas()` makes DataFrames."""

        from .export import tables

        return tables([self.lane()])

    def to_csv(self, path: str | Path) -> None:
        """Write all tables as CSV files, with their dictionary and the config, into one zip."""

        from .export import archive

        Path(path).write_bytes(archive([self.lane()], "csv"))

    def to_parquet(self, path: str | Path) -> None:
        """Write all tables as Parquet files, with their dictionary and the config, into one zip."""

        from .export import archive

        Path(path).write_bytes(archive([self.lane()], "parquet"))

    def to_json(self, path: str | Path) -> None:
        """Write the config, as `normviz run --config` reads it."""

        from .export import write_configs

        Path(path).write_text(write_configs([self.lane()]))

    def script(self) -> str:
        """Source of a script in plain PyTorch that repeats the run."""

        from .export import script

        return script(self.lane())


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
