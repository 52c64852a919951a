"""Whether a server's supervisor and store are well: what `/healthz` and `normviz status` say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from . import hosted
from .runner.client import is_supervised
from .runner.heartbeat import SILENT_SECONDS, listen
from .store import Store, StoreError, retention
from .store.admission import FULL
from .store.census import Census, count
from .store.disk_reserve import scarce


@dataclass(frozen=True)
class Health:
    """How a server is.

    supervisor  "alive", "starting" (no worker is warm yet), "silent" (it hangs) or "dead"
    workers     processes that the supervisor had when it last spoke
    store       "ok", or why it can't be read
    census      what the store holds; None where it can't be read
    limit       bytes that the store may take, None for any number
    disk        that the disk is full, as a sentence; None where there is room
    refuses     why no new runs are taken though all else is well; None where they are
    """

    supervisor: str
    workers: int
    store: str
    census: Census | None
    limit: int | None
    disk: str | None = None
    refuses: str | None = None

    @property
    def is_well(self) -> bool:
        """A store that has reached its limit is well: what it has is served."""
        works = self.supervisor in ("alive", "starting")
        return works and self.census is not None and self.disk is None

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"healthy": self.is_well, **asdict(self)}


def unreadable(why: object) -> Health:
    """The health of a server whose store can't be opened."""
    return Health("dead", 0, str(why), None, None)


def look(store: Store, silent: float = 0.0) -> Health:
    """How the server of a store is now, whose supervisor has not answered for `silent` seconds.

    Raises Misconfigured for a limit that is none.
    """
    limit = hosted.store_bytes()
    try:
        supervised = is_supervised(store)
        census, refuses = count(store.db), _refuses(store, limit)
    except (StoreError, OSError) as error:
        return unreadable(error)
    supervisor = "alive" if census.ready or census.running else "starting"
    if silent > SILENT_SECONDS:
        supervisor = "silent"
    if not supervised:
        supervisor = "dead"
    workers = census.workers if supervised else 0
    return Health(supervisor, workers, "ok", census, limit, scarce(store.folder), refuses)


def look_twice(store: Store) -> Health:
    """`look`, for who has not looked before: one look can't tell whether the supervisor hangs.

    Takes half a second where it beats. Raises Misconfigured and OSError.
    """
    return look(store, listen(store.folder) if is_supervised(store) else 0.0)


def _refuses(store: Store, limit: int | None) -> str | None:
    """Why a shared server takes no new runs."""
    if hosted.limits() is None or limit is None:
        return None
    return FULL if retention.is_full(store.db.connection, limit) else None
