"""The same model of one's own, with its norms in several places, trained on the same batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, nn

from ..limits import MAX_LANES
from ..result import Duel, Result
from .move import move
from .watch import watch

RATE = 1e-3
"""Learning rate of AdamW, where no optimizer is given."""


def duel(
    make_model: Callable[[], nn.Module],
    batches: Iterable[Any],
    placements: Sequence[str],
    steps: int = 200,
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
    loss: Callable[[nn.Module, Any], Tensor] | None = None,
    inputs: Any = None,
    blocks: str | None = None,
    norm: Callable[[int], nn.Module] | None = None,
    seed: int = 0,
    to: str | None = "store",
) -> Duel:
    """Train and watch the model that `make_model` makes, with its norms placed as each of `placements`.

    Every lane makes its model from the same seed, so that all parameters start alike, and sees the same
    batches in the same order; they repeat if they are fewer than `steps`. A lane ends with the first loss
    that is no number. `loss` gives the loss of a model on a batch; without it, that is
    `model(**batch).loss`. `optimizer` makes an optimizer of parameters, by default AdamW at 0.001. `to` is
    "store" (the app's History page) or None. Other arguments are those of `move`. The random generators stay
    as they are. Raises MoveError, and ValueError for no batch and for more than four placements.
    """
    given = [batch for batch, _ in zip(batches, range(steps), strict=False)]
    if not given:
        raise ValueError("batches is empty: give at least one batch")
    if not 1 <= len(placements) <= MAX_LANES:
        raise ValueError(f"placements has {len(placements)} of them, allowed are 1 to {MAX_LANES}")

    name = uuid4().hex[:12]

    def trained(placement: str) -> Result:
        torch.manual_seed(seed)
        model = move(make_model(), placement, inputs=inputs, blocks=blocks, norm=norm).train()
        made = (optimizer or _adamw)(model.parameters())
        torch.manual_seed(seed + 1)
        with watch(model, made, blocks=blocks, to=to) as watcher:
            # The placement also where others look like it.
            watcher.settings = watcher.settings.replace(placement=placement, batches=name)
            for _, batch in zip(range(steps), cycle(given), strict=False):
                value = (loss or _loss)(model, batch)
                made.zero_grad()
                value.backward()
                watcher.step(value)
                made.step()
                if not math.isfinite(value.item()):
                    break
        return watcher.result

    with torch.random.fork_rng():
        return Duel(*map(trained, placements))


def _adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=RATE)


def _loss(model: nn.Module, batch: Any) -> Tensor:
    """The loss that a model of Hugging Face computes itself. Raises ValueError."""
    if not isinstance(batch, Mapping):
        raise ValueError(
            f"a batch is a {type(batch).__name__}: give a table of inputs with labels, as "
            "model(**batch).loss takes it, or loss=lambda model, batch: ..."
        )
    return model(**batch).loss
