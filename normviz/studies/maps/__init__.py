"""Sweeps: one setting or several as axes, every cell a run in the store. Torch-free outside workers.

grid     axes and seeds -> cells, coarse first
drive    what the store lacks of them -> processes of this machine or a Ray cluster -> store
ray      cells as tasks of a Ray cluster
stacks   cells that GPUs train together
summary  what came out: final losses, frontier, learning-rate sensitivity, comparisons
"""

from ...cores import cores
from ...execution import Began
from .drive import Done, News, Reused, estimate, missing, reused, stored, sweep
from .grid import Axis, Cell, Grid, SweepError, grid_of, make
from .ray import Cluster, read_address
from .stacks import gpus_of_a_grid

__all__ = [
    "Axis", "Began", "Cell", "Cluster", "Done", "Grid", "News", "Reused", "SweepError",
    "cores", "estimate", "gpus_of_a_grid", "grid_of", "make", "missing", "read_address", "reused", "stored",
    "sweep",
]  # fmt: skip
