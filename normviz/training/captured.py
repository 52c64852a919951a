"""The engine of a GPU: eager's step, whose kernels a CUDA graph starts by one call.

Eager PyTorch starts about 900 kernels in a step of the preset `hero`, and the host needs longer to start one
than the GPU to run it. Forward pass, backward pass and probes are captured; the update, whose learning rate
changes, is not. On one GPU the numbers are eager's bit by bit. On a CPU nothing is captured.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..catalog.norms.batch_torch import WARMUP, PowerNorm
from ..catalog.norms.rms_torch import TAPERED, TaperNorm
from ..config import RunConfig
from ..model.branches import Dropout
from ..model.flat import Flat
from ..model.gains import Multiplier
from ..model.transformer import Transformer
from .eager import Eager
from .engine import Batch, Unsupported

WARM_UP = 3
"""Calls before a capture: PyTorch allocates, and loads libraries and kernels, in the first ones."""


class Replayed:
    """Calls of functions that read and write the same tensors each time: on a GPU the first `calls` as they
    are, on the stream that captures each function then; from there on by one replay. Nothing runs twice. A
    capture that fails warns why, and calls stay as they are."""

    def __init__(self, device: torch.device, calls: float) -> None:
        self.device, self.calls = device, calls
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.pool = torch.cuda.graph_pool_handle() if self.stream else None
        self.graphs: dict[tuple[object, ...], tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def __call__(self, function: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """What the function returns, on the host."""
        if self.stream is None:
            return function(*arguments).cpu()
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            self.calls -= 1
            if self.calls < 0 and arguments not in self.graphs:
                try:
                    self._capture(function, *arguments)
                except RuntimeError as error:
                    why = str(error).splitlines()[0]
                    warnings.warn(f"the run goes on without a CUDA graph: {why}", stacklevel=2)
                    self.calls = math.inf
            if self.calls >= 0:
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


class Captured(Eager):
    """Eager's step by a replay of its kernels. Raises Unsupported for the z-loss."""

    name = "captured"

    def __init__(self, config: RunConfig, model: Transformer, flat: Flat) -> None:
        if config.zloss:
            raise Unsupported(
                "a CUDA graph has tensors of fixed shapes, and those of the z-loss depend on the targets"
            )
        super().__init__(config, model, flat)
        self.replayed = Replayed(flat.values.device, settled(config, model))
        self.batch: Batch | None = None
        self.dropouts = [it for it in model.modules() if isinstance(it, Dropout)]

    def numbers_of(self, batch: Batch, watched: bool) -> Tensor:
        batch = self.batch = in_tensors_of(self.batch, batch)
        for dropout in self.dropouts:
            dropout.draw()
        once = super().numbers_of
        return self.replayed(lambda watched: once(batch, watched), watched)


def in_tensors_of(old: Batch | None, batch: Batch) -> Batch:
    """A batch in the tensors of the one before, which a captured pass reads; the first one in its own."""
    if old is None:
        return batch[0].clone(), batch[1].clone()
    return old[0].copy_(batch[0]), old[1].copy_(batch[1])
