"""The timed calls: each variant alone, in a block, and in a whole training step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import torch
from torch import Tensor, nn

from ..data import make_task
from ..nn.flat import Flat
from ..nn.init import initialise
from ..nn.norms import BUILDERS
from ..nn.sites import untapped
from ..nn.transformer import Transformer, build
from ..training import Optimizer, backward, update
from . import modules
from .setting import Setting
from .variants import BOTH, CASES, FORWARD

Call = Callable[[], object]


@contextmanager
def _in_place_of_layernorm(variant: str) -> Iterator[None]:
    """In this context, models are built with the variant instead of LayerNorm."""
    kept = BUILDERS["layernorm"]
    BUILDERS["layernorm"] = lambda width, eps: modules.build(variant, width)
    try:
        yield
    finally:
        BUILDERS["layernorm"] = kept


def calls(variant: str, setting: Setting, device: torch.device) -> dict[tuple[str, str], Call]:
    """The calls of one variant by (context, passes), on its own modules."""
    model, step = _model(variant, setting, device)
    norm = modules.build(variant, setting.width).to(device)
    flat_shape = (setting.tokens, setting.width)
    config = setting.config()
    block, shape = model.blocks[0], (config.batch, config.seq_len, config.width)
    found = {
        **_both("alone", norm, lambda x: norm(x), flat_shape, device),
        **_both("block", block, lambda x: block(x, untapped, x), shape, device),
        ("step", BOTH): step,
    }
    assert set(found) == set(CASES)
    return found


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


def _model(variant: str, setting: Setting, device: torch.device) -> tuple[Transformer, Call]:
    """A model and its training step, the same as in `training.train` without recorded layers."""
    config = setting.config()
    task = make_task(config)
    with _in_place_of_layernorm(variant):
        model = build(config, task.vocabulary)
    initialise(model, config)
    model.to(device)  # moves the buffers; the flat buffer below takes the parameters
    flat = Flat(model, device)
    optimizer = Optimizer(config, flat)
    numbers = count()

    def step() -> None:
        loss = backward(model, flat, task, next(numbers), untapped)
        norm = torch.linalg.vector_norm(flat.grads)
        loss.item()
        update(config, optimizer, flat, config.lr, norm.item())

    return model, step
