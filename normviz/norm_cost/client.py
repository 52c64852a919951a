"""The server's end of a measurement: start one, stop it, and what it said last. Without PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..home import VARIABLE
from .setting import Setting


@dataclass(frozen=True)
class State:
    """What is going on.

    setting   of the measurement that goes on or went on last
    doing     in words, or empty where nothing is measured
    share     of the rounds that are done, 0 to 1
    problem   why the last measurement gave nothing, or empty
    finished  how many have ended with a result since the server began
    """

    setting: Setting | None = None
    doing: str = ""
    share: float = 0.0
    problem: str = ""
    finished: int = 0


class Lab:
    """At most one measuring process of a server; shared by its visitors, safe among threads.

    The process leaves when its standard input closes, so it never outlives this one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = State()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def start(self, setting: Setting) -> None:
        """Begin; nothing where one is going on."""
        with self._lock:
            if self.state.doing:
                return
            finished = self.state.finished
            self.state = State(setting, "Starting a process", finished=finished)
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", "normviz.norm_cost"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, VARIABLE: str(self.folder)},
                start_new_session=True,  # Ctrl-C goes to the server; its end reaches us by stdin
            )  # fmt: skip
        threading.Thread(target=self._follow, args=(process, setting), daemon=True).start()

    def stop(self) -> None:
        """End what is going on, at once; nothing of it is kept."""
        with self._lock:
            if self._process is not None and self.state.doing:
                self.state = replace(self.state, doing="", problem="it was stopped")
                self._process.kill()

    def _follow(self, process: subprocess.Popen[str], setting: Setting) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        ended = False
        try:
            process.stdin.write(json.dumps(asdict(setting)) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                ended = self._hear(process, json.loads(line)) or ended
        except (OSError, ValueError):
            pass  # it died in the middle of a line
        code = process.wait()
        process.stdout.close()
        process.stdin.close()
        with self._lock:
            if not ended and self._process is process and self.state.doing:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                self.state = replace(self.state, doing="", problem=f"the process {how}")

    def _hear(self, process: subprocess.Popen[str], said: dict) -> bool:
        """Take in what it said; whether that was its last word."""
        with self._lock:
            if self._process is not process or not self.state.doing:  # stopped meanwhile
                return True
            it = self.state
            if "problem" in said:
                self.state = replace(it, doing="", problem=said["problem"])
            elif "total" in said:
                words = (
                    f"Round {said['done'] + 1} of {said['total']}, about {said['left']:.0f} s left"
                )
                self.state = replace(it, doing=words, share=said["done"] / said["total"])
            elif "doing" in said:
                self.state = replace(it, doing=said["doing"])
            else:
                self.state = replace(it, doing="", share=1.0, finished=it.finished + 1)
        return "problem" in said or said.get("done") is True
