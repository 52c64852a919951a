"""Whether a server's supervisor and store are well: what `/healthz` and `normviz status` say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from . import hosted
from .runner.client import is_supervised
from .runner.pulse import SILENT_SECONDS
from .store import Store, StoreError
from .store.census import Census, count


@dataclass(frozen=True)
class Health:
    """How a server is.

    supervisor  "alive", "starting" (no worker is warm yet), "silent" (it hangs) or "dead"
    workers     processes that the supervisor had when it last spoke
    store       "ok", or why it can't be read
    census      what the store holds; None where it can't be read
    limit       bytes that the store may take, None for any number
    """

    supervisor: str
    workers: int
    store: str
    census: Census | None
    limit: int | None

    @property
    def is_well(self) -> bool:
        return self.supervisor in ("alive", "starting") and self.census is not None

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
        census = count(store.db)
    except (StoreError, OSError) as error:
        return unreadable(error)
    if not supervised:
        return Health("dead", 0, "ok", census, limit)
    if silent > SILENT_SECONDS:
        return Health("silent", census.workers, "ok", census, limit)
    alive = "alive" if census.ready or census.running else "starting"
    return Health(alive, census.workers, "ok", census, limit)
