"""An engine that captures a step's forward and backward pass once as a CUDA graph, and replays it.

Eager PyTorch starts about 900 kernels in a step of the hero, and the host needs longer to start one than the
GPU to run it. A graph starts them all by one call. Forward pass, backward pass and probes are captured. The
update has few kernels, and its learning rate and clipping change from step to step: it stays eager's.

The first steps run as eager's do, on the stream that captures later: PyTorch needs a few passes before a
capture, and some modules depend on the number of the pass (`settled`). Nothing runs twice, so on one GPU the
numbers are eager's bit by bit. On a CPU nothing is captured, and each step runs what would have been.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from normviz.catalog.norms.batch_torch import WARMUP, PowerNorm
from normviz.catalog.norms.rms_torch import TAPERED, TaperNorm
from normviz.config import RunConfig
from normviz.model.branches import Dropout
from normviz.model.flat import Flat
from normviz.model.gains import Multiplier
from normviz.model.sites import untapped
from normviz.model.transformer import Transformer
from normviz.training import probes
from normviz.training.eager import Eager, backward
from normviz.training.engine import Batch
from normviz.training.probes.instruments import PROBES, StepTensors, _instruments, keys_of

WARM_UP = 3
"""Steps on the capturing stream before the capture: allocations, cuBLAS handles, lazy modules."""


def settled(config: RunConfig, model: Transformer) -> int:
    """The first step whose kernels are those of all later ones: ramps are over, running means have begun."""
    first = WARM_UP
    for module in model.modules():
        if isinstance(module, Multiplier) and module.gain.ramp:
            first = max(first, ceil(module.gain.ramp * max(config.steps, 1)) + 1)
        elif isinstance(module, PowerNorm):
            first = max(first, WARMUP + 1)
        elif isinstance(module, TaperNorm) and config.steps:
            first = max(first, round(TAPERED * config.steps) + 2)
    return first


class Masked(Dropout):
    """Dropout by a mask on the device, which `draw` fills before a step."""

    drawn: Tensor | None = None

    def draw(self) -> None:
        """Draw the mask of the present step."""
        if self.drawn is not None:
            mask = torch.from_numpy(self.mask(self.drawn.numel()))
            self.drawn.copy_(mask.view(self.drawn.shape))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        if self.drawn is None:
            self.drawn = torch.empty_like(x, memory_format=torch.contiguous_format)
            self.draw()
        return x * self.drawn


def mask_dropouts(model: Transformer) -> list[Masked]:
    """Make each dropout that drops a `Masked`, in place: a wire keeps its modules in tuples too."""
    found = [it for it in model.modules() if isinstance(it, Dropout) and it.p]
    for dropout in found:
        dropout.__class__ = Masked
    return [it for it in found if isinstance(it, Masked)]


class Captured(Eager):
    """Eager's kernels, started by a replay. Raises ValueError for the z-loss, and RuntimeError in the step
    that captures, where it copies from or to the host."""

    name = "captured"

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        if config.zloss:
            raise ValueError("a CUDA graph does not run the z-loss, whose shape depends on targets")
        super().__init__(config, model, flat)
        device = flat.values.device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.pool = torch.cuda.graph_pool_handle() if self.stream else None
        self.graphs: dict[bool, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self.first, self.taken = settled(config, model), 0
        self.batch: Batch | None = None
        self.dropouts = mask_dropouts(model)
        self.numbers: NDArray[np.float64] = np.empty(0)

    def step(self, batch: Batch, watched: bool) -> tuple[float, float]:
        if self.batch is None:
            inputs, targets = (
                torch.empty_like(x, memory_format=torch.contiguous_format) for x in batch
            )
            self.batch = inputs, targets
        for mine, given in zip(self.batch, batch, strict=True):
            mine.copy_(given)
        for dropout in self.dropouts:
            dropout.draw()
        self.numbers = self._on_stream(watched).numpy()
        self.taken += 1
        return float(self.numbers[0]), float(self.numbers[1])

    def _on_stream(self, watched: bool) -> Tensor:
        """The numbers of a step, on the host."""
        if self.stream is None:
            return self._pass(watched)
        self.stream.wait_stream(torch.cuda.current_stream())  # the update and the batch
        with torch.cuda.stream(self.stream):
            if self.taken < self.first:
                return self._pass(watched).cpu()
            if watched not in self.graphs:  # capturing runs no kernel; the replay after it does
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(
                    graph, self.pool, self.stream, capture_error_mode="thread_local"
                ):
                    out = self._pass(watched)
                self.graphs[watched] = graph, out
            graph, out = self.graphs[watched]
            graph.replay()
            return out.cpu()  # waits, so other streams read finished gradients

    def _pass(self, watched: bool) -> Tensor:
        """What is captured: one pass into the flat gradients. Returns [2] the loss and the norm of the
        gradients, and if watched the RMS of the logits and all probes after it, [3 + probes x rows],
        float64."""
        assert self.batch is not None
        tap = probes.site_recorder(self.config) if watched else None
        loss = backward(self.model, self.flat, self.batch, tap or untapped)
        size = torch.linalg.vector_norm(self.flat.grads)
        if tap is None:
            return torch.stack((loss.double(), size.double()))
        seen = StepTensors(self.config, self.flat, tap, self.scales, self.stacks)
        logits = tap.reduced("logits")[0].view(())
        head = torch.stack((loss.double(), size.double(), logits.double()))
        return torch.cat((head, on_device(seen).flatten()))

    def layers(self) -> NDArray[np.float64]:
        layers = self.numbers[3:].reshape(-1, self.config.rows + 1).copy()
        if "norm_drift" in (keys := keys_of(self.config)):
            layers[keys.index("norm_drift"), 1:] = self.scales.drift()
        return layers

    def logit_rms(self) -> float:
        return float(self.numbers[2])


@torch.no_grad()
def on_device(seen: StepTensors) -> Tensor:
    """`probe_values` without its copy to the host, and without `norm_drift`, which the host computes."""
    recorded, device = keys_of(seen.config), seen.flat.values.device
    shape = (len(recorded), seen.config.rows + 1)
    out = torch.full(shape, torch.nan, dtype=torch.float64, device=device)
    for keys, instrument in _instruments(seen.config).items():
        if keys[0] not in recorded or keys[0] == "norm_drift":
            continue
        values = instrument(seen)
        for key, value in zip(
            keys, values if isinstance(values, tuple) else (values,), strict=True
        ):
            out[recorded.index(key), PROBES[key].first_layer :] = value
    return out
