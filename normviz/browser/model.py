"""A model as a browser trains it: the tape's operations and places, and the draws of its initial values.

The same compiler as in the app makes them beforehand. What a visitor may change freely is not in
them: initialisation, rates, steps, seeds, the share that dropout zeroes, and a task of as many symbols.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..catalog import INITS, SCHEMES
from ..catalog.scheme import Matrix, Place
from ..config import RunConfig
from ..model.branches import Attention, FeedForward
from ..model.data import make_task
from ..model.families import build
from ..model.flat import Flat
from ..model.init import rule_of
from ..model.marks import AS_IS, mark_of
from ..model.transformer import Block, Transformer
from ..training.engine import Unsupported
from ..training.probes.instruments import NormScales
from ..training.tape.arena import Arena, arena, scratch_sizes
from ..training.tape.compile import compiled
from ..training.tape.operations import OP, Number, Program, number

BLOCK = re.compile(r"^blocks\.\d+\.")
CONSTANT, UNIFORM, NORMAL = range(3)
"""What fills a stretch of parameters; assets/player/tape.js has the same numbers."""


def browser_model(config: RunConfig) -> dict[str, Any]:
    """A config's model as JSON. Raises Unsupported for what a browser does not train."""
    refuse(config)
    model = build(config, make_task(config).vocabulary)
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
        **_operations(laid.operations),
        "rising": rising,
        "masks": [[laid.saves[o], o.saved, dropout.name] for o, dropout in program.masks],
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
    if config.optimizer != "adamw" or not config.moves_alike or config.loops > 1:
        raise Unsupported("a browser trains with plain AdamW alone, and blocks that share nothing")


def _operations(operations: NDArray[np.void]) -> dict[str, Any]:
    """The whole numbers of all operations, as differences from the operation `lag` places before; and their
    constants. Two blocks before is the same operation in most stacks: places go up and down by turns."""
    whole = np.stack([operations[name] for name in (OP.names or ())[:-2]], 1)
    lag = 2 * len(repeated(operations["kind"][:, None].tolist())[1])
    differences = whole.copy()
    differences[lag:] -= whole[:-lag]
    return {
        "operations": repeated(differences.tolist()), "lag": lag,
        "constants": [operations[name].tolist() for name in ("c0", "c1")],
    }  # fmt: skip


def repeated(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """[head, middle, times, tail]: the same rows, of which a middle part is written once. In a stack most
    blocks have the same."""
    numbers = {row: i for i, row in enumerate(dict.fromkeys(map(tuple, rows)))}
    kinds = np.array([numbers[tuple(row)] for row in rows])
    start, period, times = 0, len(rows), 1
    for length in np.unique(
        np.abs(np.flatnonzero(kinds == kinds[len(kinds) // 2]) - len(kinds) // 2)
    ):
        if not length:
            continue
        breaks = np.flatnonzero(np.append(kinds[length:] != kinds[:-length], True))
        runs = np.diff(breaks, prepend=-1) - 1
        longest = int(runs.argmax())
        count = int(runs[longest]) // int(length) + 1
        if int(length) * (count - 1) > period * (times - 1):
            start = int(breaks[longest] - runs[longest])
            period, times = int(length), count
    end = start + period * times
    return [rows[:start], rows[start : start + period], times, rows[end:]]


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
    stretches: list[list[int]] = []
    for block, place in zip(scales.block.tolist(), scales.places.tolist(), strict=True):
        if stretches and stretches[-1][0] == block and place == stretches[-1][1] + stretches[-1][2]:
            stretches[-1][2] += 1
        else:
            stretches.append([block, place, 1])
    return stretches


def _columns(flat: Flat, name: str) -> int:
    return flat.columns[name].start


def parameters(config: RunConfig, model: Transformer, flat: Flat) -> dict[str, Any]:
    """Every stretch of the flat buffer with one draw: name with # for the number of its block, places since
    the last one, first word, count, gain, and its draw in each initialisation. A draw is [kind, size or
    value]."""
    draws: dict[tuple[int, float], int] = {}
    stretches: list[list[Any]] = []
    inits = {key: config.replace(init=key) for key in INITS.keys()}  # noqa: SIM118 (a registry)
    rules = cache(lambda init, role, shape: rule_of(inits[init], role, shape))
    end = 0
    start, size = flat.values.data_ptr(), flat.values.element_size()
    gains = _weight_gains(config, model)
    for name, p in model.named_parameters():
        role = mark_of(p)
        at = (p.data_ptr() - start) // size
        for first, count, gain in gains.get(name, [(0, p.numel(), 1.0)]):
            template = BLOCK.sub("blocks.#.", name)
            stretch: list[Any] = [template, at + first - end, first, count, gain]
            end = at + first
            stretches.append(stretch)
            for init in inits:
                if role == AS_IS:
                    values = p.detach().flatten()
                    if not bool((values == values[0]).all()):
                        raise Unsupported(f"a browser has no initial values for {name}")
                    draw = (CONSTANT, float(values[0]))
                else:
                    assert role is not None
                    rule = rules(init, role, p.shape)
                    draw = (
                        (CONSTANT, 0.0)
                        if rule is None
                        else (NORMAL if rule.normal else UNIFORM, rule.size)
                    )
                stretch.append(draws.setdefault(draw, len(draws)))
    return {"stretches": repeated(stretches), "draws": list(draws), "inits": list(inits)}


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

    gains = {}
    for i, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        for name, stretches in of(i + 1, block):
            gains[f"blocks.{i}.{name}"] = list(stretches)
    return gains
