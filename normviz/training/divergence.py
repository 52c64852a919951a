"""When a run counts as diverged, at which step, and in which layer it began.

At once: the loss or a gradient is NaN or inf. Or after some time: the loss has been above 100
times chance for 20 steps in a row and has not fallen in them. (A run that starts that high and
falls may still recover.) The second rule is needed because a model can fail without a NaN:
without norms and with Xavier, 12 and 16 blocks sit at losses of hundreds to thousands with
attention logits of 1e5 to 1e10, all finite. (The fused attention kernel of PyTorch turns the same
runs into NaN within 60 steps, in its backward pass; the attention written out here does not.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ..model.data import Task
from ..model.flat import Flat
from ..model.recurrent import Recurrent
from ..model.transformer import Transformer
from .events import Diverged
from .probes import Recorder

TIMES_CHANCE = 100.0
"""A loss is too high from this many times chance on."""
PATIENCE = 20
"""Steps in a row that it may be too high without falling."""
TIMES_EMBEDDING = 100.0
"""A blow-up begins in the first block whose stream has this many times the embedding's RMS."""


class DivergenceGuard:
    """Checks every step after its backward pass and before its update. `load` is called before it looks for
    the layer, where the model has to get the run's parameters and gradients first."""

    def __init__(
        self,
        model: Transformer,
        flat: Flat,
        task: Task,
        load: Callable[[], object] = lambda: None,
    ) -> None:
        self.model, self.flat, self.task, self.load = model, flat, task, load
        # Of a recurrent net the stream comes layer by layer, and its rows are time steps.
        self.layers = len(model.blocks) if isinstance(model, Recurrent) else 1
        self.began: Diverged | None = None
        self.losses: list[float] = []

    def check(self, step: int, loss: float, grad_norm: float) -> Diverged | None:
        """How the run diverged, or None if it has not (yet); `loss` in nats, `grad_norm` before clipping."""
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            return self._non_finite(step)
        if loss <= TIMES_CHANCE * self.task.chance:
            self.began = None
            return None
        if self.began is None:
            self.began, self.losses = Diverged(step, self._outgrown(step), "blow-up"), []
        self.losses.append(loss)
        if len(self.losses) < PATIENCE:
            return None
        half = PATIENCE // 2
        if sum(self.losses[half:]) < sum(self.losses[:half]):
            self.losses = self.losses[half:]
            return None
        layer = self.began.layer
        return replace(self.began, layer=self._outgrown(step) if layer is None else layer)

    @torch.no_grad()
    def _forward(self, step: int) -> tuple[list[Tensor], Tensor]:
        """The stream after the embedding and each block, and the loss, on a step's batch."""
        self.load()
        inputs, targets = self.task.tensors(step, self.flat.values.device)
        tap = Recorder(("stream",))
        loss = self.model.loss(inputs, targets, tap)
        return tap.seen["stream"], loss

    def _outgrown(self, step: int) -> int | None:
        """The first block whose stream is TIMES_EMBEDDING times as large as the embedding; None for none."""
        stream, _ = self._forward(step)
        rows = len(stream) // self.layers
        size = [float(torch.linalg.vector_norm(x)) for x in stream]
        return next(
            (b % rows for b, s in enumerate(size) if s > TIMES_EMBEDDING * size[0] > 0), None
        )

    def _non_finite(self, step: int) -> Diverged:
        """Where a non-finite number came first: forwards through the stream, else back from the
        loss. Layer 0 is the embedding, None the output head."""
        stream, loss = self._forward(step)
        bad = [b for b, x in enumerate(stream) if not bool(x.isfinite().all())]
        if bad:
            return Diverged(step, bad[0] % (len(stream) // self.layers), "activation")
        if not bool(loss.isfinite()):
            return Diverged(step, None, "loss")
        if isinstance(self.model, Recurrent):  # a layer is no time step
            return Diverged(step, None, "gradient")
        largest = self.flat.block_grads.abs().amax(1)
        if bool(self.flat.grads.isfinite().all()):  # each number is, their norm is not
            return Diverged(step, int(largest.argmax()) + 1, "gradient norm")
        blocks = [b for b, top in enumerate(largest.tolist(), start=1) if not math.isfinite(top)]
        return Diverged(step, max(blocks, default=0), "gradient")
