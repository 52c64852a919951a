"""What the twins read and write: a sublayer's surroundings, and the trace of a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from norm_twins import normed
from torch import Tensor

Params = Mapping[str, Tensor]


@dataclass
class Surroundings:
    """Of one sublayer: its norms by slot (`S.norm_in(x)`; the second argument stands for a learned
    scale that a norm does not have), its learned numbers, and what it may read besides x."""

    params: Params
    block: str
    name: str
    kind: str
    b: int = 0
    L: int = 0
    embedding: Any = None
    entered: Any = None
    share: float = 0.0

    @property
    def attention(self) -> bool:
        return self.name == "attention."

    def learned(self, what: str, shared: bool = False) -> Tensor:
        return self.params[f"{self.block}{'shared.' if shared else self.name}{what}.weight"]

    def attentions_norm_in(self, x: Tensor) -> Tensor:
        return Surroundings(self.params, self.block, "attention.", self.kind).norm_in(x)

    def __getattr__(self, slot: str) -> Callable[..., Tensor]:
        prefix = f"{self.block}{self.name}{slot}."
        own = {n.removeprefix(prefix): p for n, p in self.params.items() if n.startswith(prefix)}
        scaled = own.keys() & {"weight", "scale", "offset"}
        return lambda x, start=1.0: normed(self.kind, x, own) * (1.0 if scaled else start)


@dataclass
class Trace:
    """Everything a forward pass met: per block (stream, with the embedding first; logits, weights,
    [B, H, T, T]) or per sublayer (skip, branch, and reads, what the branch reads)."""

    stream: list[Tensor] = field(default_factory=list)
    skip: list[Tensor] = field(default_factory=list)
    branch: list[Tensor] = field(default_factory=list)
    reads: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    loss: Tensor = field(default_factory=lambda: torch.empty(0))


def linear(p: Params, name: str, x: Tensor) -> Tensor:
    W = p[f"{name}.weight"]
    if f"{name}.gamma" in p:
        W = p[f"{name}.gamma"] * W / torch.linalg.svdvals(W)[0]
    return x @ W.T + p[f"{name}.bias"]
