"""`python -m normviz.export.drawer 12,13`: draw the picture of these runs into the store in $NORMVIZ_HOME.

Vega's engine takes a core for a second and 100 MB, which end with this process.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

from ..execution import log
from ..execution.process import PATIENT, lower_priority
from ..policy import from_environment
from ..runs.lane import LETTERS, Lane
from ..runs.store import Store, StoreError, pictures
from .preview import draw


def draw_stored(store: Store, runs: Sequence[int]) -> None:
    """Draw and keep the picture of runs that have ended, in the order of their lanes; nothing where one was
    deleted. Raises ValueError where they can't be drawn, and StoreError."""
    stored = [run for number in runs if (run := store.run(number)) is not None]
    if len(stored) == len(runs):
        lanes = [
            Lane(letter, run.config, (store.recording(run),))
            for letter, run in zip(LETTERS, stored, strict=False)
        ]
        pictures.keep(store, runs, draw(lanes))


def _end_with_parent() -> None:
    """Standard input closes when the process that started this one is gone."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lower_priority(PATIENT)
    policy = from_environment()
    log.begin(policy)
    try:
        draw_stored(Store(policy=policy), [int(run) for run in sys.argv[1].split(",")])
    except (ValueError, StoreError) as error:
        log.event("not drawn", runs=sys.argv[1], why=str(error))
