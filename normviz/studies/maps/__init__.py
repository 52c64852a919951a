"""Sweeps: one setting or several as axes, every cell a run in the store. Torch-free outside workers.

grid      axes and seeds -> cells, coarse first
standard  the sweeps that ship; link  a page of maps as settings and as a link
drive     what the store lacks of a grid -> processes of this machine or a Ray cluster -> store
ray       cells as tasks of a Ray cluster; stacks  cells that GPUs train together
points    a cell's result as numbers; results  those of a grid that the store has so far
summary   what came out: frontier, learning-rate sensitivity, comparisons; layout  the same as maps
"""

from .drive import Done, News, Reused, estimate, missing, reused, stored, sweep
from .grid import Axis, Cell, Grid, SweepError, grid_of, make
from .ray import Cluster, read_address
from .stacks import gpus_of_a_grid

__all__ = [
    "Axis", "Cell", "Cluster", "Done", "Grid", "News", "Reused", "SweepError",
    "estimate", "gpus_of_a_grid", "grid_of", "make", "missing", "read_address", "reused", "stored",
    "sweep",
]  # fmt: skip
