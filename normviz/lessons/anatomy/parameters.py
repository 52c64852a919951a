"""Learned parameters that a scheme adds to a model without norms, from its record. Torch-free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ...catalog import NORMS, SCHEMES, STREAMS
from ...catalog.choices import GATED
from ...catalog.scheme import BRANCHES, Gain, Place, Slots
from ...catalog.streams import Piece, Size
from ...config import RunConfig

NORM_SLOTS = {
    "norm_fork": "norms before the fork",
    "norm_in": "norms before branches",
    "norm_out": "norms after branches",
    "norm_skip": "norms on skip paths",
    "norm_main": "norms after sums",
}
GAINS = {
    "stream_gain": "gains of the stream",
    "embed_gain": "gains of the embedding",
    "input_gain": "gains of branch inputs",
    "skip_gain": "gains of skip paths",
    "block_gain": "gains of block inputs",
    "branch_gain": "gains of branches",
    "main_gain": "gains after sums",
}


@dataclass(frozen=True)
class Added:
    """`pieces` parts of one name with `parameters` learned numbers in all."""

    name: str
    pieces: int
    parameters: int


def added(config: RunConfig, vocabulary: int) -> list[Added]:
    """All learned parameters that the scheme `none` does not have, in order of a forward pass."""
    pieces, numbers = Counter[str](), Counter[str]()
    for name, size in _pieces(config.placed(), vocabulary):
        if size:
            pieces[name] += 1
            numbers[name] += size
    return [Added(name, pieces[name], numbers[name]) for name in pieces]


def _pieces(config: RunConfig, vocabulary: int) -> Iterator[Piece]:
    scheme = SCHEMES[config.scheme]
    if scheme.embed_norm:
        yield "norm on the embedding", _norm(config, config.width)
    for block in range(1, config.depth + 1):
        at, ff = (scheme.slots(Place(block, config.depth, b)) for b in BRANCHES)
        yield from _sublayer(config, at)
        yield from _inside_attention(config, at)
        yield from _sublayer(config, ff)
        hidden, up = config.hidden, config.hidden * (1 + (config.activation in GATED))
        yield "gains of hidden layers", _gain(ff.hidden_gain, up)
        yield "norms inside FFNs", ff.norm_inner * _norm(config, hidden)
        # One number, or one gate, for both sublayers of the block.
        yield GAINS["branch_gain"], int(at.branch_gain.learned == "block")
        yield "gates", int(at.gate)
    size = Size(config.width, config.depth, _norm(config, config.width))
    yield from STREAMS[scheme.streams].learns(size)
    if scheme.final_norm:
        last = config.model_copy(update={"norm": config.last_norm})
        yield "norm before the output head", _norm(last, config.width)
    yield "gains of logits", _gain(scheme.logit_gain, vocabulary)


def _sublayer(config: RunConfig, slots: Slots) -> Iterator[Piece]:
    for slot, name in NORM_SLOTS.items():
        there = getattr(slots, slot) and not (slot == "norm_in" and slots.shares_norm)
        yield name, there * _norm(config, config.width)
    for slot, name in GAINS.items():
        gain: Gain = getattr(slots, slot)
        of_the_block = slot == "branch_gain" and gain.learned == "block"
        yield name, 0 if of_the_block else _gain(gain, config.width)
    for _ in range(2):
        yield "gains of matrices", int(slots.spectral)
    yield "shifts of skip paths and branches", slots.shifts * 2 * config.width


def _inside_attention(config: RunConfig, slots: Slots) -> Iterator[Piece]:
    head = config.width // config.heads
    for _ in range(3):
        yield "norms of queries, keys and values", slots.norm_qkv * _norm(config, head)
    yield "gains of queries and keys", _gain(slots.qk_gain, config.width)
    yield "norms inside attention", slots.norm_inner * _norm(config, config.width)
    yield "gains of heads", slots.head_gain * config.heads
    yield "gains of matrices", int(slots.spectral and config.attn_gate != "off")


def _gain(gain: Gain, channels: int) -> int:
    """Learned numbers of a gain."""
    return channels if gain.learned == "channel" else int(gain.learned != "")


def _norm(config: RunConfig, width: int) -> int:
    """Learned numbers of the chosen norm over `width` channels."""
    return sum(p.entries(width) for p in NORMS[config.norm].learns)
