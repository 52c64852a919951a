"""Queueing runs for a visitor: as they ask for, or without a click after a change of a setting.

Only a visitor's own change of a setting trains without a click: not a link, a preset, a tour step or Back. It
trains the lanes that have no result, if that takes seconds. A change while they train replaces them. A run
that was started with Train is never replaced so.
"""

from __future__ import annotations

from collections.abc import Sequence

from normviz.config import RunConfig, estimated_seconds
from normviz.execution.budget import default_slots
from normviz.policy import Refused
from normviz.runs.store.queue import enqueue, is_free, refusal

from . import visitor
from .backend import SharedBackend, known
from .duel import Duel, leave
from .page_state import chosen
from .policy import policy

LONGEST_SECONDS = 5.0
"""Estimated seconds that the runs which start without a click may take here together."""
SWITCH = "by_itself"
"""The key of the widget that turns it off."""


def queue(
    page_duel: Duel,
    configs: Sequence[RunConfig],
    backend: SharedBackend,
    paused: bool = False,
    instead: Sequence[int] = (),
) -> list[int] | None:
    """Queue configs for this visitor, instead of some open runs, and return the runs; None, and a message on
    the page, where the server refuses."""
    try:
        runs = enqueue(backend.store, configs, visitor.me(), paused, instead, visitor.address())
    except Refused as why:
        page_duel.refused = f"{why}."
        return None
    page_duel.refused = None
    for number in runs:  # a run that another visitor queued stays theirs
        if (run := backend.store.run(number)) and run.visitor == visitor.me():
            page_duel.mine |= {number}
    return runs


def by_itself(page_duel: Duel, backend: SharedBackend) -> None:
    """Train what the present settings lack, where that needs no click. Called by the callback of a change."""
    lacking = tuple(
        dict.fromkeys(lane for lane in page_duel.lanes if not has_result(lane, backend))
    )
    if (
        not lacking
        or page_duel.waits
        or chosen(SWITCH) is False
        or seconds(lacking) > LONGEST_SECONDS
    ):
        return
    if _is_busy(page_duel, backend) or not _is_allowed(page_duel, lacking, backend):
        return
    stays = {
        n
        for n in page_duel.automatic
        if (run := backend.store.run(n)) and run.config in page_duel.lanes
    }
    replaced = tuple(page_duel.automatic - stays)
    runs = queue(page_duel, lacking, backend, instead=replaced)
    if runs is None:
        page_duel.refused = None  # nobody asked: the page offers Train
        return
    leave(page_duel, backend, replaced)
    page_duel.automatic = frozenset(stays.union(runs))
    new = dict(zip(lacking, runs, strict=True))
    page_duel.runs = tuple(
        new.get(c, run) for c, run in zip(page_duel.lanes, page_duel.runs, strict=True)
    )
    page_duel.restart("follow")


def seconds(configs: Sequence[RunConfig]) -> float:
    """Estimated seconds until all of these runs have ended here, if nothing else trains."""
    each = [estimated_seconds(config) for config in configs]
    return max(*each, sum(each) / default_slots(policy()))


def has_result(config: RunConfig, backend: SharedBackend) -> bool:
    """Whether a config has a stored result, or a run that makes it."""
    run = known(config, backend)
    return run is not None and (run.is_done or run.is_open)


def _is_busy(page_duel: Duel, backend: SharedBackend) -> bool:
    """Whether the duel has an open run that did not start by itself, or that the visitor paused."""
    opened = [
        run for n in (*page_duel.runs, *page_duel.extra) if n and (run := backend.store.run(n))
    ]
    return any(
        run.is_open and (run.id not in page_duel.automatic or run.status == "paused")
        for run in opened
    )


def _is_allowed(page_duel: Duel, configs: Sequence[RunConfig], backend: SharedBackend) -> bool:
    """Whether this server takes these runs without a click."""
    return refusal(backend.store, configs) is None and is_free(backend.store, page_duel.automatic)
