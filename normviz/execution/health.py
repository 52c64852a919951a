"""Health of a server's supervisor and store, as `/healthz` and `normviz status` report it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..policy import STORE_FULL
from ..runs.store import Store, StoreError, retention
from ..runs.store.counts import StoreCounts, count
from ..runs.store.disk_reserve import scarce
from .client import is_supervised
from .heartbeat import SILENT_SECONDS, listen
from .startup import problem


@dataclass(frozen=True)
class Health:
    """The state of a server.

    supervisor  "alive", "starting" (no worker is warm yet), "failing" (none could start for a minute),
                "silent" (it hangs) or "dead"
    workers     processes of the supervisor at its last heartbeat
    store       "ok", or why it can't be read
    census      counts of the store; None if it can't be read
    limit       maximal bytes of the store, None for no limit
    disk        a sentence if the disk is full, else None
    failing     why no worker can start, else None
    refuses     why no new runs are accepted although all else is well, else None
    """

    supervisor: str
    workers: int
    store: str
    census: StoreCounts | None
    limit: int | None
    disk: str | None = None
    failing: str | None = None
    refuses: str | None = None

    @property
    def is_well(self) -> bool:
        """A store at its limit is well, because its runs are still served."""
        works = self.supervisor in ("alive", "starting")
        return works and self.census is not None and self.disk is None

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {"healthy": self.is_well, **asdict(self)}


def unreadable(why: object) -> Health:
    """The health of a server whose store can't be opened."""
    return Health("dead", 0, str(why), None, None)


def health_of(store: Store, silent: float = 0.0) -> Health:
    """The health of a store's server, whose supervisor has not answered for `silent` seconds."""
    limit = store.policy.store_bytes
    try:
        supervised = is_supervised(store)
        census = count(store.db)
        refuses = STORE_FULL if store.policy.is_shared and retention.is_full(store) else None
    except (StoreError, OSError) as error:
        return unreadable(error)
    failing = problem(store.folder) if supervised else None
    supervisor = "alive" if census.ready or census.running else "starting"
    if failing:
        supervisor = "failing"
    if silent > SILENT_SECONDS:
        supervisor = "silent"
    if not supervised:
        supervisor = "dead"
    workers = census.workers if supervised else 0
    disk = scarce(store.folder)
    return Health(supervisor, workers, "ok", census, limit, disk, failing, refuses)


def read_twice(store: Store) -> Health:
    """The health of a store's server, for a process that checks it once: a single look can't tell whether the
    supervisor hangs, so this waits for a heartbeat, half a second where it is alive. Raises OSError."""
    return health_of(store, listen(store.folder) if is_supervised(store) else 0.0)
