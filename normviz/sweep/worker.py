"""`python -m normviz.sweep.worker`: trains one cell after another, as it is told on standard input.

Jobs come in and results go out as pickles. It leaves when its standard input closes, also in the
middle of a cell: nobody waits for that one any more.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from queue import SimpleQueue

from ..config import RunConfig
from ..home import home
from ..store.machine_lock import Turn
from .cell import measure, no_result, warm

Job = tuple[str, bool]
"""Canonical JSON of a config, and whether it may be stopped early."""


def main() -> None:
    """Say "warm" once torch is there, then answer every job with its `Recording`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    os.nice(15)  # a map is patient: a page stays responsive beside it, and so does a visitor's run
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else that prints may come between
    warm()
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    _say(out, "warm")
    turn = Turn(home())
    while True:
        canonical, early = jobs.get()
        config = RunConfig.model_validate_json(canonical)
        try:
            turn.wait(float("inf"))
            measured = measure(config, early)
        except Exception as error:  # the next cell may go well
            measured = no_result(config, error)
        _say(out, measured)
        turn.leave()
        gc.collect()


def _say(out, what: object) -> None:
    pickle.dump(what, out, pickle.HIGHEST_PROTOCOL)
    out.flush()


def _listen(jobs: SimpleQueue[Job]) -> None:
    """Pass jobs on. Ends this process when whoever sends them is gone."""
    while True:
        try:
            jobs.put(pickle.load(sys.stdin.buffer))
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(1)


if __name__ == "__main__":
    main()
