"""What every worker needs loaded before it is forked: torch and the trainer."""

from __future__ import annotations

import gc

gc.disable()  # imports make no garbage, and to look for it takes time

import torch  # noqa: E402

from ..training import loop  # noqa: E402, F401 (loaded for the workers)

torch.set_num_threads(1)
gc.collect()
gc.freeze()  # what is loaded stays: collections in the workers look at what came later
gc.enable()
