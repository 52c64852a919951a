"""Sweeps: one setting or several as axes, every cell a run in the store. Torch-free outside workers.

grid     axes and seeds -> cells, coarse first
drive    what the store lacks of them -> processes of this machine or a Ray cluster -> store
ray      cells as tasks of a Ray cluster
summary  what came out: final losses, frontier, learning-rate sensitivity, comparisons
"""

from ...cores import cores
from ...execution import Began
from .drive import Done, News, Reused, missing, stored, sweep
from .grid import Axis, Cell, Grid, SweepError, grid_of, make
from .ray import Cluster, read_address

__all__ = [
    "Axis", "Began", "Cell", "Cluster", "Done", "Grid", "News", "Reused", "SweepError",
    "cores", "grid_of", "make", "missing", "read_address", "stored", "sweep",
]  # fmt: skip
