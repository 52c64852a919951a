"""A watched run in the trackers of others: Weights & Biases, Trackio and TensorBoard.

Each quantity of each layer is a series `normviz/QUANTITY/LAYER`, with `normviz/step` as its axis where the
tracker's own steps are those of the caller's loop. A run that the caller has begun is used and left open;
without one, one is begun and ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from ..observed import Observed
from ..result import Result
from ..training.events import Step

PROJECT = "normviz"
AXIS = "normviz/step"


class Tracker(Protocol):
    """Where steps are written as they are read."""

    def append(self, steps: list[Step]) -> None:
        """Write steps."""
        ...

    def end(self, result: Result) -> None:
        """The run has ended."""
        ...


def tracker(named: str, settings: Observed, keys: tuple[str, ...]) -> Tracker:
    """One of TRACKERS. Raises ValueError where its package is not installed."""
    try:
        module = import_module("torch.utils.tensorboard" if named == "tensorboard" else named)
    except ImportError:
        raise ValueError(
            f"to is {named!r}, and {named} is not installed: pip install {named}"
        ) from None
    return TRACKERS[named](module, settings, keys)


def series(step: Step, keys: tuple[str, ...]) -> dict[str, float]:
    """The numbers of a step by name; what was not measured is left out."""
    found = {"loss": step.loss, "lr": step.lr, "grad_norm": step.grad_norm}
    if step.layers is not None:
        digits = len(str(step.layers.shape[1] - 1))
        for key, row in zip(keys, step.layers.tolist(), strict=True):
            found |= {f"{key}/{layer:0{digits}d}": value for layer, value in enumerate(row)}
    return {f"normviz/{name}": x for name, x in found.items() if not math.isnan(x)}


def _notes(result: Result) -> list[str]:
    return list(result.config.notes) if isinstance(result.config, Observed) else []


class _Wandb:
    """`wandb.run`, or a run of its own."""

    def __init__(self, wandb: Any, settings: Observed, keys: tuple[str, ...]) -> None:
        self.keys, self.is_own = keys, wandb.run is None
        self.run = wandb.run or wandb.init(
            project=PROJECT, name=settings.label, config=settings.model_dump(mode="json")
        )
        self.run.define_metric(AXIS, hidden=True)
        self.run.define_metric("normviz/*", step_metric=AXIS)

    def append(self, steps: list[Step]) -> None:
        for step in steps:
            # In a run of the caller's the next call of its own `log` commits, so that its steps stay its own.
            values: Mapping[str, float] = {AXIS: step.step, **series(step, self.keys)}
            self.run.log(values, commit=self.is_own)

    def end(self, result: Result) -> None:
        self.run.summary.update({"normviz/missing": _notes(result)})
        if self.is_own:
            self.run.finish()


class _Trackio:
    """Trackio's present run, or a run of its own."""

    def __init__(self, trackio: Any, settings: Observed, keys: tuple[str, ...]) -> None:
        run = trackio.context_vars.current_run.get()
        self.keys, self.is_own = keys, run is None
        self.run = run or trackio.init(
            project=PROJECT, name=f"{settings.model}-{settings.run}", embed=False,
            config=settings.model_dump(mode="json"),
        )  # fmt: skip
        self.finish = trackio.finish

    def append(self, steps: list[Step]) -> None:
        for step in steps:
            self.run.log({AXIS: step.step, **series(step, self.keys)}, step=step.step)

    def end(self, result: Result) -> None:
        if self.is_own:
            self.finish()


class _TensorBoard:
    """An event file in `runs/`, with a chart of all layers for each quantity under Custom Scalars."""

    def __init__(self, tensorboard: Any, settings: Observed, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.writer = tensorboard.SummaryWriter(comment=f"-normviz-{settings.run}")
        charts = {key: ["Multiline", [f"normviz/{key}/.*"]] for key in keys}
        self.writer.add_custom_scalars({"normviz": charts})
        self.writer.add_text("normviz/model", settings.label)

    def append(self, steps: list[Step]) -> None:
        for step in steps:
            for name, value in series(step, self.keys).items():
                self.writer.add_scalar(name, value, step.step)
        self.writer.flush()

    def end(self, result: Result) -> None:
        self.writer.add_text("normviz/missing", "\n\n".join(_notes(result)))
        self.writer.close()


TRACKERS: dict[str, Any] = {"wandb": _Wandb, "trackio": _Trackio, "tensorboard": _TensorBoard}
"""What `to` may name besides the store."""
