"""Sweeps: one setting or several as axes, every cell a run in the store. Torch-free outside workers.

grid     axes and seeds -> cells, coarse first
drive    what the store lacks of them -> workers -> store
early    when a cell counts as dead
summary  what came out: final losses, frontier, learning-rate sensitivity, comparisons
"""

from .drive import Done, News, Reused, cores, missing, stored, sweep
from .grid import Axis, Cell, Grid, SweepError, make, read
from .measured import Measured
from .pool import Began

__all__ = [
    "Axis", "Began", "Cell", "Done", "Grid", "Measured", "News", "Reused", "SweepError", "cores",
    "make", "missing", "read", "stored", "sweep",
]  # fmt: skip
