"""Training in plain PyTorch, as an exported script has it: `normviz.export.script` quotes these functions.

They do what `initialise`, `profile` and the engine `eager` do, to the model of `normviz.lessons.anatomy`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from ..config import RunConfig
from ..model.batches import IGNORED
from ..model.draws import Floats, generator, uniform
from ..model.init import Draw, draw_into
from .eager import EPS, MOMENTUM, decays, is_read, orthogonalised


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """The next standard normal numbers, each from one word of the generator."""
    words = rng.bit_generator.random_raw(math.prod(shape)) >> np.uint64(12)
    u = (words.astype(np.float64) * 2.0 + 1.0) / 2.0**53
    return np.array([NormalDist().inv_cdf(x) for x in u.tolist()]).reshape(shape)


def key_of(name: str) -> str:
    """The name of a parameter in NormViz, by which it is drawn."""
    name = re.sub(r"\b(attention|ffn|first|messages)\.", r"\1.branch.", name)
    name = re.sub(r"\b(attention|ffn|first|messages)_", r"\1.", name)
    return f"streams.{name}" if name.startswith("norm_") else name


@torch.no_grad()
def initialise(model: nn.Module, draws: Mapping[str, Draw | None], seed: int) -> None:
    """Draw each parameter whose name ends so, or set it to 0; others stay as their classes made them."""
    for name, p in model.named_parameters():
        for end, draw in draws.items():
            if f".{name}".endswith(f".{end}"):
                p.zero_() if draw is None else draw_into(p, draw, key_of(name), seed)


class Dropout:
    """Zeroes a share p of the numbers; its draws depend on the seed, the step, and the place in the model."""

    def __init__(self, p: float, seed: int) -> None:
        self.p, self.seed, self.step, self.site = p, seed, 0, 0

    def begin(self, step: int) -> None:
        """Call this before the forward pass of a step."""
        self.step, self.site = step, 0

    def __call__(self, x: Tensor, training: bool) -> Tensor:
        if not training:
            return x
        rng = generator(f"dropout:{self.site}", self.seed, self.step)
        self.site += 1
        mask = torch.from_numpy(uniform(rng, tuple(x.shape)) >= self.p)
        return x * (mask.to(x.device) / (1.0 - self.p))


@torch.no_grad()
def profile(model: Any, x: Tensor, branch_gain: float = 1.0) -> None:
    """Admin (Liu et al. 2020, arXiv:2004.08249): x [B, T, D], which enters the first block, sets the gains of
    the skip paths, so that no sublayer outweighs what came before it."""
    omega = 1.0
    for block in model.blocks:
        for branch in ("attention", "ffn"):
            f = branch_gain * getattr(block, branch)(x)
            skip = x * getattr(block, f"{branch}_skip_gain").fill_(omega)
            omega = (skip.var().item() + f.var().item()) ** 0.5
            x = getattr(block, f"{branch}_norm_main", nn.Identity())(skip + f)


Kinds = dict[tuple[bool, bool, bool], dict[str, nn.Parameter]]
"""Parameters by whether they are a matrix, are in a block, and are the scale of a norm that one reads."""


def kinds(model: nn.Module, draws: Mapping[str, Draw | None]) -> Kinds:
    """The parameters by their kind; matrices are the weights that are drawn."""
    matrices = tuple(f".{end}" for end in draws if end.endswith(".weight"))
    by_kind: Kinds = {}
    for name, p in model.named_parameters():
        kind = f".{name}".endswith(matrices), name.startswith("blocks."), is_read(name)
        by_kind.setdefault(kind, {})[name] = p
    return by_kind


def groups(of: Kinds, config: RunConfig) -> list[dict[str, Any]]:
    """A group for each kind, with what its learning rate is multiplied by."""
    m, deep = config.times_base_width, config.times_base_depth
    return [
        {
            "params": list(some.values()),
            "scale": 1.0 / m if is_matrix and is_inside else 1.0,
            "weight_decay": config.weight_decay
            * (m if is_matrix and is_inside else 1.0)
            * decays(config.decay_on, is_matrix, read),
            "eps": EPS * (1.0 / (m * deep) if is_inside else 1.0 / m),
        }
        for (is_matrix, is_inside, read), some in of.items()
    ]


class Muon(Optimizer):
    """Muon (Jordan 2024, kellerjordan.github.io/posts/muon) with updates of AdamW's size (arXiv:2502.16982).
    Where a map's name is in `parts`, its matrix is so many matrices."""

    def __init__(
        self, matrices: Mapping[str, nn.Parameter], parts: Mapping[str, int], weight_decay: float
    ) -> None:
        each = [
            {"params": [p], "parts": parts.get(name.split(".")[-2], 1)}
            for name, p in matrices.items()
        ]
        super().__init__(each, {"lr": 0.0, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            lr, parts, (p,) = group["lr"], group["parts"], group["params"]
            momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
            momentum.lerp_(p.grad, 1.0 - MOMENTUM)
            p.mul_(1.0 - lr * group["weight_decay"])
            changes = p.grad.lerp(momentum, MOMENTUM).chunk(parts)
            for part, change in zip(p.chunk(parts), changes, strict=True):
                part.sub_(orthogonalised(change), alpha=lr * 0.2 * max(part.shape) ** 0.5)


@torch.no_grad()
def clip(model: nn.Module, most: float) -> None:
    """Scale all gradients so that their norm is at most this."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.cat([g.flatten() for g in gradients]).norm().item()
    if norm > most:
        for g in gradients:
            g.mul_(most / norm)


def loss_with_z(logits: Tensor, targets: Tensor, weight: float) -> Tensor:
    """The loss, whose gradient also has that of the z-loss (Chowdhery et al. 2022, arXiv:2204.02311)."""
    z = weight * torch.logsumexp(logits[targets != IGNORED], -1).square().mean()
    return F.cross_entropy(logits, targets) + (z - z.detach())


def train(
    model: nn.Module,
    optimizers: list[Optimizer],
    batch: Callable[[int], tuple[Any, ...]],
    learning_rate: Callable[[int], float],
    steps: int,
    loss_of: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
) -> list[float]:
    """The loss of each step in nats, before its update, up to the first one that is not finite."""
    losses = list[float]()
    for step in range(steps):
        *inputs, targets = batch(step)
        loss = loss_of(model(*inputs).flatten(0, 1), targets.flatten())
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step:5}   loss {losses[-1]:.6f}")
        if not math.isfinite(losses[-1]):
            break
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step) * group.get("scale", 1.0)
            optimizer.step()
    return losses
