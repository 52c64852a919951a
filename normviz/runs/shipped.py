"""Results that ship with the product, and their way into a store: runs of presets, the tour and
the quick placements, cells of the standard maps, and runs of claims."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..home import shipped
from .archive import keys_of, load
from .store import Store


def adopt(store: Store) -> None:
    """Put every shipped run into the store, unless the store has a finished run of that config. Copies
    that earlier releases left there are deleted."""
    store.drop_copies()
    for path in _files("runs"):
        for run in load(path):
            store.adopt(run)


def adopt_cells(store: Store) -> None:
    """Put every shipped cell into the store, unless the store has a result of that config."""
    for path in _files("maps", "claims"):
        store.keep_all(list(load(path, store.done_keys())), "shipped sweep")


@cache
def cell_keys() -> frozenset[str]:
    """The keys of all results that ship as cells of maps or for claims."""
    return frozenset().union(*map(keys_of, _files("maps", "claims")))


def _files(*folders: str) -> list[Path]:
    return [path for name in folders for path in sorted((shipped("assets") / name).glob("*.npz"))]
