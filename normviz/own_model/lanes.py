"""The same model of one's own, with its norms in several places, trained on the same batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

from ..catalog import SCHEMES
from .move import move

RATE = 1e-3
"""Learning rate of AdamW, where no optimizer is given."""
END = 0.1
"""Share of the steps whose mean is the final loss."""


@dataclass
class Lane:
    """One placement: the loss of each step, up to the first one that is no number."""

    placement: str
    losses: list[float] = field(default_factory=list)
    steps: int = 0

    @property
    def final(self) -> float:
        """Mean loss of the last tenth of the steps; NaN if training broke off."""
        if len(self.losses) < self.steps:
            return math.nan
        last = self.losses[-max(1, int(END * self.steps)) :]
        return sum(last) / len(last)


@dataclass
class Lanes:
    """The lanes of a duel, by placement, in the order that was asked for."""

    lanes: dict[str, Lane]
    seed: int

    def __getitem__(self, placement: str) -> Lane:
        return self.lanes[placement]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of `losses`: placement, step, loss."""
        rows = [
            {"placement": key, "step": step, "loss": loss}
            for key, lane in self.lanes.items()
            for step, loss in enumerate(lane.losses)
        ]
        return {"losses": rows}

    def __str__(self) -> str:
        lines = [f"{'placement':24} {'first loss':>10} {'final loss':>10}   one seed, {self.seed}"]
        for key, lane in self.lanes.items():
            final = f"{lane.final:10.4f}" if math.isfinite(lane.final) else "  diverged"
            first = lane.losses[0] if lane.losses else math.nan
            lines.append(f"{SCHEMES.label(key):24} {first:10.4f} {final}")
        return "\n".join(lines)


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
) -> Lanes:
    """Train the model that `make_model` makes, with its norms placed as each of `placements`.

    Every lane makes its model from the same seed, so that all parameters start alike, and sees the same
    batches in the same order; they repeat if they are fewer than `steps`. `loss` gives the loss of a model
    on a batch; without it, that is `model(**batch).loss`. `optimizer` makes an optimizer of parameters, by
    default AdamW at 0.001. Other arguments are those of `move`. The random generators stay as they are.
    Raises MoveError, and ValueError where there is no batch.
    """
    given = [batch for batch, _ in zip(batches, range(steps), strict=False)]
    if not given:
        raise ValueError("batches is empty: give at least one batch")
    lanes = {key: Lane(key, steps=steps) for key in placements}
    with torch.random.fork_rng():
        for key, lane in lanes.items():
            torch.manual_seed(seed)
            model = move(make_model(), key, inputs=inputs, blocks=blocks, norm=norm).train()
            made = (optimizer or _adamw)(model.parameters())
            torch.manual_seed(seed + 1)
            for _, batch in zip(range(steps), cycle(given), strict=False):
                value = (loss or _loss)(model, batch)
                if not math.isfinite(value.item()):
                    break
                lane.losses.append(value.item())
                made.zero_grad()
                value.backward()
                made.step()
    return Lanes(lanes, seed)


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
