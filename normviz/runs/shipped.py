"""Results that ship with the product, and their way into a store: runs of presets, the tour and
the quick placements, cells of the standard maps, and runs of claims."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Sequence, Set
from functools import cache
from pathlib import Path

from ..home import shipped
from .archive import keys_of, load
from .recording import Recording
from .store import Store, pictures
from .store.pictures import Picture

PICTURE = "hero.picture"
"""The file beside the shipped runs with the picture of the duel that the app opens with."""


def adopt(store: Store) -> None:
    """Put every shipped run into the store, unless the store has a finished run of that config, and the
    picture of the duel that the app opens with."""
    for path in files("runs"):
        for run in load(path):
            store.adopt(run)
    keys, picture = load_picture(shipped("assets") / "runs" / PICTURE)
    runs = [run.id for key in keys if (run := store.latest(key)) is not None and run.is_shipped]
    if len(runs) == len(keys) and pictures.of(store, runs) is None:
        pictures.ask(store, runs, None)
        pictures.keep(store, runs, picture)


def adopt_cells(store: Store, keys: Collection[str] | None = None) -> None:
    """Put the shipped cells with these keys, by default all, into the store, except those whose results the
    store has."""
    for path in files("maps", "claims") if keys is None else _files_of(keys):
        store.adopt_cells(list(load(path, store.done_keys(), keys)))


def cells(keys: Collection[str]) -> Iterator[Recording]:
    """The shipped cells with these keys, each once."""
    left = set(keys)
    for path in _files_of(keys):
        for recording in load(path, only=left):
            left.discard(recording.key)
            yield recording


def _files_of(keys: Collection[str]) -> list[Path]:
    """The files that hold shipped cells with these keys."""
    return sorted({path for key in keys for path in _cell_files().get(key, ())})


def cell_keys() -> Set[str]:
    """The keys of all results that ship as cells of maps or for claims."""
    return _cell_files().keys()


@cache
def _cell_files() -> dict[str, list[Path]]:
    """The files that hold the cells of each key."""
    found: dict[str, list[Path]] = {}
    for path in files("maps", "claims"):
        for key in keys_of(path):
            found.setdefault(key, []).append(path)
    return found


def files(*folders: str) -> list[Path]:
    """The files with shipped runs, of the folders "runs", "maps" or "claims"."""
    return [path for name in folders for path in sorted((shipped("assets") / name).glob("*.npz"))]


def save_picture(keys: Sequence[str], picture: Picture, path: Path) -> None:
    """Write a picture and the keys of its lanes to a file."""
    card = b64encode(picture.card).decode()
    content = {"keys": list(keys), "light": picture.light, "dark": picture.dark, "card": card}
    path.write_bytes(zlib.compress(json.dumps(content).encode(), 9))


def load_picture(path: Path) -> tuple[list[str], Picture]:
    """The keys of the lanes and the picture of a file."""
    content = json.loads(zlib.decompress(path.read_bytes()))
    return content["keys"], Picture(content["light"], content["dark"], b64decode(content["card"]))
