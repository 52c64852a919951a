"""Everything that ships as counts and hashes: equal before and after a change that keeps it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import typer

from normviz.catalog import SCHEMES
from normviz.lessons.presets import PRESETS
from normviz.result import Duel, result_of
from normviz.runs import shipped
from normviz.runs.frames import Frames
from normviz.runs.store import Store
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.drive import stored_result as from_runs
from normviz.studies.claims.stored import folder, read_result
from normviz.studies.maps.link import standard
from normviz.studies.maps.points import read_points as points
from normviz.studies.maps.standard import MAPS

RUN = (
    "key, config, status, origin, probes, device, threads, parameters, chance, floor, text, "
    "bad_step, bad_layer, bad_where, message"
)
STEP = "step, loss, lr, grad_norm, layers"


def main() -> None:
    """Put it all into a fresh store and read it back. A line a kind: how many there are, and a hash of
    their keys, settings, words and arrays; and the size of the first duel in a notebook."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name))
        shipped.adopt(store)
        shipped.adopt_cells(store)
        kinds = {
            "runs of the presets, the tour and the quick placements": _rows(store, "shipped"),
            "cells of maps and runs behind claims": _rows(store, "shipped sweep"),
            "cells as the maps show them": _cells(store),
            "claims as shipped": (
                repr(asdict(read_result(it))) for it in sorted(folder().glob("*.json"))
            ),
            "claims read anew from their runs": _claims(store),
        }
        for kind, found in kinds.items():
            print(_line(kind, found), flush=True)
        print(*_notebook(store), sep="\n")


def _rows(store: Store, origin: str) -> Iterator[str]:
    """Of each run its row and the rows of its steps, as the database has them."""
    db = store.db.connection
    for row in db.execute(f"SELECT id, {RUN} FROM runs WHERE origin = ? ORDER BY id", (origin,)):
        number, *about = tuple(row)
        steps = db.execute(f"SELECT {STEP} FROM steps WHERE run = ? ORDER BY step", (number,))
        yield repr((about, [tuple(step) for step in steps]))


def _cells(store: Store) -> Iterator[str]:
    for one in MAPS:
        for point in points(store, standard(one.key).grid):
            yield repr(replace(point, run=0, seconds=0.0))


def _claims(store: Store) -> Iterator[str]:
    for claim in CLAIMS:
        if (result := from_runs(store, claim)) is not None:
            yield repr(asdict(replace(result, date="", seconds=0.0)))


def _notebook(store: Store) -> Iterator[str]:
    """What the player of one lane, and of both, adds to the file of a notebook."""
    frames, results = Frames(store), []
    for lane in PRESETS["hero"].lanes():
        if (run := store.latest(lane.key)) is not None:
            results.append(result_of(frames.recording(run)))
            size = len(Duel(*results)._repr_html_().encode())
            names = " and ".join(SCHEMES.label(one.config.scheme) for one in results)
            yield f"{size / 1e6:.1f} MB in a notebook: {names}"


def _line(kind: str, found: Iterator[str]) -> str:
    whole, n = hashlib.sha256(), 0
    for one in found:
        whole.update(one.encode())
        n += 1
    return f"{n:5,}  {whole.hexdigest()[:16]}  {kind}"


if __name__ == "__main__":
    typer.run(main)
