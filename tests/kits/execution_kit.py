"""Tasks for child processes: what they may return, print, raise and die of."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from normviz.execution import TaskError


def double(n: int) -> int:
    return 2 * n


def prints(n: int) -> int:
    """Prints, also past Python, and reads standard input."""
    print("a stray line", flush=True)
    os.write(1, b"\x80\x05 stray bytes\n")
    assert sys.stdin.read() == ""
    return n


def fails(n: int) -> object:
    """As its number says."""
    if n == 0:
        raise TaskError("the width is 7, allowed is a multiple of 32")
    if n == 1:
        raise KeyError("x")
    return lambda: n  # nobody can pickle a lambda


def dies(once: str) -> str:
    """The first time."""
    try:
        Path(once).touch(exist_ok=False)
    except FileExistsError:
        return "the second time"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def exits(code: int) -> None:
    os._exit(code)


def sleeps(seconds: float) -> None:
    time.sleep(seconds)


def computes() -> int:
    """For ever, inside one call that keeps every other thread of the process from running."""
    return sum(range(10**13))


def surroundings() -> tuple[int, str | None, bool]:
    """Niceness, the threads that PyTorch may use, and whether it is loaded."""
    return os.nice(0), os.environ.get("OMP_NUM_THREADS"), "torch" in sys.modules
