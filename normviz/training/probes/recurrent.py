"""The quantities of a recurrent net: a row is a time step, of all layers together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from .recorder import Recorder

SITES = ("stream", "branch_in", "product_h", "product_x")
GRADIENTS = ("stream", "product_h", "product_x")


def grad_step(recorder: Recorder, layers: int) -> Tensor:
    """[T] L2 norm of what each time step adds to the loss gradient of W_h and W_x of all layers.

    The step's term is (dL/dz_t)^T h_{t-1} for W_h and (dL/dz_t)^T x_t for W_x, z the product of that matrix.
    """
    square = torch.zeros(())
    states, products = (
        _by_layer(recorder, "stream", layers),
        _by_layer(recorder, "product_h", layers),
    )
    for i in range(layers):
        before = torch.stack([x.detach() for x in states[i][:-1]])  # [T, B, D]
        from_h = _grads(products[i])  # [T, B, G]
        x = recorder.seen["branch_in"][i].detach().transpose(0, 1)
        from_x = recorder.seen["product_x"][i].grad.transpose(0, 1)
        for grads, read in ((from_h, before), (from_x, x)):
            term = grads.transpose(1, 2) @ read  # [T, G, D]
            square = square + term.double().square().sum((1, 2))
    return square.sqrt()


def grad_state(recorder: Recorder, layers: int) -> Tensor:
    """[T+1] L2 norm of the loss gradient of the hidden states of all layers at each time step."""
    states = _by_layer(recorder, "stream", layers)
    grads = torch.stack([_grads(of) for of in states])  # [L, T+1, B, D]
    return torch.linalg.vector_norm(grads, dim=(0, 2, 3))


def state_sizes(recorder: Recorder, layers: int) -> tuple[Tensor, Tensor]:
    """RMS and largest absolute number of the hidden states of all layers, both [T+1]; h_0 is 0."""
    states = _by_layer(recorder, "stream", layers)
    x = torch.stack([torch.stack([x.detach() for x in of]) for of in states])  # [L, T+1, B, D]
    return x.square().mean((0, 2, 3)).sqrt(), x.abs().amax((0, 2, 3))


OfLayers: TypeAlias = "Callable[[Recorder, int], Tensor | tuple[Tensor, ...]]"
INSTRUMENTS: dict[tuple[str, ...], OfLayers] = {
    ("grad_block",): grad_step,
    ("grad_hidden",): grad_state,
    ("stream_rms", "stream_max"): state_sizes,
}


def _grads(tensors: list[Tensor]) -> Tensor:
    """The loss gradients of tensors, stacked."""
    return torch.stack([x.grad for x in tensors if x.grad is not None])


def _by_layer(recorder: Recorder, site: str, layers: int) -> list[list[Tensor]]:
    """The tensors of a site, a list for each layer; they are passed layer by layer."""
    every = recorder.seen[site]
    steps = len(every) // layers
    return [every[i * steps : (i + 1) * steps] for i in range(layers)]
