"""The inside of one block of the signal walk: positions of its norms, gains and wires, by the record.

A block is a row between the residual stream, which goes up on the left, and its gradient, which goes
down on the right. The block's box with attention and FFN is in between. A norm of the stream crosses
both, because the gradient passes it too; a norm of a branch is on the branch's wire. Coordinates are
pixels; y counts from the row's bottom and is negative above it.
"""

from __future__ import annotations

from typing import Any

from ..catalog.scheme import Branch, Gain, Slots
from .patterns import Blocks

WIDTH = 352
UP, DOWN = 88, 272  # x of the middle of the stream and of the gradient
BOX_LEFT, BOX_RIGHT = 152, 234
IN_NORM, OUT_NORM, BRANCH_GAIN = 136, 128, 115
ASIDE = 66  # x of lines around the stream
INSET = 2
# Heights within a sublayer, as shares of it, from its bottom.
FIRST, FORK_NORM, FORK, SKIP, JOIN, MAIN, GATE = 0.04, 0.13, 0.27, 0.37, 0.69, 0.91, 0.98

Node = dict[str, Any]
WORDS: dict[Branch, str] = {"attention": "attention", "ffn": "FFN"}


class _Row:
    """Collects a block's nodes and wires."""

    def __init__(self, height: float) -> None:
        self.half = height / 2
        self.nodes: list[Node] = []
        self.wires: list[dict[str, Any]] = []

    def y(self, sublayer: int, share: float) -> float:
        return round(-(sublayer + share) * self.half, 2)

    def node(self, kind: str, slot: str, at: str, x: float, y: float, **more: Any) -> None:
        self.nodes.append({"kind": kind, "slot": slot, "at": at, "x": x, "y": y, **more})

    def wire(self, kind: str, *points: tuple[float, float]) -> None:
        self.wires.append({"kind": kind, "points": [list(point) for point in points]})


def inner(
    group: Blocks, depth: int, streams: str, height: float, extra: tuple[str, ...]
) -> dict[str, Any]:
    """The layout of a block of this group: {"words", "height", "box", "nodes", "wires"}.

    `extra` names the norms in attention that the config adds: "qk_norm", "v_norm".
    """
    row = _Row(height)
    branches: list[tuple[Branch, Slots]] = [("attention", group.attention), ("ffn", group.ffn)]
    for i, (branch, slots) in enumerate(branches):
        y = round(-(i + 0.5) * row.half, 2)
        row.node(branch, branch, "box", (BOX_LEFT + BOX_RIGHT) / 2, y, words=WORDS[branch])
        _stream(row, i, branch, slots, "plus" if streams in ("one", "dual", "siamese") else "mix")
        _branch(row, i, branch, slots)
        _inside(row, i, branch, slots, extra)
    return {
        "words": group.words(depth),
        "height": height,
        "box": [BOX_LEFT, -height + INSET, BOX_RIGHT - BOX_LEFT, height - 2 * INSET],
        "nodes": row.nodes,
        "wires": row.wires,
    }


def _stream(row: _Row, i: int, branch: Branch, s: Slots, sum_: str) -> None:
    """Norms and gains on the stream itself, from the bottom up."""

    def gain(slot: str, share: float, there: bool) -> None:
        if there:
            row.node("gain", slot, "stream", UP, row.y(i, share), branch=branch)

    def norm(slot: str, share: float) -> None:
        if getattr(s, slot):
            row.node("norm", slot, "stream", UP, row.y(i, share), branch=branch)

    gain("stream_gain", FIRST, not s.stream_gain.is_one)
    if not s.embed_gain.is_zero:
        row.wire("aside", (ASIDE, row.y(i, FORK_NORM)), (UP, row.y(i, FORK_NORM)))
        row.node("gain", "embed_gain", "aside", ASIDE, row.y(i, FORK_NORM), branch=branch)
    norm("norm_fork", FORK_NORM)
    norm("norm_skip", SKIP)
    gain("skip_gain", SKIP, not s.skip_gain.is_one or s.mix != "sum")
    if not s.block_gain.is_zero:
        join = row.y(i, JOIN)
        row.wire("aside", (UP, -1.0), (ASIDE, -1.0), (ASIDE, join), (UP, join))
    row.node(sum_, sum_, "stream", UP, row.y(i, JOIN), branch=branch)
    norm("norm_main", MAIN)
    gain("gate", GATE, s.gate)


def _branch(row: _Row, i: int, branch: Branch, s: Slots) -> None:
    """The wires to and from the box, and the norms and gains on them."""
    fork, join = row.y(i, FORK), row.y(i, JOIN)
    if s.branch_reads == "block":
        before = IN_NORM + 9 if s.shares_norm else IN_NORM - 24
        row.wire("out", (before, row.y(0, FORK)), (before, fork), (BOX_LEFT, fork))
    else:
        row.wire("out", (UP, fork), (BOX_LEFT, fork))
    row.wire("back", (BOX_LEFT, join), (UP, join))
    if s.norm_in and not s.shares_norm:
        row.node("norm", "norm_in", "wire", IN_NORM, fork, branch=branch)
    if not s.input_gain.is_one:
        row.node("gain", "input_gain", "wire", BRANCH_GAIN, fork, branch=branch)
    if s.norm_out:
        row.node("norm", "norm_out", "wire", OUT_NORM, join, branch=branch)
    if not s.branch_gain.is_one or s.mix != "sum":
        row.node("gain", "branch_gain", "wire", BRANCH_GAIN, join, branch=branch)


def _inside(row: _Row, i: int, branch: Branch, s: Slots, extra: tuple[str, ...]) -> None:
    """Norms within the branch, at the box's left edge, where the signal enters or leaves."""
    own = tuple(slot for slot in ("norm_qkv", "unit_qk") if getattr(s, slot))
    inside = own or (extra if branch == "attention" else ())
    for k, slot in enumerate(inside):
        row.node("norm", slot, "box", BOX_LEFT + 6 + 6 * k, row.y(i, FORK), branch=branch)
    if s.norm_inner:
        row.node("norm", "norm_inner", "box", BOX_LEFT + 6, row.y(i, JOIN), branch=branch)
    if s.head_gain:
        row.node("gain", "head_gain", "box", BOX_LEFT + 8, row.y(i, JOIN), branch=branch)


def skip_factor(s: Slots) -> tuple[bool, float]:
    """The effect of the skip path on the stream before the sum: whether it keeps the stream's RMS (no
    norm in between), and its constant factor."""
    keeps = not (s.norm_fork or s.norm_skip)
    share = s.skip_gain.value
    if s.mix == "lerp":
        share = 1.0 - abs(s.branch_gain.value)
    return keeps, share * (s.stream_gain.value if keeps else 1.0)


def gain_values(s: Slots) -> dict[str, Gain]:
    """The gains of a sublayer other than 1, by slot, including a norm's initial scale."""
    found = {
        slot: getattr(s, slot)
        for slot in ("stream_gain", "embed_gain", "input_gain", "skip_gain", "branch_gain")
        if not getattr(s, slot).is_one and not (slot == "embed_gain" and s.embed_gain.is_zero)
    }
    for slot in ("gamma_in", "gamma_out"):
        if getattr(s, slot) != 1.0:
            found[slot] = Gain(getattr(s, slot), "channel")
    return found
