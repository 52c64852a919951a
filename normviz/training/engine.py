"""An engine computes the steps of a run: loss and gradients of a batch, the probes, and the update.

`train` does not know which engine it has. `eager` runs every config on every device. Faster are `tape`,
which runs what its operations cover, in float32 on a CPU, and `captured`, which is eager by one call a step
on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Batch: TypeAlias = "tuple[Tensor, Tensor]"
"""Inputs and targets [B, T] int64."""

Choice = Literal["auto", "tape", "captured", "eager"]
"""Which engine is wanted, with eager for what it does not run; auto is the tape on a CPU, else captured."""


class Unsupported(Exception):
    """One sentence: which part of a run an engine does not run."""


class Engine(Protocol):
    """Computes the steps of one run on the model's flat buffers."""

    name: str
    threads: int
    """Threads of a step."""

    def step(self, batch: Batch, watched: bool) -> tuple[float, float]:
        """Loss of a batch in nats, and the L2 norm of all its gradients, which are then in the flat buffer.
        `layers` needs `watched`."""
        ...

    def layers(self) -> NDArray[np.float64]:
        """All probes of the last step except the update ratio, [probes, L+1] as in `events.Step`.
        Call it before `update`."""
        ...

    def logit_rms(self) -> float:
        """RMS of the last step's logits over all positions, sequences and symbols. It needs `watched`."""
        ...

    def update(self, lr: float, grad_norm: float, layers: NDArray[np.float64] | None) -> None:
        """Clip gradients of the norm `grad_norm`, move the parameters at this learning rate, and keep the
        scheme's constraint and QK-clip. Writes the update ratio into `layers` where they are given."""
        ...

    def evaluate(self, batch: Batch) -> float:
        """Loss of a batch in nats in evaluation mode: no dropout, running statistics as they are. Changes
        nothing that a later step reads."""
        ...

    def next_logits(self, tokens: Tensor) -> NDArray[np.float32]:
        """The logits [V] of the token after tokens [1, T], in evaluation mode. Changes nothing that a later
        step reads; `layers` and `logit_rms` of the last step are read before."""
        ...

    def looks(self) -> NDArray[np.float32]:
        """[L, T] how much the last of the tokens of `next_logits` attends to each, in each block the mean
        over its heads; empty without attention. Call it before any other pass."""
        ...
