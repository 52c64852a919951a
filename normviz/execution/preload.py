"""What every worker needs loaded before it is forked: torch and the trainer."""

from __future__ import annotations

import gc

gc.disable()  # a collection finds nothing while modules are loaded, and takes a tenth of the time
import torch  # noqa: E402

from ..training import loop  # noqa: E402, F401 (loaded for the workers)

torch.set_num_threads(1)
gc.enable()
gc.collect()
gc.freeze()  # what is loaded stays: collections in the workers look at what came later
