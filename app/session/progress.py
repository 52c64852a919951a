"""The progress of a duel's runs: for the player's progress bar, and to detect when to rerun the page."""

from __future__ import annotations

from typing import Any

from normviz.execution.heartbeat import HANGS_SECONDS, SILENT_SECONDS
from normviz.execution.startup import problem
from normviz.links import as_word
from normviz.runs import Run
from normviz.runs.frames import Frames, queued
from normviz.runs.store import Store

from .markdown import capital


def signature(frames: Frames, runs: list[Run]) -> str:
    """The state of the runs that the page shows, as text: when it changes, the browser requests a rerun.
    It has the steps of paused runs, because the headline names the last one.

    Anybody may read it, so it holds no config key: a key would reveal whether a run is on a guessed text.
    """

    def state(run: Run) -> str:
        lr = 0 if run.is_observed else run.trained.lr
        steps = len(frames.steps(run)) if run.status == "paused" else ""
        return f"{run.id}:{run.status}:{steps}:{lr:g}:{as_word(run.config.lr_edits)}"

    return " ".join(map(state, runs))


def status(
    frames: Frames, runs: list[Run], silent: float = 0.0, stuck: bool = False
) -> dict[str, Any]:
    """Signature, steps done, total steps, and the progress in words; no words once all runs have ended.

    While all that are open train to the same step, the steps are of the one that is behind of those that have
    recorded any, else of all runs.
    `silent`: seconds since the supervisor's last sign of life; `stuck`: this server can't replace it.
    """
    opened = [run for run in runs if run.is_open]
    trained = [run for run in opened if not run.is_observed]
    # Nobody knows how many steps an observed run will take: it counts while nothing else is open.
    counted = [run for run in runs if run.is_observed != bool(trained)] if opened else runs
    counts = [len(frames.steps(run).step) for run in counted]
    done = sum(counts)
    # A run that ended early counts as complete.
    total = sum(
        max(run.config.steps, 1) if run in trained else count
        for run, count in zip(counted, counts, strict=True)
    )
    sentence = f"{done} of {total} steps in all runs"
    if opened and not trained:  # the number of steps is not known
        sentence = f"{done} steps so far"
    elif len(ends := {run.config.steps for run in trained}) == 1 and all(
        run.started is not None for run in trained
    ):
        begun = filter(None, (len(frames.steps(run).step) for run in trained))
        done, (total,) = min(begun, default=0), ends
        sentence = f"step {max(0, done - 1)} of {total}"
    return {
        "signature": signature(frames, runs),
        "done": done,
        "total": max(1, total),
        "words": _hangs(opened, silent, stuck) or _words(frames.store, opened, sentence),
    }


def _hangs(opened: list[Run], silent: float, stuck: bool) -> str:
    if not opened or silent < SILENT_SECONDS:
        return ""
    sentence = f"The process that starts runs has not answered for {silent:.0f} s. "
    if stuck:
        return f"{sentence}This server can't replace it: the server's owner has to end it"
    return f"{sentence}After {HANGS_SECONDS:.0f} s it is replaced, and runs in training end"


def _words(store: Store, opened: list[Run], sentence: str) -> str:
    if not opened:
        return ""
    if all(run.started is None for run in opened):
        _, warm = store.supervisor()
        if problem(store.folder):
            return "Waiting: no process that trains can start. The server tries again every 30 s"
        if not warm:
            return "Loading PyTorch in a worker: a few seconds"
        return capital(queued(opened, store))
    if all(run.status == "paused" for run in opened):
        return f"Paused at {sentence}"
    return capital(sentence)
