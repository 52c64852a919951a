"""The timed calls: each variant's module alone, in a block, and in a whole training step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from ...model.data import make_task
from ...model.families import build
from ...model.flat import Flat
from ...model.init import initialise
from ...model.norms import BUILDERS
from ...model.sites import untapped
from ...model.transformer import Transformer
from ...training.captured import Captured
from ...training.eager import Eager
from .result import CostSetting
from .variants import BOTH, CASES, CONTROL, FORWARD, REFERENCE

Call = Callable[[], object]


@contextmanager
def _in_place_of_layernorm(variant: str) -> Iterator[None]:
    """In this context, models are built with the variant instead of LayerNorm."""
    layernorm_builder = BUILDERS["layernorm"]
    BUILDERS["layernorm"] = lambda width, eps, steps=0: build_module(variant, width)
    try:
        yield
    finally:
        BUILDERS["layernorm"] = layernorm_builder


def calls(variant: str, setting: CostSetting, device: torch.device) -> dict[tuple[str, str], Call]:
    """The calls of one variant by (context, passes), on its own modules."""
    model, step = _model(variant, setting, device)
    norm = build_module(variant, setting.width).to(device)
    flat_shape = (setting.tokens, setting.width)
    config = setting.config()
    block, shape = model.blocks[0], (config.batch, config.seq_len, config.width)
    calls_by_case = {
        **_both("alone", norm, lambda x: norm(x), flat_shape, device),
        **_both("block", block, lambda x: block(x, untapped, x), shape, device),
        ("step", BOTH): step,
    }
    assert set(calls_by_case) == set(CASES)
    return calls_by_case


def _both(
    context: str,
    module: nn.Module,
    forward: Callable[[Tensor], Tensor],
    shape: tuple[int, ...],
    device: torch.device,
) -> dict[tuple[str, str], Call]:
    """Two calls: forward, keeping the graph as in training; and forward plus backward to the input and all
    parameters. Input and output gradient are the same draws for every variant."""
    generator = torch.Generator().manual_seed(0)
    x, grad = (torch.randn(shape, generator=generator).to(device) for _ in range(2))
    x.requires_grad_()
    inputs = [x, *module.parameters()]
    return {
        (context, FORWARD): lambda: forward(x),
        (context, BOTH): lambda: torch.autograd.grad(forward(x), inputs, grad),
    }


def _model(variant: str, setting: CostSetting, device: torch.device) -> tuple[Transformer, Call]:
    """A model and its training step by PyTorch, the same as in `training.train` without recorded layers."""
    config = setting.config()
    task = make_task(config)
    with _in_place_of_layernorm(variant):
        model = build(config, task.vocabulary)
    initialise(model, config)
    model.to(device)  # moves the buffers; the flat buffer below takes the parameters
    engine = (Captured if device.type == "cuda" else Eager)(config, model, Flat(model, device))
    numbers = count()

    def step() -> None:
        _, norm = engine.step(task.tensors(next(numbers), device), False)
        engine.update(config.lr, norm, None)

    return model, step


# The module of each variant, [..., width] to [..., width].

EPS = 1e-5
"""The same eps for all variants that have one, because eps is not compared."""


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = EPS) -> Tensor:
    """LayerNorm in elementary operations, [..., d] to [..., d]; arXiv:1607.06450."""
    centred = x - x.mean(-1, keepdim=True)
    r = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return centred * r * weight + bias


def rmsnorm(x: Tensor, weight: Tensor, eps: float = EPS) -> Tensor:
    """RMSNorm in elementary operations, [..., d] to [..., d]; arXiv:1910.07467."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


class HandWrittenLayerNorm(nn.Module):
    """`layernorm` with its parameters, [..., d] to [..., d]."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return layernorm(x, self.weight, self.bias, self.eps)


class HandWrittenRMSNorm(nn.Module):
    """`rmsnorm` with its parameter, [..., d] to [..., d]."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rmsnorm(x, self.weight, self.eps)


class _RMSNorm(torch.autograd.Function):
    """y = w x r with r = (mean(x^2) + eps)^(-1/2), and its gradient written out.

    With g = w dy: dx = r g - x r^3 mean(g x), dw = sum over tokens of dy x r.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        r = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, r)
        return (x * r).mul_(weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        (dy,) = grads
        x, weight, r = ctx.saved_tensors
        g = dy * weight
        lean = (g * x).mean(-1, keepdim=True).mul_(r.pow(3))
        dx = torch.addcmul(g.mul_(r), x, lean, value=-1.0)
        dw = torch.mv((dy * x).flatten(0, -2).t(), r.flatten())
        return dx, dw, None


class FusedRMSNorm(nn.Module):
    """RMSNorm as one function with its own gradient, [..., d] to [..., d]; arXiv:1910.07467."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return _RMSNorm.apply(x, self.weight, self.eps)


# A copy, because another norm replaces LayerNorm in the original while models are timed.
WAYS = {
    **BUILDERS,
    CONTROL: BUILDERS[REFERENCE],
    "layernorm_hand": HandWrittenLayerNorm,
    "rmsnorm_hand": HandWrittenRMSNorm,
    "rmsnorm_fused": FusedRMSNorm,
}


def build_module(variant: str, width: int) -> nn.Module:
    """A new module of a variant. Raises KeyError if it is unknown."""
    return WAYS[variant](width, EPS)
