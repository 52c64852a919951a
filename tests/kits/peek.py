"""Ways to look into a training run: its steps, and the model it builds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import PROBES
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.flat import profile
from normviz.model.init import initialise
from normviz.model.transformer import Transformer
from normviz.training import loop
from normviz.training.events import Step


@contextmanager
def model_seen(noise: float = 0.0) -> Iterator[list[Transformer]]:
    """Lets a test see the model that `train` builds, with noise on its initial values."""
    seen: list[Transformer] = []

    def begin(model: Transformer, config: RunConfig) -> None:
        initialise(model, config)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(noise * torch.randn(p.shape, generator=generator))
        seen.append(model)

    with patch.object(loop, "initialise", begin):
        yield seen


def steps_of(config: RunConfig, record: Collection[int] | None = None) -> list[Step]:
    return [event for event in loop.train(config, record=record) if isinstance(event, Step)]


def at_start(config: RunConfig) -> dict[str, NDArray[np.float64]]:
    """Every probe's values, layer 0 to L, before the first step."""
    (step,) = steps_of(config.replace(steps=0))
    assert step.layers is not None
    return dict(zip(PROBES.keys(), step.layers, strict=False))  # only two streams have all


def begun(config: RunConfig) -> tuple[Transformer, Tensor, Tensor]:
    """The model that `train` would start with, in float64, and the first batch."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    return model.double(), *task.tensors(0, torch.device("cpu"))


def streams(model: Transformer, tokens: Tensor) -> list[Tensor]:
    """The residual stream behind the embedding and behind each block."""
    found: list[Tensor] = []

    def tap(site: str, _index: int, x: Tensor, /) -> Tensor:
        found.append(x.detach()) if site == "stream" else None
        return x

    model(tokens, tap)
    return found
