"""What the runs of a duel are doing: for the player's progress bar, and for the page to notice."""

from __future__ import annotations

from typing import Any

from normviz.frames import Frames, queued
from normviz.links import as_word
from normviz.runner.heartbeat import HANGS_SECONDS, SILENT_SECONDS
from normviz.store import Run, Store

from ..widgets.markdown import capital


def signature(runs: list[Run]) -> str:
    """What the rest of the page shows of the runs: when it changes, the page is due. Anybody may read
    it, so it holds no key: a key would tell whether a run is on a text that somebody guessed."""
    return " ".join(
        f"{run.id}:{run.status}:{run.config.lr:g}:{as_word(run.config.lr_edits)}" for run in runs
    )


def status(
    frames: Frames, runs: list[Run], silent: float = 0.0, stuck: bool = False
) -> dict[str, Any]:
    """Signature, steps done and to do, and words for what can't be counted; no words when done.

    `silent`: seconds for which the supervisor has not answered; `stuck`: this server can't replace it.
    """
    opened = [run for run in runs if run.is_open]
    counts = [len(frames.steps(run).step) for run in runs]
    done = sum(counts)
    # What has ended early takes no more steps.
    total = sum(
        max(run.config.steps, 1) if run.is_open else count
        for run, count in zip(runs, counts, strict=True)
    )
    return {
        "signature": signature(runs),
        "done": done,
        "total": max(1, total),
        "words": _hangs(opened, silent, stuck) or _words(frames.store, opened, done, total),
    }


def _hangs(opened: list[Run], silent: float, stuck: bool) -> str:
    if not opened or silent < SILENT_SECONDS:
        return ""
    said = f"The process that hands out runs has not answered for {silent:.0f} s; "
    if stuck:
        return f"{said}this server can't replace it, so who runs it has to end it"
    return f"{said}after {HANGS_SECONDS:.0f} s it is replaced, and runs that train end there"


def _words(store: Store, opened: list[Run], done: int, total: int) -> str:
    if not opened:
        return ""
    if all(run.started is None for run in opened):
        if store.is_timing():
            return "Waiting: the norm cost lab measures, and nothing may train beside it"
        _, warm = store.supervisor()
        if not warm:
            return "Loading PyTorch in a worker: a few seconds"
        return capital(queued(opened, store))
    if all(run.status == "paused" for run in opened):
        then = "; goes on when the norm cost lab has measured" if store.is_timing() else ""
        return f"Paused at {done} of {total} steps in all lanes{then}"
    return f"{done} of {total} steps in all lanes"
