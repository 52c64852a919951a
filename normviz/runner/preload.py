"""What every worker needs loaded before it is forked: torch, the trainer, the optimizer's imports."""

from __future__ import annotations

import gc

import torch

from .. import training  # noqa: F401 (loaded for the workers)

torch.set_num_threads(1)
# The first AdamW of a process imports torch._dynamo: two seconds that must not follow a click.
torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], fused=True)
gc.collect()
gc.freeze()  # what is loaded stays: collections in the workers look at what came later
