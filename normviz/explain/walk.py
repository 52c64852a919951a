"""The plan of the signal walk: the whole stack of a lane, edge by edge, drawn from its record.

The residual stream goes up the left side and its gradient down the right side; each block is a row
between them. The plan has the positions, and the probe that gives each edge its width. The numbers
come later (`assets/player/walk.js`), so one plan serves all steps of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from ..catalog import NORMS, PROBES, SCHEMES
from ..catalog.scheme import Gain, Place, Scheme, Slots
from ..charts.palette import RED, ramp
from ..config import RunConfig
from .diagram import BESIDE, PLAIN
from .patterns import patterns
from .walk_block import (
    BOX_LEFT,
    BOX_RIGHT,
    DOWN,
    UP,
    WIDTH,
    Node,
    gain_values,
    inner,
    skip_factor,
)

CARRIED = ("stream_rms", "branch_ratio", "grad_hidden", "grad_block")
"""The probes that the walk draws."""

DETAILED = 24  # the inside of a block is not drawn in deeper stacks
MOST_ROWS = 128
TALLEST, STACK, COMPACT = 64.0, 576.0, 640.0
SMALLEST, WIDEST = 30.0, 16.0
HEAD, FOOT, CAP = 62.0, 42.0, 22.0  # above the first row, below the last, height of the end boxes
EXAMPLE = 52.0  # height of the one block that is drawn in detail beside a compact stack

SAID = {
    "stream_gain": "stream", "embed_gain": "embedding added", "input_gain": "branch input",
    "skip_gain": "skip", "branch_gain": "branch", "gamma_in": "scale of the norm before the branch",
    "gamma_out": "scale of the norm after the branch",
}  # fmt: skip
HISTORY = ("dense", "attention")
TOLD = {
    "dual": "Two streams side by side; widths are of both together.",
    "siamese": "Two streams side by side; widths are of both together.",
    "hyper": "Four mixed copies of the stream; widths are of all together.",
    "manifold": "Four mixed copies of the stream; widths are of all together.",
    "dense": "Dotted: earlier outputs, which are mixed in again.",
    "attention": "Dotted: earlier outputs; each branch reads an average of them.",
}


ONLY = {"attention": "attention alone", "ffn": "FFN alone"}
REMARKS: tuple[tuple[Callable[[Slots], bool], str], ...] = (
    (lambda s: s.mix == "lerp", "Skip × (1 − α), branch × α (learned)."),
    (lambda s: s.mix == "variance", "Skip × √(1 − s²), branch × s (learned)."),
    (lambda s: s.gate, "Stream × (1 − SiLU q) (learned), which gradients do not see."),
    (lambda s: not s.qk_gain.is_one, "Queries and keys × a learned gain."),
    (lambda s: not s.hidden_gain.is_one, "The FFN's hidden layer × a learned gain."),
    (lambda s: s.head_gain, "Each head × a learned gain."),
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
    beside, _ = BESIDE.get(scheme.streams, (0, ""))
    history = beside if scheme.streams in HISTORY else 0
    words = [f"Each row is {shape.group} blocks."] if shape.group > 1 else []
    words += [*_gain_words(scheme, depth), *filter(None, [TOLD.get(scheme.streams)])]
    if norm == "none":
        words.append("The norm is switched off: faint bars mark its place.")
    return {
        "scheme": scheme.key,
        "label": scheme.label,
        "norm": NORMS.label(norm),
        "normed": norm != "none",
        "depth": depth,
        "width": WIDTH,
        "height": round(HEAD + shape.total + FOOT, 2),
        "x": {"up": UP, "down": DOWN, "box": [BOX_LEFT, BOX_RIGHT]},
        "rows": {"count": shape.count, "group": shape.group, "height": shape.height},
        "detailed": shape.detailed,
        "streams": {"copies": 1 + beside - history, "history": history},
        "words": " ".join(words),
        "probes": {key: _probe(key) for key in CARRIED},
        "ramp": ["#" + bytes(color).hex() for color in ramp(17).tolist()],
        "red": RED,
        "kinds": [
            inner(group, depth, scheme.streams, shape.height if shape.detailed else EXAMPLE, extra)
            for group in kinds
        ],
        "nodes": _nodes(scheme, depth, shape, [group.last for group in kinds]),
        "edges": list(_edges(scheme, depth, shape)),
    }


def walk(config: RunConfig) -> dict[str, Any]:
    """The plan of a config's stack, JSON-safe; it depends only on scheme, norms and depth.

    words    facts that the picture can't show: blocks per row, values of gains, several streams
    kinds    the inside of a block, once for each wiring (`walk_block`)
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
    found: dict[str, list[tuple[str, Gain]]] = {}
    remarks: dict[str, None] = {}
    for block in range(1, depth + 1):
        for branch in ("attention", "ffn"):
            slots = scheme.slots(Place(block, depth, branch))
            remarks |= dict.fromkeys(words for tells, words in REMARKS if tells(slots))
            if slots.mix == "sum":
                for slot, gain in gain_values(slots).items():
                    found.setdefault(slot, []).append((branch, gain))
    symbols = {c.gain: PLAIN.get(c.symbol, c.symbol) for c in scheme.constants}
    return [*(_said(slot, some, symbols.get(slot, "")) for slot, some in found.items()), *remarks]


def _said(slot: str, found: list[tuple[str, Gain]], symbol: str) -> str:
    where, gains = {branch for branch, _ in found}, [gain for _, gain in found]
    first, last = (f"{gain.value:.3g}" for gain in (gains[0], gains[-1]))
    value = first if first == last else f"{first} to {last}"
    of = f" ({ONLY[where.pop()]})" if len(where) == 1 else ""
    what = f"{SAID[slot].capitalize()}{of} × "
    if gains[0].ramp:
        return f"{what}a gain that rises from 0 to 1, deeper blocks later."
    if gains[0].learned:
        return f"{what}{symbol or 'a gain'} (learned, starts at {value})."
    return f"{what}{symbol} = {value}." if symbol else f"{what}{value}."


def _short(value: float) -> float:
    return float(f"{value:.6g}")
