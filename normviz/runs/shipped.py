"""Results that ship with the product, and their way into a store: runs of presets, the tour and
the quick placements, cells of the standard maps, and runs of claims."""

from __future__ import annotations

from collections.abc import Set
from functools import cache
from pathlib import Path

from ..home import shipped
from .archive import keys_of, load
from .store import Store


def adopt(store: Store) -> None:
    """Put every shipped run into the store, unless the store has a finished run of that config."""
    for path in _files("runs"):
        for run in load(path):
            store.adopt(run)


def adopt_cells(store: Store) -> None:
    """Put every shipped cell into the store, unless the store has a result of that config."""
    for path in _files("maps", "claims"):
        store.adopt_cells(list(load(path, store.done_keys())))


def adopt_cell(store: Store, key: str) -> None:
    """Put the shipped cells of the settings with this key into the store, unless it has a result of them."""
    for path in _cell_files().get(key, ()):
        store.adopt_cells(list(load(path, store.done_keys(), key)))


def cell_keys() -> Set[str]:
    """The keys of all results that ship as cells of maps or for claims."""
    return _cell_files().keys()


@cache
def _cell_files() -> dict[str, list[Path]]:
    """The files that hold the cells of each key."""
    found: dict[str, list[Path]] = {}
    for path in _files("maps", "claims"):
        for key in keys_of(path):
            found.setdefault(key, []).append(path)
    return found


def _files(*folders: str) -> list[Path]:
    return [path for name in folders for path in sorted((shipped("assets") / name).glob("*.npz"))]
