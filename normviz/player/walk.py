"""The plan of the signal walk: a stack with its norms, gains and wires, as the browser draws it.

A block is a row between the residual stream, which goes up on the left, and its gradient, which goes
down on the right. The block's box with attention and FFN is in between. A norm of the stream crosses
both, because the gradient passes it too; a norm of a branch is on the branch's wire. Coordinates are
pixels; within a row, y counts from its bottom and is negative above it.

The plan also names the probe that gives each edge its width. The numbers come later, in the browser, so one
plan serves all steps of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from ..catalog import NORMS, PROBES, SCHEMES, STREAMS
from ..catalog.patterns import Blocks, patterns
from ..catalog.scheme import Branch, Gain, Place, Scheme, Slots
from ..catalog.streams import Streams
from ..charts.palette import RED, ramp
from ..config import RunConfig
from ..lessons.anatomy.diagram import PLAIN

CARRIED = ("stream_rms", "branch_ratio", "grad_hidden", "grad_block")
"""The probes that the walk draws."""

DETAILED = 24  # the inside of a block is not drawn in deeper stacks
MOST_ROWS = 128
# Pixels: the stack with the insides of its blocks, and the most and least of a row of it; the same without.
STACK, TALLEST, SMALLEST = 576.0, 64.0, 30.0
COMPACT, WIDEST = 640.0, 16.0
HEAD, FOOT, CAP = 62.0, 42.0, 22.0  # above the first row, below the last, height of the end boxes
EXAMPLE = 52.0  # height of the one block that is drawn in detail beside a compact stack

GAIN_WORDS = {
    "stream_gain": "stream", "embed_gain": "embedding added", "input_gain": "branch input",
    "skip_gain": "skip", "branch_gain": "branch", "gamma_in": "scale of the norm before the branch",
    "gamma_out": "scale of the norm after the branch", "main_gain": "stream after the sum",
}  # fmt: skip


ONLY = {"attention": "attention alone", "ffn": "FFN alone"}
REMARKS: tuple[tuple[Callable[[Slots], bool], str], ...] = (
    (lambda s: s.mix == "lerp", "Skip × (1 − α), branch × α (learned)."),
    (lambda s: s.mix == "variance", "Skip × √(1 − s²), branch × s (learned)."),
    (lambda s: s.gate, "Stream × (1 − SiLU q) (learned), which gradients do not see."),
    (lambda s: not s.qk_gain.is_one, "Queries and keys × a learned gain."),
    (lambda s: not s.hidden_gain.is_one, "The FFN's hidden layer × a learned gain."),
    (lambda s: s.shifts, "Skip and branch + a learned shift, before their gains."),
    (lambda s: s.head_gain, "Each head × a learned gain."),
    (lambda s: s.spectral, "Matrices: γ W / σ(W), γ learned."),
    (lambda s: s.first_value > 0, "Attention mixes in the values of block 1."),
    (lambda s: not s.block_gain.is_zero, "The line around the stream: the block's input."),
)


@dataclass(frozen=True)
class Rows:
    """How the blocks share the height: `count` rows of `group` blocks, `height` pixels each."""

    count: int
    group: int
    height: float
    detailed: bool

    @property
    def total(self) -> float:
        """The height of the stack, in pixels."""
        return self.count * self.height

    def bottom(self, row: int) -> float:
        """y of the lower edge of a row, 0 being the lowest; of row `count`: the stack's top."""
        return round(HEAD + self.total - row * self.height, 2)


def rows(depth: int) -> Rows:
    """One row per block; low rows above 24 blocks, and several blocks per row above 128."""
    if depth <= DETAILED:
        return Rows(depth, 1, min(TALLEST, max(SMALLEST, round(STACK / depth))), True)
    group = ceil(depth / MOST_ROWS)
    count = ceil(depth / group)
    return Rows(count, group, round(min(WIDEST, COMPACT / count), 2), False)


@lru_cache(maxsize=64)
def _plan(scheme: Scheme, depth: int, norm: str, extra: tuple[str, ...]) -> dict[str, Any]:
    kinds, shape = patterns(scheme.key, depth), rows(depth)
    streams = STREAMS[scheme.streams]
    words = [f"Each row is {shape.group} blocks."] if shape.group > 1 else []
    words += [*_gain_words(scheme, depth), *([streams.sentence] if streams.beside else [])]
    if norm == "none":
        words.append("The norm is switched off: faint bars mark its place.")
    return {
        "norm": NORMS.label(norm),
        "normed": norm != "none",
        "depth": depth,
        "width": WIDTH,
        "height": round(HEAD + shape.total + FOOT, 2),
        "x": {"up": UP, "down": DOWN, "box": [BOX_LEFT, BOX_RIGHT]},
        "rows": {"count": shape.count, "group": shape.group, "height": shape.height},
        "detailed": shape.detailed,
        "streams": {"copies": streams.copies, "history": streams.earlier},
        "words": " ".join(words),
        "probes": {key: _probe(key) for key in CARRIED},
        "ramp": ["#" + bytes(color).hex() for color in ramp(17).tolist()],
        "red": RED,
        "kinds": [
            inner(group, depth, streams, shape.height if shape.detailed else EXAMPLE, extra)
            for group in kinds
        ],
        "nodes": _nodes(scheme, depth, shape, [group.last for group in kinds]),
        "edges": list(_edges(scheme, depth, shape)),
    }


def walk(config: RunConfig) -> dict[str, Any]:
    """The plan of a config's stack, JSON-safe; it depends only on scheme, norms and depth.

    words    facts that the picture can't show: blocks per row, values of gains, several streams
    kinds    the inside of a block, once for each wiring (`inner`)
    nodes    embed, embed_norm, block (with its kind and its gains), final_norm, head; pixels
    edges    kind stream | gradient | branch; layer 0..L, with first..layer if a row has several;
             from and to are ids of nodes; probe gives its width, y is where it is measured.
             A branch's RMS is branch_ratio (its probe) x stream_rms of the layer `below` x `factor`;
             `below` is None if a norm on the skip path makes that RMS 1.
    """
    c = config
    extra = tuple(name for name in ("qk_norm", "v_norm") if getattr(c, name) != "off")
    return _plan(SCHEMES[c.scheme], c.depth, c.placed().norm, extra)


def _probe(key: str) -> dict[str, Any]:
    record = PROBES[key]
    return {
        "label": record.label,
        "unit": record.unit,
        "first": record.first_layer,
        "domain": list(record.domain),
    }


def _nodes(scheme: Scheme, depth: int, shape: Rows, last_of_kind: list[int]) -> list[Node]:
    low, high = shape.bottom(0), shape.bottom(shape.count)
    wide = {"x": UP - 32, "width": DOWN - UP + 64, "height": CAP}
    nodes: list[Node] = [
        {"id": "embed", "kind": "embed", "words": "embedding", "y": low + 18, **wide}
    ]
    if scheme.embed_norm:
        nodes.append({"id": "embed_norm", "kind": "norm", "slot": "embed_norm", "y": low + 11})
    for row in range(shape.count):
        first, layer = _layers(row, depth, shape)
        kind = next(i for i, last in enumerate(last_of_kind) if layer <= last)
        node: Node = {
            "id": f"block {layer}",
            "kind": "block",
            "of": kind,
            "first": first,
            "layer": layer,
            "y": shape.bottom(row),
        }
        if gains := _gains_of(scheme, layer, depth):
            node["gains"] = gains
        nodes.append(node)
    if scheme.final_norm:
        nodes.append({"id": "final_norm", "kind": "norm", "slot": "final_norm", "y": high - 11})
    words = "output head and loss"
    nodes.append({"id": "head", "kind": "head", "words": words, "y": high - 18 - CAP, **wide})
    return nodes


def _layers(row: int, depth: int, shape: Rows) -> tuple[int, int]:
    """First and last block of a row."""
    return row * shape.group + 1, min((row + 1) * shape.group, depth)


def _edges(scheme: Scheme, depth: int, shape: Rows) -> Iterator[dict[str, Any]]:
    names = ["embed", *(f"block {_layers(r, depth, shape)[1]}" for r in range(shape.count)), "head"]
    for row in range(shape.count + 1):
        first, layer = _layers(row - 1, depth, shape) if row else (0, 0)
        at = {"first": first, "layer": layer, "y": shape.bottom(row)}
        lower, upper = names[row], names[row + 1]
        yield {"kind": "stream", "probe": "stream_rms", "from": lower, "to": upper, **at}
        yield {"kind": "gradient", "probe": "grad_hidden", "from": upper, "to": lower, **at}
        if row:
            keeps, factor = skip_factor(scheme.slots(Place(layer, depth, "attention")))
            yield {
                "kind": "branch",
                "probe": "branch_ratio",
                "from": lower,
                "to": lower,
                **at,
                "below": layer - 1 if keeps else None,
                "factor": _short(factor),
            }


def _gains_of(scheme: Scheme, block: int, depth: int) -> dict[str, list[float | None]]:
    """slot -> its value in attention and in the FFN of a block; None where it has no effect."""
    both = [gain_values(scheme.slots(Place(block, depth, b))) for b in ("attention", "ffn")]
    return {
        slot: [_short(values[slot].value) if slot in values else None for values in both]
        for slot in dict.fromkeys([*both[0], *both[1]])
    }


def _gain_words(scheme: Scheme, depth: int) -> list[str]:
    """A sentence like "Skip × α = 2.21." for each kind of gain in a stack, with its range over the
    blocks, and for other facts that the picture omits."""
    by_slot: dict[str, list[tuple[str, Gain]]] = {}
    remarks: dict[str, None] = {}
    for block in range(1, depth + 1):
        for branch in ("attention", "ffn"):
            slots = scheme.slots(Place(block, depth, branch))
            remarks |= dict.fromkeys(words for tells, words in REMARKS if tells(slots))
            if slots.mix == "sum":
                for slot, gain in gain_values(slots).items():
                    by_slot.setdefault(slot, []).append((branch, gain))
    symbols: dict[str, str] = {c.gain: PLAIN.get(c.symbol, c.symbol) for c in scheme.constants}
    return [
        *(_gain_sentence(slot, some, symbols.get(slot, "")) for slot, some in by_slot.items()),
        *remarks,
    ]


def _gain_sentence(slot: str, branch_gains: list[tuple[str, Gain]], symbol: str) -> str:
    where, gains = {branch for branch, _ in branch_gains}, [gain for _, gain in branch_gains]
    first, last = (f"{gain.value:.3g}" for gain in (gains[0], gains[-1]))
    value = first if first == last else f"{first} to {last}"
    of = f" ({ONLY[where.pop()]})" if len(where) == 1 else ""
    what = f"{GAIN_WORDS[slot].capitalize()}{of} × "
    if gains[0].ramp:
        return f"{what}a gain that rises from 0 to 1, deeper blocks later."
    if gains[0].learned:
        return f"{what}{symbol or 'a gain'} (learned, starts at {value})."
    return f"{what}{symbol} = {value}." if symbol else f"{what}{value}."


def _short(value: float) -> float:
    return float(f"{value:.6g}")


# The inside of one block.

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
    group: Blocks, depth: int, streams: Streams, height: float, extra: tuple[str, ...]
) -> dict[str, Any]:
    """The layout of a block of this group: {"words", "height", "box", "nodes", "wires"}.

    `extra` names the norms in attention that the config adds: "qk_norm", "v_norm".
    """
    row = _Row(height)
    branches: list[tuple[Branch, Slots]] = [("attention", group.attention), ("ffn", group.ffn)]
    for i, (branch, slots) in enumerate(branches):
        y = round(-(i + 0.5) * row.half, 2)
        row.node(branch, branch, "box", (BOX_LEFT + BOX_RIGHT) / 2, y, words=WORDS[branch])
        _stream(row, i, branch, slots, "mix" if streams.mixes else "plus")
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
    gain("main_gain", GATE, not s.main_gain.is_one)
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
    gains = {
        slot: getattr(s, slot)
        for slot in (
            "stream_gain",
            "embed_gain",
            "input_gain",
            "skip_gain",
            "branch_gain",
            "main_gain",
        )
        if not getattr(s, slot).is_one and not (slot == "embed_gain" and s.embed_gain.is_zero)
    }
    for slot in ("gamma_in", "gamma_out"):
        if getattr(s, slot) != 1.0:
            gains[slot] = Gain(getattr(s, slot), "channel")
    return gains
