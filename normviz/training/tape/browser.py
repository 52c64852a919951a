"""A model as a browser trains it: the tape's operations and places, and the draws of its initial values.

The same compiler as in the app makes them beforehand. What a visitor may change freely is
not in them: initialisation, rates, steps, seeds and task.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...catalog import INITS, SCHEMES
from ...catalog.scheme import Matrix, Place
from ...config import RunConfig
from ...model.branches import Attention, FeedForward
from ...model.data import make_task
from ...model.families import build
from ...model.flat import Flat
from ...model.init import initialise, rule_of
from ...model.marks import KEPT, mark_of
from ...model.transformer import Block, Transformer
from ...probes.instruments import NormScales
from ..eager import moves_alike
from .arena import Arena, arena, scratch_sizes
from .compile import Unsupported, compiled
from .operations import OP, Number, Program, number

CONSTANT, UNIFORM, NORMAL = range(3)
"""What fills a stretch of parameters; assets/player/tape.js has the same numbers."""


def browser_model(config: RunConfig) -> dict[str, Any]:
    """A config's model as JSON. Raises Unsupported for what a browser does not train."""
    refuse(config)
    model = build(config, make_task(config).vocabulary)
    initialise(model, config)
    flat = Flat(model, torch.device("cpu"))
    program = compiled(config, model)
    laid = arena(program, flat)
    rising = [[i, name, *_ramp(model, value)] for i, name, value in laid.rising]
    scratch, sums = scratch_sizes(config, program)
    logits = program.operations[-1].a
    assert logits is not None
    return {
        **{
            name: getattr(config, name)
            for name in ("depth", "width", "heads", "batch", "seq_len", "hidden")
        },
        "operations": _operations(laid.operations),
        "rising": rising,
        "sizes": [laid.value_size, laid.grad_size, flat.values.numel(), scratch, sums],
        "row": flat.blocks.shape[1],
        "w2": _columns(flat, "ffn.branch.down.weight"),
        "qkv": _columns(flat, "attention.branch.qkv.weight"),
        **_places(program, laid),
        "scales": _scales(model, flat),
        "tables": [
            [laid.saves[o], b64encode(table.tobytes()).decode()] for o, table in program.tables
        ],
        "parameters": parameters(config, model, flat),
    }


def refuse(config: RunConfig) -> None:
    """Raise Unsupported for what the tape runs with PyTorch's help, which a browser does not have."""
    if config.family != "decoder":
        raise Unsupported(f"a browser trains decoders alone, not the family {config.family}")
    scheme = SCHEMES[config.scheme]
    if scheme.profiled or scheme.constraint != "none":
        raise Unsupported(
            f"a browser does not train {config.scheme}, which needs PyTorch besides the tape"
        )
    if config.optimizer != "adamw" or not moves_alike(config):
        raise Unsupported("a browser trains with plain AdamW alone")
    if config.dropout:
        raise Unsupported("a browser trains without dropout")


def _operations(operations: NDArray[np.void]) -> dict[str, list[float]]:
    """Each field of all operations, as differences from one operation to the next: they repeat block by
    block, so they pack to a tenth."""
    whole = {name: np.diff(operations[name], prepend=0).tolist() for name in OP.names[:-2]}  # pyright: ignore
    return {**whole, "c0": operations["c0"].tolist(), "c1": operations["c1"].tolist()}


def _ramp(model: Transformer, value: Number) -> tuple[float, float]:
    """The last value of a constant that rises during a run, and the share of the steps after which it has
    it; it rises in proportion to the steps."""
    model.clock.share = 1.0
    most = number(value)
    model.clock.share = 1e-6
    ramp = 1e-6 * most / number(value)
    return most, ramp


def _places(program: Program, laid: Arena) -> dict[str, Any]:
    """Where the probes read, as offsets in the buffers, and the factors of skip path and branch."""
    logits = program.operations[-1].a
    assert logits is not None
    stream = [(x.base, x.column) for x in program.stream]
    skip, branch = ([(x.base, x.column) for x, _ in of] for of in (program.skip, program.branch))
    factors = [
        [number(c) if not callable(c) else _rising_index(laid, c) for _, c in of]
        for of in (program.skip, program.branch)
    ]
    return {
        "stream": [laid.values[base] + column for base, column in stream],
        "stream_grads": [laid.grads[base] + column for base, column in stream],
        "skip": [laid.values[base] + column for base, column in skip],
        "branch": [laid.values[base] + column for base, column in branch],
        "reads": [laid.values[x.base] + x.column for x in program.reads],
        "skip_factors": factors[0],
        "branch_factors": factors[1],
    }  # fmt: skip


def _rising_index(laid: Arena, value: Number) -> list[int]:
    """A factor that rises: its place in the list of what rises."""
    return [next(i for i, (_, _, other) in enumerate(laid.rising) if other is value)]


def _scales(model: Transformer, flat: Flat) -> list[list[int]]:
    """The learned norm scales as stretches of parameters: [block, first, count]."""
    scales = NormScales(model, flat)
    found: list[list[int]] = []
    for block, place in zip(scales.block.tolist(), scales.places.tolist(), strict=True):
        if found and found[-1][0] == block and place == found[-1][1] + found[-1][2]:
            found[-1][2] += 1
        else:
            found.append([block, place, 1])
    return found


def _columns(flat: Flat, name: str) -> int:
    return flat.columns[name].start


def parameters(config: RunConfig, model: Transformer, flat: Flat) -> dict[str, Any]:
    """Every stretch of the flat buffer with one draw: [name, offset, first word, count, gain]; and of each
    initialisation the draws of the stretches, as [kind, size or value]."""
    draws: dict[tuple[int, float], int] = {}
    stretches: list[list[Any]] = []
    of_init: dict[str, list[int]] = {key: [] for key in INITS.keys()}  # noqa: SIM118 (a registry)
    start, size = flat.values.data_ptr(), flat.values.element_size()
    gains = _weight_gains(config, model)
    for name, p in model.named_parameters():
        role = mark_of(p)
        at = (p.data_ptr() - start) // size
        for first, count, gain in gains.get(name, [(0, p.numel(), 1.0)]):
            stretches.append([name, at + first, first, count, gain])
            for init, found in of_init.items():
                if role == KEPT:
                    values = p.detach().flatten()
                    if not bool((values == values[0]).all()):
                        raise Unsupported(f"a browser has no initial values for {name}")
                    draw = (CONSTANT, float(values[0]))
                else:
                    assert role is not None
                    rule = rule_of(config.replace(init=init), role, p.shape)
                    draw = (
                        (CONSTANT, 0.0)
                        if rule is None
                        else (NORMAL if rule.normal else UNIFORM, rule.size)
                    )
                found.append(draws.setdefault(draw, len(draws)))
    return {"stretches": stretches, "draws": list(draws), "inits": of_init}


def _weight_gains(config: RunConfig, model: Transformer) -> dict[str, list[tuple[int, int, float]]]:
    """The stretches [first, count] of the blocks' matrices with the gain of each, as
    `model.init._apply_weight_gains` has them."""
    own, d = SCHEMES[config.scheme].weight_gain, config.width

    def gain(place: Place, matrix: Matrix) -> float:
        return own(place, matrix) * config.weight_gain

    def of(block: int, b: Block) -> Iterator[tuple[str, Sequence[tuple[int, int, float]]]]:
        attention, ffn = (sublayer.branch for _, sublayer in b.sublayers())
        assert isinstance(attention, Attention)
        assert isinstance(ffn, FeedForward)
        at, ff = Place(block, config.depth, "attention"), Place(block, config.depth, "ffn")
        qkv = attention.qkv.weight.numel()
        yield "attention.branch.qkv.weight", [
            (0, 2 * d * d, gain(at, "query_key")), (2 * d * d, qkv - 2 * d * d, gain(at, "value")),
        ]  # fmt: skip
        yield "attention.branch.out.weight", [(0, attention.out.weight.numel(), gain(at, "out"))]
        yield "ffn.branch.up.weight", [(0, ffn.up.weight.numel(), gain(ff, "up"))]
        yield "ffn.branch.down.weight", [(0, ffn.down.weight.numel(), gain(ff, "down"))]

    found = {}
    for i, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        for name, stretches in of(i + 1, block):
            found[f"blocks.{i}.{name}"] = list(stretches)
    return found
