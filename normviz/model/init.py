"""Initial values. Each parameter draws from a generator of its own name and the run's seed (`model.draws`).

So two lanes that share a parameter share its initial value bit for bit, whatever else they have.

    parameter                xavier              torch               gpt2 (s = 0.02)
    tokens.weight            sd 1                sd 1                sd s
    positions.weight         sd 0.5              sd 0.5              sd s
    head.weight              Xavier              Xavier              sd s
    attention qkv.weight     Xavier, q k v apart Xavier of [3D, D]   sd s
    attention out.weight     Xavier              U(+-1/sqrt(n))      sd s / sqrt(2L)
    ffn up.weight            Xavier              U(+-1/sqrt(n))      sd s
    ffn down.weight          Xavier              U(+-1/sqrt(n))      sd s / sqrt(2L)
    gate.weight              Xavier              U(+-1/sqrt(n))      sd s
    norm.weight              Xavier              U(+-1/sqrt(n))      sd s
    hidden, input (a cell)   Xavier of [D, D]    U(+-1/sqrt(D))      sd s
    cell bias                0                   U(+-1/sqrt(D))      0
    inputs.weight            sd of tokens over sqrt(n)
    ffn biases               0                   U(+-1/sqrt(n))      0
    other biases             0                   0                   0

sd is the standard deviation of a normal distribution. Xavier is uniform with bound
sqrt(6 / (inputs + outputs)); n is the number of inputs; gpt2_width has s = 0.02 sqrt(768 / D). fairseq is
xavier with qkv.weight divided by sqrt(2), and sd 1/sqrt(D) for positions and head.

A scheme's weight gain multiplies its matrices, and a scheme may have its own size of tokens.weight; its
constraint, if any, is applied to the drawn values. Norms, gains and gates start as their modules make
them. The mark on a parameter (`model.marks`) decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..catalog import SCHEMES
from ..catalog.scheme import Matrix, Place
from ..config import BASE_DEPTH, BASE_WIDTH, RunConfig
from . import draws
from .branches import Attention, FeedForward
from .constraint import constrain
from .gnn import Messages
from .marks import EMBEDDINGS, KEPT, MATRICES, OF_NORMS, mark_of
from .recurrent import Layer
from .transformer import Block, Transformer


@dataclass(frozen=True)
class Draw:
    """Half-width of a uniform, or standard deviation of a normal, distribution around zero."""

    size: float
    normal: bool = False


def xavier(inputs: int, outputs: int) -> Draw:
    """Xavier-uniform of a matrix: half-width sqrt(6 / (inputs + outputs))."""
    return Draw((6.0 / (inputs + outputs)) ** 0.5)


def _xavier_rule(config: RunConfig, name: str) -> Draw | None:
    d, ffn = config.width, config.hidden
    return {
        "qkv.weight": xavier(d, d),
        "out.weight": xavier(d, d),
        "up.weight": xavier(d, ffn),
        "down.weight": xavier(ffn, d),
        "gate.weight": xavier(d, d),
        "cell.weight": xavier(d, d),
    }.get(name)


def _fairseq_rule(config: RunConfig, name: str) -> Draw | None:
    """Queries, keys and values have the gain 1/sqrt(2); the same as Xavier of [3D, D]."""
    if name == "qkv.weight":
        return xavier(config.width, 3 * config.width)
    return _xavier_rule(config, name)


def _torch_rule(config: RunConfig, name: str) -> Draw | None:
    d, ffn = config.width, config.hidden
    return {
        "qkv.weight": xavier(d, 3 * d),
        "out.weight": Draw(d**-0.5),
        "up.weight": Draw(d**-0.5),
        "up.bias": Draw(d**-0.5),
        "down.weight": Draw(ffn**-0.5),
        "down.bias": Draw(ffn**-0.5),
        "gate.weight": Draw(d**-0.5),
        "cell.weight": Draw(d**-0.5),
        "cell.bias": Draw(d**-0.5),
    }.get(name)


def _gpt2_rule(config: RunConfig, name: str) -> Draw | None:
    s = _gpt2_size(config)
    residual = s / (2 * config.depth) ** 0.5
    return {
        "qkv.weight": Draw(s, normal=True),
        "out.weight": Draw(residual, normal=True),
        "up.weight": Draw(s, normal=True),
        "down.weight": Draw(residual, normal=True),
        "gate.weight": Draw(s, normal=True),
        "cell.weight": Draw(s, normal=True),
    }.get(name)


RULES = {
    "xavier": _xavier_rule,
    "fairseq": _fairseq_rule,
    "torch": _torch_rule,
    "gpt2": _gpt2_rule,
    "gpt2_width": _gpt2_rule,
}


def _gpt2_size(config: RunConfig) -> float:
    return 0.02 * (768 / config.width) ** 0.5 if config.init == "gpt2_width" else 0.02


def _embedding(config: RunConfig, name: str, shape: torch.Size) -> Draw:
    """The rule of embeddings and head. A map of n features starts 1/sqrt(n) times as large as the token
    embedding, so that features of mean square 1 give a stream of the same size."""
    if name == "inputs.weight":
        tokens = _embedding(config, "tokens.weight", shape)
        return replace(tokens, size=tokens.size * shape[1] ** -0.5)
    own = SCHEMES[config.scheme].embedding_std if config.scheme in SCHEMES else None
    if own is not None and name == "tokens.weight":
        return Draw(own(config.width, config.depth), normal=True)
    if config.init in ("gpt2", "gpt2_width"):
        return Draw(_gpt2_size(config), normal=True)
    if config.init == "fairseq" and name != "tokens.weight":
        return Draw(config.width**-0.5, normal=True)
    if name == "head.weight":
        return xavier(config.width, shape[0])
    return Draw(1.0 if name == "tokens.weight" else 0.5, normal=True)


def _of_norms(config: RunConfig, shape: torch.Size) -> Draw:
    """The rule of a matrix inside of a norm, [outputs, inputs]."""
    outputs, inputs = shape
    if config.init in ("gpt2", "gpt2_width"):
        return Draw(_gpt2_size(config), normal=True)
    return Draw(inputs**-0.5) if config.init == "torch" else xavier(inputs, outputs)


def rule_of(config: RunConfig, role: str, shape: torch.Size) -> Draw | None:
    """The distribution of a parameter of this role; None for one that starts at 0.

    muP's is that of the base width, and CompleteP's that of the base depth too, with the variance of the
    blocks' matrices divided by m.
    """
    m, base = config.times_base_width, config
    if config.parametrisation != "standard":
        deep = {"depth": BASE_DEPTH} if config.parametrisation == "completep" else {}
        base = config.model_copy(update={"width": BASE_WIDTH, **deep})
    if role in EMBEDDINGS:
        return _embedding(base, role, shape)
    if role == OF_NORMS:
        return _of_norms(base, shape)
    draw = RULES[config.init](base, role)
    return (
        replace(draw, size=draw.size * m**-0.5) if draw and m != 1.0 and role in MATRICES else draw
    )


def draw_into(parameter: Tensor, draw: Draw, name: str, seed: int) -> None:
    """Fill a parameter in place from the generator of its name and the seed."""
    rng, shape = draws.generator(name, seed), parameter.shape
    unit = draws.normal(rng, shape) if draw.normal else 2.0 * draws.uniform(rng, shape) - 1.0
    # The size comes last, so that two initialisations differ by a factor alone.
    parameter.copy_(torch.from_numpy(unit)).mul_(draw.size)


@torch.no_grad()
def initialise(model: Transformer, config: RunConfig) -> None:
    """Fill every parameter of a fresh model by the table at the top of this file.

    Raises ValueError for a parameter without a mark.
    """
    for name, parameter in model.named_parameters():
        role = mark_of(parameter)
        if role is None:
            raise ValueError(
                f"{name} has no initial value: mark it where it is made, with `kept` or `drawn` of "
                "normviz.model.marks"
            )
        if role == KEPT:
            continue
        draw = rule_of(config, role, parameter.shape)
        if draw is None:
            parameter.zero_()
        else:
            draw_into(parameter, draw, name, config.init_seed)
    _apply_weight_gains(model, config)
    if config.scheme in SCHEMES:
        constrain(config.scheme, model.named_parameters())


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
            elif isinstance(branch, Messages):
                branch.value.weight.mul_(gain(place, "value"))
                branch.out.weight.mul_(gain(place, "out"))
            else:
                assert isinstance(branch, FeedForward)
                branch.up.weight.mul_(gain(place, "up"))
                branch.down.weight.mul_(gain(place, "down"))
