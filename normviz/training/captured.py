"""The engine of a GPU: eager's step, whose kernels a CUDA graph starts by one call.

Eager PyTorch starts about 900 kernels in a step of the hero, and the host needs longer to start one than the
GPU to run it. Forward pass, backward pass and probes are captured; the update, whose learning rate changes,
is not. On one GPU the numbers are eager's bit by bit. On a CPU nothing is captured.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..catalog.norms.batch_torch import WARMUP, PowerNorm
from ..catalog.norms.rms_torch import TAPERED, TaperNorm
from ..config import RunConfig
from ..model.branches import Dropout
from ..model.flat import Flat
from ..model.gains import Multiplier
from ..model.sites import untapped
from ..model.transformer import Transformer
from . import probes
from .eager import Eager, backward
from .engine import Batch, Unsupported

WARM_UP = 3
"""Calls before a capture: PyTorch allocates, and loads libraries and kernels, in the first ones."""


class Replayed:
    """Calls of functions that read and write the same tensors each time: on a GPU the first `calls` as they
    are, on the stream that captures each function then; from there on by one replay. Nothing runs twice."""

    def __init__(self, device: torch.device, calls: float) -> None:
        self.device, self.calls = device, calls
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.pool = torch.cuda.graph_pool_handle() if self.stream else None
        self.graphs: dict[tuple[object, ...], tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def __call__(self, function: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """What the function returns, on the host."""
        if self.stream is None:
            return function(*arguments)
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            if self.calls > 0:
                self.calls -= 1
                return function(*arguments).cpu()
            if arguments not in self.graphs:
                try:
                    self._capture(function, *arguments)
                except RuntimeError as error:
                    warnings.warn(
                        f"the run goes on without a CUDA graph: {str(error).splitlines()[0]}",
                        stacklevel=2,
                    )
                    self.calls = math.inf
                    return function(*arguments).cpu()
            graph, out = self.graphs[arguments]
            graph.replay()
            return out.cpu()  # it waits, so the update reads finished gradients

    def _capture(self, function: Callable[..., Tensor], *arguments: Any) -> None:
        """Record the function's kernels, which run at a replay alone."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, self.pool, self.stream, capture_error_mode="thread_local"):
            out = function(*arguments)
        self.graphs[arguments] = graph, out


def settled(config: RunConfig, model: Transformer) -> int:
    """The first step whose kernels are those of all later ones: ramps are over, running means have begun."""
    first = WARM_UP
    for module in model.modules():
        if isinstance(module, Multiplier) and module.gain.ramp:
            first = max(first, math.ceil(module.gain.ramp * max(config.steps, 1)) + 1)
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


class Captured(Eager):
    """Eager's step by a replay of its kernels. Raises Unsupported for the z-loss. A capture that fails goes
    on as eager, and warns why."""

    name = "captured"

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        if config.zloss:
            raise Unsupported(
                "a CUDA graph has tensors of fixed shapes, and those of the z-loss depend on the targets"
            )
        super().__init__(config, model, flat)
        self.replayed = Replayed(flat.values.device, settled(config, model))
        self.batch: Batch | None = None
        for module in model.modules():  # in place: a wire keeps its modules in tuples too
            if isinstance(module, Dropout) and module.p:
                module.__class__ = Masked
        self.dropouts = [it for it in model.modules() if isinstance(it, Masked)]
        self.numbers: NDArray[np.float64] = np.empty(0)

    def step(self, batch: Batch, watched: bool) -> tuple[float, float]:
        if self.batch is None:
            first, last = (
                torch.empty_like(x, memory_format=torch.contiguous_format) for x in batch
            )
            self.batch = first, last
        for mine, given in zip(self.batch, batch, strict=True):
            mine.copy_(given)
        for dropout in self.dropouts:
            dropout.draw()
        self.numbers = self.replayed(self._pass, watched).numpy()
        return float(self.numbers[0]), float(self.numbers[1])

    def _pass(self, watched: bool) -> Tensor:
        """One pass into the flat gradients. Returns [2] the loss and the norm of the gradients, and if
        watched the RMS of the logits and all probes after it, [3 + probes x rows], float64."""
        assert self.batch is not None
        tap = probes.site_recorder(self.config) if watched else None
        loss = backward(self.model, self.flat, self.batch, tap or untapped)
        head = [loss, torch.linalg.vector_norm(self.flat.grads)]
        if tap is None:
            return torch.stack(head).double()
        seen = probes.StepTensors(self.config, self.flat, tap, self.scales, self.stacks)
        head.append(tap.reduced("logits")[0].view(()))
        return torch.cat((torch.stack(head).double(), probes.probe_tensor(seen).flatten()))

    def layers(self) -> NDArray[np.float64]:
        layers = self.numbers[3:].reshape(-1, self.config.rows + 1).copy()
        probes.add_norm_drift(self.config, layers, self.scales)
        return layers

    def logit_rms(self) -> float:
        return float(self.numbers[2])
