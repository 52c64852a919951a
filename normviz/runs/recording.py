"""A run's recording, finished or open, and the one way from a run's events to it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import starmap
from math import ceil
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..catalog import FAMILIES, PROBES, TASKS
from ..catalog.probes import ROUNDING
from ..observed import OWN_UNIT, Observed, Settings
from ..training.events import Diverged, Edited, Event, Finished, Started, Step, Writing
from .run import OPEN, Run, Status
from .verdict import (
    LEARNED,
    PLATEAUS,
    Verdict,
    beside_held_out,
    diverged,
    final_loss,
    judge,
    observed,
)

UNWATCHED = "nobody had it open any more"
"""The message of a run that was stopped because no page showed it."""
COLUMNS = tuple(column.name for column in fields(Step))
"""The numbers of a step in their order, which are columns of the store too."""
SOMETIMES = ("held_out", "logit_rms")
"""The numbers of a step that not every step has."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of a run, ascending: step [n], loss [n], lr [n], grad_norm [n]; layers where recorded.

    `layer_steps` [m] are the steps with layers, `layers` [m, probes, L+1] their values. `held_out` and
    `logit_rms` [n] are NaN where they were not measured, and `writing` [n] None where nothing was written;
    left out, there are none.
    """

    step: NDArray[np.int64]
    loss: NDArray[np.float64]
    lr: NDArray[np.float64]
    grad_norm: NDArray[np.float64]
    layer_steps: NDArray[np.int64]
    layers: NDArray[np.float64]
    held_out: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    logit_rms: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    writing: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, object))

    def __post_init__(self) -> None:
        for name in SOMETIMES:
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(len(self.step), np.nan))
        if not len(self.writing):
            object.__setattr__(self, "writing", np.full(len(self.step), None))

    @classmethod
    def of(cls, steps: Sequence[Step], depth: int) -> Steps:
        """The steps from the `Step` events of a run of `depth` blocks."""
        layers = [step.layers for step in steps if step.layers is not None]
        return cls.of_rows(
            [*map(attrgetter(*COLUMNS), steps)],
            np.array(layers, np.float64) if layers else np.empty((0, len(PROBES), depth + 1)),
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Iterable[Any]], layers: NDArray[np.float64]) -> Steps:
        """The steps from rows of COLUMNS, where None is NaN, and the `layers` of those that have some."""
        columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
        by_name = dict(zip(COLUMNS, columns, strict=True))
        step = np.array(by_name.pop("step"), np.int64)
        has_layers = [values is not None for values in by_name.pop("layers")]
        writing = np.array(by_name.pop("writing"), object)
        numbers = {name: np.array(column, np.float64) for name, column in by_name.items()}
        return cls(
            step=step, layer_steps=step[has_layers], layers=layers, writing=writing, **numbers
        )

    def __len__(self) -> int:
        return len(self.step)

    def __iter__(self) -> Iterator[Step]:
        """The steps as `Step` events."""
        layers = dict(zip(self.layer_steps.tolist(), self.layers, strict=True))
        steps = self.step.tolist()
        columns = (column.tolist() for column in (self.loss, self.lr, self.grad_norm))
        some = ([None if x != x else x for x in getattr(self, name).tolist()] for name in SOMETIMES)
        rows = zip(steps, *columns, map(layers.get, steps), *some, self.writing, strict=True)
        return starmap(Step, rows)

    def after(self, earlier: Steps) -> Steps:
        """The earlier steps followed by these."""
        names = [column.name for column in fields(self)]
        pairs = ((getattr(earlier, name), getattr(self, name)) for name in names)
        return Steps(*(np.concatenate(pair) for pair in pairs))

    def with_layers_of(self, rows: Collection[int]) -> Steps:
        """All steps, with these rows of `layers` alone."""
        indices = sorted(rows)
        return replace(self, layer_steps=self.layer_steps[indices], layers=self.layers[indices])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, column.name).nbytes for column in fields(self))


SELDOM = ("update_ratio", "token_cosine")
"""Probes that not every step has: a run of 0 steps updates nothing, and one example has no pair."""


@dataclass(frozen=True, eq=False)
class LayerValues:
    """A probe's values in the layers of a run, as charts draw them.

    step    [m] steps at which it was recorded, ascending
    values  [m, L+1] value per layer, 0 where it is lost in rounding; layers below the probe's first_layer
            are NaN and mean nothing
    ran     number of steps that the run has made, of `total`
    """

    probe: str
    step: NDArray[np.int64]
    values: NDArray[np.float64]
    ran: int
    total: int

    @property
    def drawn(self) -> NDArray[np.float64]:
        """[m, layers] values from the probe's first layer up to the last block, a cosine as 1 minus it."""
        record = PROBES[self.probe]
        values = self.values[:, record.first_layer :]
        return 1.0 - values if record.shown == "one_minus" else values

    @property
    def held_until(self) -> NDArray[np.int64]:
        """[m] The first step that a record does not hold for: that of the next record, if it comes within
        three steps or a fortieth of the run, else the next step. The last record holds as long as the one
        before it."""
        at = self.step
        if not len(at):
            return at
        before = at[-2] if len(at) > 1 else at[-1] - 1
        end = min(2 * at[-1] - before, max(self.ran, at[-1] + 1))
        until = np.append(at[1:], end)
        return np.where(until - at <= max(3, ceil(self.total / 40)), until, at + 1)

    @property
    def has_gaps(self) -> bool:
        """Whether there are steps between the records for which none holds."""
        return bool((self.held_until[:-1] < self.step[1:]).any())


@dataclass(frozen=True, eq=False)
class Recording(Run):
    """A run with its steps so far, and what follows from them."""

    steps: Steps = field(kw_only=True)

    @classmethod
    def of(cls, run: Run, steps: Steps) -> Self:
        """A run with these steps."""
        return cls(**{each.name: getattr(run, each.name) for each in fields(Run)}, steps=steps)

    @property
    def losses(self) -> NDArray[np.float64]:
        """[n] losses in nats per token."""
        return self.steps.loss

    @property
    def depth(self) -> int:
        """Number of rows of its layers: blocks, or time steps of a recurrent net."""
        return self.config.rows

    @property
    def total(self) -> int:
        """Steps that it has when it is done; of an open run that is observed so many as an axis needs."""
        if not isinstance(self.config, Observed):
            return max(self.config.steps, 1)
        n = max(len(self.steps), 1)
        if self.status not in OPEN:
            return n
        power = 10 ** max(1, len(str(n)) - 1)
        return next(k * power for k in (1, 2, 3, 5, 8, 12) if k * power > n)

    @property
    def chance(self) -> float:
        """Loss of the best guess that ignores the context, in nats; NaN before the run started."""
        return math.nan if self.started is None else self.started.chance

    @property
    def floor(self) -> float | None:
        """Lowest reachable loss in nats, None where unknown."""
        return None if self.started is None else self.started.floor

    @property
    def final(self) -> float:
        """Mean loss of the last tenth of the steps, in nats; NaN before the first step."""
        with np.errstate(over="ignore"):
            return final_loss(self.steps.loss)

    @property
    def held_out(self) -> float | None:
        """The last held-out loss in nats, inf where it is not finite; None where none was measured."""
        measured = self.steps.held_out[~np.isnan(self.steps.held_out)]
        return float(measured[-1]) if len(measured) else None

    @property
    def held_out_curve(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """[k] steps after which the held-out loss was measured, ascending, and [k] losses in nats."""
        measured = ~np.isnan(self.steps.held_out)
        return self.steps.step[measured], self.steps.held_out[measured]

    @property
    def writings(self) -> list[tuple[int, Writing]]:
        """(step, what the model writes there), ascending."""
        there = np.flatnonzero(self.steps.writing)
        return [(int(self.steps.step[i]), self.steps.writing[i]) for i in there]

    @property
    def unit(self) -> str:
        """Unit of its losses."""
        return OWN_UNIT if self.is_observed else TASKS[self.config.task].unit

    @property
    def row(self) -> str:
        """What a row of its layers is: "layer", or "time step" of a recurrent net."""
        return FAMILIES[self.config.family].rows

    @property
    def edits(self) -> tuple[tuple[int, float], ...]:
        """(step, peak learning rate) of each change of the rate that it has reached."""
        return tuple(edit for edit in self.config.lr_edits if edit[0] < len(self.steps))

    @property
    def bad(self) -> tuple[int, int | None] | None:
        """(step, layer or None) where it diverged: as recorded, else its first bad loss."""
        if self.first_bad is not None:
            return self.first_bad.step, self.first_bad.layer
        lost = np.flatnonzero(~np.isfinite(self.losses))
        return None if self.is_observed or not len(lost) else (int(lost[0]), None)

    @property
    def clipped(self) -> float | None:
        """Share of the updates before which the gradients were clipped; None without a limit or an update."""
        updates = len(self.steps) - (self.first_bad is not None)
        if (
            isinstance(self.config, Observed)
            or self.config.clip is None
            or not self.config.steps
            or updates < 1
        ):
            return None
        return float(np.mean(self.steps.grad_norm[:updates] > self.config.clip))

    @property
    def last(self) -> int:
        """The last step whose layers are recorded. Raises IndexError where there is none."""
        return int(self.steps.layer_steps[-1])

    def values(self, probe: str) -> NDArray[np.float64]:
        """[m, L+1] values of a probe at the steps with layers. Raises ValueError for a probe that was
        not recorded."""
        return self.steps.layers[:, self.probes.index(probe)]

    def lacks(self, probe: str) -> bool:
        """Whether it does not record this probe."""
        return probe not in self.probes

    def layers(self, probe: str) -> LayerValues:
        """A probe's values as charts draw them; none of a probe that it does not record."""
        if probe not in self._layers:
            values = self._without_rounding(probe)
            step = self.steps.layer_steps[: len(values)]
            # Where nothing was updated there is no update to measure, which is not the same as a NaN.
            if probe in SELDOM:
                there = ~np.isnan(values).all(axis=1)
                step, values = step[there], values[there]
            self._layers[probe] = LayerValues(probe, step, values, len(self.steps), self.total)
        return self._layers[probe]

    def for_charts_of(self, probes: Collection[str]) -> Recording:
        """The same without the layers of other probes: a small part of the memory where somebody holds it."""
        small = replace(self, steps=self.steps.with_layers_of(()))
        for probe in probes:
            layers = self.layers(probe)
            small._layers[probe] = replace(layers, values=layers.values.copy())
        return small

    @cached_property
    def _layers(self) -> dict[str, LayerValues]:
        return {}

    def _without_rounding(self, probe: str) -> NDArray[np.float64]:
        """[m, L+1] values, 0 where they are below what float32 can tell from 0; none of a probe that it
        does not record."""
        if self.lacks(probe):
            return np.empty((0, self.depth + 1))
        values, larger = self.values(probe), PROBES[probe].rounds_with
        if larger is None or self.lacks(larger):
            return values
        return np.where(values < ROUNDING * self.values(larger), 0.0, values)

    def at(self, probe: str, step: int, layer: int) -> float:
        """A probe's value; layer 0 is the embedding, -1 the last block. NaN where not recorded."""
        rows = np.flatnonzero(self.steps.layer_steps == step)
        return float(self.values(probe)[rows[0], layer]) if len(rows) else math.nan

    def last_over_first(self, step: int) -> float:
        """Parameter gradient of the last block over that of the first, at a step."""
        first = self.at("grad_block", step, 1)
        return self.at("grad_block", step, -1) / first if first else math.inf

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict of the run, or its state while it is open."""
        n, bad = len(self.steps), self.first_bad
        if self.status == "diverged" and bad is not None:
            return diverged(bad.step, bad.layer, bad.where)
        if isinstance(self.config, Observed) and self.status in ("finished", "running"):
            return observed(self.losses, self.is_done)
        if self.status == "finished" and self.started is not None:
            verdict = judge(self.losses, self.config.steps, self.chance, self.floor)
            is_finite = TASKS[self.config.task].is_finite
            return beside_held_out(verdict, self.final, self.chance, self.held_out, is_finite)
        if self.status == "failed":
            return Verdict("failed", f"failed after {n} steps: {self.message}")
        if self.status == "stopped":
            how = " unwatched" if self.message == UNWATCHED else ""
            why = f": {self.message}" if self.message else ""
            return Verdict("stopped", f"stopped{how} after {n} steps{why}")
        return Verdict(self.status, {"running": "training"}.get(self.status, self.status))

    @property
    def is_at_chance(self) -> bool:
        """Whether it ended on a plateau at chance."""
        return self.verdict.kind in PLATEAUS

    @property
    def has_learned(self) -> bool:
        """Whether it ended below chance."""
        return self.verdict.kind in LEARNED


def empty(config: Settings, status: Status, message: str | None = None) -> Recording:
    """The recording of a run that did not begin: "queued", or "failed" with the reason as its message."""
    return Recording(config, None, status, message=message, steps=Steps.of([], config.rows))


class RecordingBuilder:
    """Makes a recording from a run's events, as they come."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self._config: Settings | None = None
        self._steps: list[Step] = []
        self._bad: Diverged | None = None
        self._has_ended = False
        self._began = self._now = time.perf_counter()

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events, each after it was recorded."""
        for event in events:
            self.note(event)
            yield event

    def note(self, event: Event) -> None:
        """Record an event."""
        match event:
            case Started():
                self.started, self._config = event, event.config
                self._began = time.perf_counter()  # it times training alone
            case Edited():
                self._config = event.config
            case Step():
                self._steps.append(event)
            case Diverged():
                self._bad = event
            case Finished():
                self._has_ended = True
        self._now = time.perf_counter()

    def recording(self) -> Recording:
        """The recording so far; a run without a `Finished` event counts as stopped.

        Raises ValueError where the run has not started.
        """
        if self._config is None:
            raise ValueError("the run has not started, so there is nothing recorded of it")
        ended = "finished" if self._has_ended else "stopped"
        return Recording(
            self._config, self.started, "diverged" if self._bad else ended, self._bad,
            began=self._began, ended=self._now,
            steps=Steps.of(self._steps, self._config.rows),
        )  # fmt: skip


def collect(events: Iterable[Event]) -> Recording:
    """The recording of a run's events, read to their end. Raises ValueError where it has not started."""
    builder = RecordingBuilder()
    for _ in builder.follow(events):
        pass
    return builder.recording()


def of_seeds(ended: Sequence[Recording], seeds: int) -> str:
    """The verdicts of all seeds in one sentence with the range of their final losses in nats, for example
    "learned in 5 of 5 seeds: loss 1.19 to 1.24; held-out 1.18 to 1.25".

    `ended` are the runs that reached their end, of `seeds` that were requested. One that diverged has no
    final loss.
    """
    if not ended:
        return f"none of {seeds} seeds has a result yet"
    heads = [run.verdict.head for run in ended]
    counted = Counter(heads).most_common()
    sentence = ", ".join(
        f"{head} in {n} of {seeds} seeds" if i == 0 else f"{head} in {n}"
        for i, (head, n) in enumerate(counted)
    )
    not_diverged = [run for head, run in zip(heads, ended, strict=True) if head != "diverged"]
    if not_diverged:
        sentence += f": loss {_range([run.final for run in not_diverged])}"
    if held_out := [run.held_out for run in not_diverged if run.held_out is not None]:
        sentence += f"; held-out {_range(held_out)}"
    left = seeds - len(ended)
    return f"{sentence}; {left} without a result so far" if left else sentence


def _range(losses: Sequence[float]) -> str:
    low, high = f"{min(losses):.2f}", f"{max(losses):.2f}"
    return low if low == high else f"{low} to {high}"
