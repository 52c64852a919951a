"""Initial values. Each parameter draws from a generator of its own name and the run's seed (`model.draws`).

So two lanes that share a parameter share its initial value bit for bit, whatever else they have.

The mark on a parameter (`model.marks`) says its role, and the record of the initialisation (`catalog.inits`)
what is drawn for the role. A map of the n features of an example starts as tokens do, over sqrt(n), so that
features of mean square 1 give a stream of the same size.

A scheme's weight gain multiplies its matrices, and a scheme may have its own size of tokens.weight; its
constraint, if any, is applied to the drawn values. Norms, gains and gates start as their modules make
them.
"""

from __future__ import annotations

from functools import cache
from types import CodeType
from typing import NamedTuple

import torch
from torch import Tensor

from ..catalog import INITS, SCHEMES
from ..catalog.inits import MATRICES
from ..catalog.scheme import Matrix, Place
from ..config import RunConfig
from .branches import Attention, FeedForward
from .constraint import constrain
from .draws import generator, normal, uniform
from .gnn import Messages
from .marks import AS_IS, mark_of
from .recurrent import Layer
from .transformer import Block, Transformer


class Draw(NamedTuple):
    """Half-width of a uniform, or standard deviation of a normal, distribution around zero."""

    size: float
    normal: bool = False


def rule_of(config: RunConfig, role: str, shape: torch.Size) -> Draw | None:
    """The distribution of a parameter of this role; None for one that starts at 0.

    muP's is that of the config's base, with the variance of the blocks' matrices divided by m.
    """
    m, base = config.times_base_width, config.base
    reads = role == "inputs.weight"
    code = INITS[config.init].draws.get("tokens.weight" if reads else role)
    if code is None:
        return None
    draw: Draw = eval(_compiled(code), {
        "Draw": Draw, "D": base.width, "HIDDEN": base.hidden, "L": base.depth,
        "V": shape[0],  # of the head, which alone reads it
        "shape": shape,
    })  # fmt: skip
    own = SCHEMES[config.scheme].embedding_std if config.scheme in SCHEMES else None
    if own is not None and role in ("tokens.weight", "inputs.weight"):
        draw = Draw(own(base.width, base.depth), normal=True)
    if reads:
        draw = draw._replace(size=draw.size * shape[1] ** -0.5)
    return draw._replace(size=draw.size * m**-0.5) if m != 1.0 and role in MATRICES else draw


@cache
def _compiled(code: str) -> CodeType:
    return compile(code, "normviz.catalog.inits", "eval")


def draw_into(parameter: Tensor, draw: Draw, name: str, seed: int) -> None:
    """Fill a parameter in place from the generator of its name and the seed."""
    rng, shape = generator(name, seed), parameter.shape
    unit = normal(rng, shape) if draw.normal else 2.0 * uniform(rng, shape) - 1.0
    # The size comes last, so that two initialisations differ by a factor alone.
    parameter.copy_(torch.from_numpy(unit)).mul_(draw.size)


@torch.no_grad()
def initialise(model: Transformer, config: RunConfig) -> None:
    """Fill every parameter of a fresh model by its role.

    Raises ValueError for a parameter without a mark.
    """
    for name, parameter in model.named_parameters():
        role = mark_of(parameter)
        if role is None:
            raise ValueError(
                f"{name} has no initial value: mark it where it is made, with `as_is` or `drawn` of "
                "normviz.model.marks"
            )
        if role == AS_IS:
            continue
        draw = rule_of(config, role, parameter.shape)
        if draw is None:
            parameter.zero_()
        else:
            draw_into(parameter, draw, name, config.init_seed)
    _apply_weight_gains(model, config)
    if config.scheme in SCHEMES:
        constrain(config.scheme, model.named_parameters())
    share(model)


@torch.no_grad()
def share(model: Transformer) -> None:
    """Give each later pass over the blocks the values of the first (`RunConfig.loops`)."""
    blocks = list(model.blocks)
    for block, before in zip(blocks[len(blocks) // model.loops :], blocks, strict=False):
        for p, first in zip(block.parameters(), before.parameters(), strict=True):
            p.copy_(first)


def _apply_weight_gains(model: Transformer, config: RunConfig) -> None:
    """The scheme's own initialisation rule and the config's weight gain, on top of the chosen one."""
    if config.scheme not in SCHEMES:
        for layer in model.blocks:
            assert isinstance(layer, Layer)
            layer.hidden.weight.mul_(config.weight_gain)
            layer.input.weight.mul_(config.weight_gain)
        return
    d, own = config.width, SCHEMES[config.scheme].weight_gain

    def gain(place: Place, matrix: Matrix) -> float:
        return own(place, matrix) * config.weight_gain

    for b, block in enumerate(model.blocks, start=1):
        assert isinstance(block, Block)
        for which, wire in block.sublayers():
            place, branch = Place(b, config.depth, which), wire.branch
            if isinstance(branch, Attention):
                branch.qkv.weight[: 2 * d].mul_(gain(place, "query_key"))
                branch.qkv.weight[2 * d :].mul_(gain(place, "value"))
                branch.out.weight.mul_(gain(place, "out"))
                if branch.gate is not None:
                    branch.gate.weight.mul_(gain(place, "query_key"))
            elif isinstance(branch, Messages):
                branch.value.weight.mul_(gain(place, "value"))
                branch.out.weight.mul_(gain(place, "out"))
            else:
                assert isinstance(branch, FeedForward)
                branch.up.weight.mul_(gain(place, "up"))
                branch.down.weight.mul_(gain(place, "down"))
