"""Stored runs as rows of a list, with their outcome, without reading their layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import formats
from ..config import SETTINGS, RunConfig
from ..links import differences, shown
from ..observed import Observed, Settings
from . import Run
from .frames import verdict
from .store import Query, Store, StoreUnreadable
from .verdict import Verdict

USUAL = RunConfig()
OWN_COLUMNS = ("scheme", "norm", "task", "text", "init_seed", "data_seed")
"""Settings that have their own columns in a list."""
KEPT = 50_000
"""Outcomes in memory, a few hundred bytes each."""


@dataclass(frozen=True)
class ListRow:
    """A run and what came of it: `final` is its mean loss over the last tenth of its `steps`; may be NaN."""

    run: Run
    verdict: Verdict
    final: float
    steps: int

    @property
    def words(self) -> str:
        """The verdict as a list shows it."""
        return self.verdict.in_list

    @property
    def loss(self) -> str:
        """The final loss as a list shows it; empty without one."""
        if not math.isfinite(self.final):
            return ""
        return formats.loss(self.final)


@dataclass(frozen=True)
class ListPage:
    """One page of runs. `foreign` has the numbers of those from another release and of damaged ones."""

    rows: tuple[ListRow, ...]
    total: int
    foreign: tuple[int, ...]


class RunList:
    """Lists runs. It caches the outcomes of closed runs, which never change."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._outcomes: dict[int, tuple[Verdict, float, int]] = {}

    def page(self, wanted: Query, limit: int, offset: int = 0) -> ListPage:
        """At most `limit` wanted runs after the first `offset`. Newest first; cells of sweeps come after
        all others, shipped runs last."""
        matches = self.store.listed(wanted, limit, offset)
        rows, unread = [], list(matches.foreign)
        for run in matches.runs:
            try:
                rows.append(self.row(run))
            except StoreUnreadable:
                unread.append(run.id)
        return ListPage(tuple(rows), matches.total, tuple(unread))

    def row(self, run: Run) -> ListRow:
        """A run with what came of it. Raises StoreUnreadable where its steps are damaged."""
        outcome = self._outcomes.get(run.id)
        if outcome is None or run.is_open:
            recording = self.store.recording(run, layers=False)
            outcome = verdict(recording, self.store), recording.final, len(recording.steps)
            if run.ended is not None:
                if len(self._outcomes) >= KEPT:
                    self._outcomes.clear()
                self._outcomes[run.id] = outcome
        return ListRow(run, *outcome)


def changed(config: RunConfig) -> str:
    """The settings that are not at their defaults, in words, except those with their own column."""
    changes = differences(config, USUAL)
    return ", ".join(
        f"{SETTINGS[name].title} {value}"
        for name, (_, value) in changes.items()
        if name not in OWN_COLUMNS
    )


def described(settings: Settings) -> str:
    """What a list says of a run besides its placement: the settings that are not at their defaults; of an
    observed run its size."""
    if isinstance(settings, Observed):
        return (
            f"{settings.blocks} blocks, width {settings.width}, {settings.parameters:,} parameters"
        )
    return changed(settings)


def seconds(run: Run) -> float | None:
    """Seconds that a run trained here; None if it did not start, did not end, or was shipped."""
    return None if None in (run.began, run.ended) or run.is_shipped else run.seconds


def diff(configs: list[RunConfig]) -> dict[str, list[str]]:
    """The settings in which configs differ: title -> each config's value, as people read them."""
    comparisons = [differences(config, other) for config in configs for other in configs]
    names = [name for name in SETTINGS if any(name in comparison for comparison in comparisons)]
    return {
        SETTINGS[name].title: [shown(name, getattr(config, name)) for config in configs]
        for name in names
    }


def ago(then: float, now: float) -> str:
    """The time since `then`, in one unit."""
    past = max(0.0, now - then)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if past >= size:
            return f"{past // size:.0f} {unit} ago"
    return "just now"
