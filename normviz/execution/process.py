"""Starts processes, lowers their priority, and describes how they ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from ..home import VARIABLE

PATIENT = 15
"""Niceness: a page stays responsive beside it, and so does a visitor's run."""


def start(
    module: str,
    folder: Path,
    *words: str,
    stdin: int,
    stdout: int | None = None,
    pipes: Sequence[int] = (),
    **environment: str,
) -> subprocess.Popen[bytes]:
    """`python -m MODULE WORDS` for a data folder, with the open file descriptors `pipes`.

    Not by `multiprocessing`: a server's main module is the page, which a child would run again.
    A session of its own keeps Ctrl-C from it. It has to end when its pipe or standard input closes,
    so that it never outlives this process. (Linux's PR_SET_PDEATHSIG would end it with the thread
    that started it.) Raises OSError, on Windows for any `pipes`.
    """
    if pipes and sys.platform == "win32":
        raise OSError(
            "Windows can't hand a pipe to another process: maps and claims need Linux or macOS"
        )
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=stdin,
        stdout=stdout,
        pass_fds=pipes,
        env={**os.environ, VARIABLE: str(folder), **environment},
        start_new_session=True,
    )


def lower_priority(niceness: int) -> None:
    """Give other processes precedence over this one: by so much niceness, on Windows by one class."""
    with suppress(psutil.Error):
        if hasattr(os, "nice"):
            os.nice(niceness)
        elif niceness and (lower := getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", None)):
            psutil.Process().nice(lower)


def describe_end(code: int | None) -> str:
    """ "was killed by signal 9" or "ended with exit code 1"."""
    return f"was killed by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
