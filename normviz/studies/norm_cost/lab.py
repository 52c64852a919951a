"""One measurement from its claim on the machine to its place in the data folder.

Loads PyTorch, so it belongs in a process of its own or in a terminal's. It has the machine to itself:
it waits for runs of this data folder that train, and none begins until it has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...config import ConfigError
from ...execution import TaskError
from ...home import home
from ...runs.store import Store, StoreError
from ...runs.store.machine_lock import MachineLock
from . import stored_results
from .result import CostSetting, Measurement, Round

PATIENCE_SECONDS = 60.0
"""For runs that train. Others wait meanwhile, so it is not longer."""


class BusyError(TaskError):
    """The machine could not be had; the sentence says why."""


@dataclass(frozen=True)
class Preparing:
    """What is done before the first round, in words."""

    words: str


def run(setting: CostSetting, folder: Path) -> Iterator[Preparing | Round | Measurement]:
    """Measure with a data folder's machine and keep the result in it.

    Raises BusyError, ConfigError for a GPU that is not there, StoreError and OSError.
    """
    lock = MachineLock(folder, alone=True)
    try:
        yield from _take(lock, Store(folder))
        yield Preparing("Loading PyTorch")
        from .measure import measure

        yield Preparing("Warming up")
        for news in measure(setting):
            if isinstance(news, Measurement):
                stored_results.keep(news, folder)
            yield news
    finally:
        lock.leave()


def run_task(setting: CostSetting) -> Iterator[Preparing | Round | Measurement]:
    """`run`, in a process of its own. Raises TaskError for all that may be expected."""
    try:
        yield from run(setting, home())
    except (ConfigError, StoreError, ValueError) as error:
        raise TaskError(str(error)) from None
    except OSError as error:
        raise TaskError(f"the result can't be kept: {error}") from None
    except MemoryError:
        needs = "it needs more memory than this machine has: lower width or tokens"
        raise TaskError(needs) from None


def _take(lock: MachineLock, store: Store) -> Iterator[Preparing]:
    there, warm = store.supervisor()
    if there and not warm and not store.is_timing():  # its processes are being started
        yield Preparing("Waiting for the workers to be ready")
        _await_warm(store)
    if lock.take():
        return
    if not lock.claim.is_locked:
        raise BusyError("somebody else measures with this data folder: try again when that is done")
    yield Preparing(f"Waiting for runs that train here to end, at most {PATIENCE_SECONDS:g} s")
    if not lock.wait(PATIENCE_SECONDS):
        raise BusyError(
            f"a run has been training here for the last {PATIENCE_SECONDS:g} s, and a measurement "
            "beside it would be wrong: stop or pause it, or try again when it has ended"
        )


def _await_warm(store: Store, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while store.supervisor() == (True, False) and time.monotonic() < until:
        time.sleep(0.05)
