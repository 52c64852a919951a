"""Ways to look into a training run: its steps, and the model it builds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch

from normviz import RunConfig, training
from normviz.events import Step
from normviz.nn.init import initialise
from normviz.nn.transformer import Transformer


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

    with patch.object(training, "initialise", begin):
        yield seen


def steps_of(config: RunConfig, record: Collection[int] | None = None) -> list[Step]:
    return [event for event in training.train(config, record=record) if isinstance(event, Step)]
