"""The server's end of a measurement: start one, stop it, and what it said last. Without PyTorch."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

from ...execution import Ended, Event, Local, Progress
from .lab import Preparing, run_task
from .result import CostSetting, Round


@dataclass(frozen=True)
class State:
    """What is going on.

    setting   of the measurement that goes on or went on last
    doing     in words, or empty where nothing is measured
    share     of the rounds that are done, 0 to 1
    problem   why the last measurement gave nothing, or empty
    finished  how many have ended with a result since the server began
    """

    setting: CostSetting | None = None
    doing: str = ""
    share: float = 0.0
    problem: str = ""
    finished: int = 0


class Lab:
    """At most one measurement of a server; shared by its visitors, safe among threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = State()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._executor: Local[CostSetting] | None = None

    def start(self, setting: CostSetting) -> None:
        """Begin; nothing where one is going on."""
        with self._lock:
            if self.state.doing:
                return
            self.state = State(setting, "Starting a process", finished=self.state.finished)
            self._stopped = stopped = threading.Event()
            tasks = {setting: (setting,)}
            self._executor = executor = Local(run_task, tasks, self.folder, alone=True)
        threading.Thread(target=self._follow, args=(executor, stopped), daemon=True).start()

    def stop(self) -> None:
        """End what is going on; nothing of it is kept."""
        with self._lock:
            if self.state.doing:
                self.state = replace(self.state, doing="", problem="it was stopped")
                self._stopped.set()

    @property
    def pids(self) -> list[int]:
        """The measuring process."""
        return self._executor.pids if self._executor is not None else []

    def _follow(self, executor: Local[CostSetting], stopped: threading.Event) -> None:
        with executor:
            for event in executor.events(stopped.is_set):
                with self._lock:
                    if not stopped.is_set():
                        self.state = _after(self.state, event)


def _after(state: State, event: Event[CostSetting]) -> State:
    """The state once something has happened."""
    match event:
        case Progress(_, Preparing(words)):
            return replace(state, doing=words)
        case Progress(_, Round(done, total, left)):
            words = f"Round {done + 1} of {total}, about {left:.0f} s left"
            return replace(state, doing=words, share=done / total)
        case Ended(_, _, None):
            return replace(state, doing="", share=1.0, finished=state.finished + 1)
        case Ended(_, _, str(problem)):
            return replace(state, doing="", problem=problem)
    return state
