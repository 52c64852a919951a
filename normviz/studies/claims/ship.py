"""The runs of claims that ship as a file, limited to those that are small."""

from __future__ import annotations

from pathlib import Path

from ...runs.archive import keys_of, save_cells
from ...runs.shipped import cell_keys
from ...runs.store import Store
from ..maps.drive import stored
from .records import CLAIMS
from .stored import shipped_lanes

DEEP, FEW = 200, 40
"""Runs of more blocks, and runs of claims that have more runs, ship only if a link opens them: all of them
would take 45 MB."""
STEPS = 20
"""Recorded steps that keep their layers, enough for all of a sweep's run."""


def save_runs(store: Store, path: Path) -> str:
    """Write the runs that links open, and all shallow runs of claims that have few. Returns a summary."""
    opens = {lane.key for claim in CLAIMS for lane in shipped_lanes(claim)}
    there = cell_keys() - (keys_of(path) if path.exists() else frozenset())
    wanted = dict.fromkeys(
        cell.key
        for claim in CLAIMS
        if not claim.lab
        for cells in [claim.cells()]
        for cell in cells
        if cell.key not in there
        and (cell.key in opens or (cell.config.depth < DEEP and len(cells) <= FEW))
    )
    runs = [run for key in wanted if (run := stored(store, key)) is not None]
    if not runs:
        return "no run that does not ship already"
    save_cells(map(store.recording, runs), path, STEPS)
    return f"{path.name}: {len(runs)} runs, {path.stat().st_size / 1e6:.1f} MB"
