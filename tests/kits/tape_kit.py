"""One step of a model on both engines, and on eager in float64."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from normviz import RunConfig
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.flat import Flat, profile
from normviz.model.init import initialise
from normviz.training.eager import Eager
from normviz.training.tape.engine import Tape

CPU = torch.device("cpu")


@dataclass
class Compared:
    """Loss, all gradients and all probes of one batch."""

    config: RunConfig
    loss: dict[str, float]
    grads: dict[str, Tensor]
    layers: dict[str, NDArray[np.float64]]

    def error(self, engine: str) -> float:
        """Relative L2 error of all gradients, against float64."""
        exact = self.grads["exact"]
        return float((self.grads[engine].double() - exact).norm() / exact.norm())


def compare(config: RunConfig, share: float = 0.0, noise: float = 0.2) -> Compared:
    """A step at this share of the run, on parameters moved by noise."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    model.clock.share = share
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            size = noise / 10 if p.ndim > 1 else noise
            p.add_(torch.randn(p.shape, generator=generator) * size)
    exact = copy.deepcopy(model).double()
    flat, batch = Flat(model, CPU), task.tensors(0, CPU)
    found = Compared(config, {}, {}, {})
    for engine in (Eager(config, model, flat), Tape(config, model, flat)):
        with torch.no_grad():  # each engine writes all gradients anew
            for p in model.parameters():
                assert p.grad is not None
                p.grad.fill_(torch.nan)
        found.loss[engine.name], _ = engine.step(batch, True)
        found.grads[engine.name] = flat.grads.clone()
        found.layers[engine.name] = engine.layers()
    loss = exact.loss(*batch)
    loss.backward()
    found.loss["exact"] = loss.item()
    flat.grads.zero_()
    wide = torch.zeros_like(flat.grads, dtype=torch.float64)
    for p, q in zip(model.parameters(), exact.parameters(), strict=True):
        assert p.grad is not None
        at = p.grad.storage_offset()
        if q.grad is not None:
            wide[at : at + p.numel()] = q.grad.flatten()
    found.grads["exact"] = wide
    return found
