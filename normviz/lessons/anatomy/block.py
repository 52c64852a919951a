"""A block of a placement as a wide picture: the stream from left to right, the branches above it, each norm
a box in the lane's colour. Norms that another placement has elsewhere come from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ...catalog import SCHEMES, STREAMS
from ...catalog.patterns import patterns
from ...catalog.scheme import Slots
from .diagram import INK, Drawing, before_the_fork, gain_words

WIDTH, HEIGHT = 268, 100
"""Of one sublayer."""
STREAM, BRANCH = 70, 20
"""Heights of their lines, counted from the top."""
STYLE = """
text { fill: INK; text-anchor: middle; } text.start { text-anchor: start; } text.end { text-anchor: end; }
text.on { fill: #fff; font-weight: 600; }
.norm { animation: moves .7s cubic-bezier(.3, 0, .2, 1); } .new { animation-name: appears; }
@keyframes moves { from { transform: translate(var(--dx, 0), var(--dy, 0)); } }
@keyframes appears { from { opacity: 0; } }
@media (prefers-reduced-motion: reduce) { .norm { animation: none; } }
"""
NORM, BOX, LEAST = 46, 96, 5
"""Widths of a norm and of a branch, and the least distance between them."""
LEAD = 84
"""Width of what is before the first block: the embedding's norm."""


@dataclass(frozen=True)
class Layout:
    """Where the parts of a sublayer are: the x of fork and sum, the box of its branch, and the middle of each
    norm by its slot."""

    fork: float
    join: float
    box: tuple[float, float]
    norms: dict[str, tuple[float, float]]


def layout(s: Slots, left: float = 0) -> Layout:
    """The layout of a sublayer that begins at x = `left`."""
    has_words = s.norm_fork or not s.embed_gain.is_zero
    fork = left + (84 if has_words else 20)
    join = left + WIDTH - (84 if s.norm_main else 22)
    inside = s.norm_inner or s.norm_qkv or s.unit_qk
    has = {"in": s.norm_in and not s.shares_norm, "out": s.norm_out}
    around = NORM * sum(has.values())
    room = join - fork - around - LEAST * (2 + sum(has.values()))
    wide = min(BOX + (NORM if inside else 0), room)
    gap = (join - fork - around - wide) / (2 + sum(has.values()))
    at, norms = fork + gap, {}
    if has["in"]:
        norms["in"] = (at + NORM / 2, BRANCH)
        at += NORM + gap
    box = (at, wide)
    if has["out"]:
        norms["out"] = (at + wide + gap + NORM / 2, BRANCH)
    if inside:
        norms["inner"] = (at + wide - NORM / 2 - 2, BRANCH)
    if s.norm_fork:
        norms["fork"] = (left + 40, STREAM)
    if s.norm_skip:
        norms["skip"] = ((fork + join) / 2, STREAM)
    if s.norm_main:
        norms["main"] = (left + WIDTH - 38, STREAM)
    return Layout(fork, join, box, norms)


def block(
    key: str,
    depth: int,
    color: str,
    names: Sequence[str],
    before: str = "",
    has_norm: bool = True,
    one: bool = False,
    ink: str = INK,
) -> str:
    """SVG of a scheme's topmost kind of block, in a stack of `depth`, with the `names` of its two branches.
    `before`: the scheme whose norms move to where they are here. `one`: one sublayer, where both are wired
    alike. `ink`: the colour of words beside the boxes."""
    scheme, group = SCHEMES[key], patterns(key, depth)[-1]
    sublayers = _sublayers(key, depth, one)
    width, small = WIDTH * len(sublayers), len(sublayers) == 1
    names = ["branch"] if small else names
    stays = _moved(before, key, depth, one) if before else {}
    d = Drawing("", color, scheme.constants)
    beside = STREAMS[scheme.streams].beside
    lines, shapes, words = list[str](), list[str](), list[str]()
    for i, (s, name) in enumerate(zip(sublayers, names, strict=True)):
        part = layout(s, WIDTH * i)
        lines += _wires(s, part, group.attention if i else None)
        start, wide = part.box
        inside = "inner" in part.norms and has_norm
        middle = start + (wide - NORM * inside) / 2
        shapes.append(
            f'<rect x="{start:g}" y="{BRANCH - 17}" width="{wide:g}" height="34" rx="6" fill="{INK}"/>'
            f'<circle cx="{part.join:g}" cy="{STREAM}" r="9" fill="{INK}"/>'
            f'<path d="M{part.join - 5:g} {STREAM}h10M{part.join:g} {STREAM - 5}v10" stroke="#fff"/>'
        )
        size = ' font-size="10"' if wide - NORM * inside < 8 * len(name) else ""
        words.append(
            f'<text class="on" x="{middle:g}" y="{BRANCH + 5}"{size}>{escape(name)}</text>'
        )
        for slot, (x, y) in part.norms.items() if has_norm else ():
            shapes.append(
                _norm(x, y, color, slot == "inner", stays.get((i, slot), before and "new"))
            )
        words += _words(d, s, part, WIDTH * i)
        if not beside:
            words.append(f'<text x="{part.join:g}" y="{STREAM + 24}">sum</text>')
    lead = LEAD if scheme.embed_norm and has_norm else 0
    if lead:
        is_new = before and not SCHEMES[before].embed_norm
        lines.append(f'<path d="M0 0V{HEIGHT - 20}" stroke-dasharray="3 3" stroke-width="1"/>')
        shapes.append(_norm(-LEAD / 2, STREAM, color, False, "new" if is_new else ""))
        words.append(f'<text x="{-LEAD / 2:g}" y="{STREAM - 22}">embedding</text>')
    stream = "".join(f'<path d="M{-lead} {STREAM + 5 * i}H{width}"/>' for i in range(beside + 1))
    times = f"× {depth} blocks" if depth > 1 else "1 block"
    words.append(f'<text class="start" x="3" y="{HEIGHT - 5}">{times}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-lead} 0 {width + lead} '
        f'{HEIGHT}" width="{width + lead}" height="{HEIGHT}" fill="none" stroke-width="2" '
        f'font-family="system-ui, sans-serif" font-size="{14 if small else 13}">'
        f"<style>{STYLE.replace('INK', ink)}</style>"
        f'<g stroke="{INK}">{stream}{"".join(lines)}</g>{"".join(shapes)}{"".join(words)}</svg>'
    )


def _sublayers(key: str, depth: int, one: bool) -> list[Slots]:
    group = patterns(key, depth)[-1]
    return [group.ffn] if group.is_one_wire and one else [group.attention, group.ffn]


def _moved(
    before: str, key: str, depth: int, one: bool
) -> dict[tuple[int, str], tuple[float, float]]:
    """How far from its place each norm was in `before`: a norm of the same slot first, then any."""
    old, new = _sublayers(before, depth, one), _sublayers(key, depth, one)
    moved: dict[tuple[int, str], tuple[float, float]] = {}
    for i, (was, now) in enumerate(zip(old, new, strict=False)):
        there, here = layout(was, WIDTH * i).norms, layout(now, WIDTH * i).norms
        left = [slot for slot in there if slot not in here]
        for slot, (x, y) in here.items():
            at = slot if slot in there else left.pop(0) if left else None
            if at is not None:
                moved[i, slot] = (there[at][0] - x, there[at][1] - y)
    return moved


def _norm(x: float, y: float, color: str, inside: bool, came: tuple[float, float] | str) -> str:
    half, high = (NORM / 2 - 3, 22) if inside else (NORM / 2, 30)
    edge = ' stroke="#fff" stroke-width="1.5"' if inside else ""
    moves = f"--dx:{came[0]:g}px;--dy:{came[1]:g}px" if isinstance(came, tuple) else ""
    return (
        f'<g class="norm {came if isinstance(came, str) else ""}" style="{moves}">'
        f'<rect x="{x - half:g}" y="{y - high / 2:g}" width="{2 * half:g}" height="{high}" rx="5" '
        f'fill="{color}"{edge}/><text class="on" x="{x:g}" y="{y + 5:g}">norm</text></g>'
    )


def _wires(s: Slots, part: Layout, first: Slots | None) -> list[str]:
    """The lines of a branch; `first`: the sublayer before it in the block."""
    into, out = f"M{part.fork:g} {STREAM}", f"V{BRANCH}H{part.join:g}V{STREAM}"
    if first is not None and s.branch_reads == "block":
        there = layout(first)
        x = there.norms["in"][0] + NORM / 2 + 2 if s.shares_norm and "in" in there.norms else 8
        into = f"M{x:g} {BRANCH if s.shares_norm else STREAM}V1H{part.fork:g}"
    lines = [f'<path d="{into}{out}"/>']
    if not s.block_gain.is_zero:
        lines.append(f'<path d="M6 {STREAM}V{HEIGHT - 13}H{part.join:g}V{STREAM}"/>')
    return lines


def _words(d: Drawing, s: Slots, part: Layout, left: float) -> list[str]:
    """Gains that are not 1, beside their lines."""
    skip, branch = gain_words(d, s)
    entered = "" if s.block_gain.is_zero else d.times("block_gain", s.block_gain)
    middle, between = (part.fork + part.join) / 2, (BRANCH + STREAM) / 2 + 7
    skip_y = STREAM + 17 if "skip" in part.norms else STREAM - 6
    placed = (
        ("", middle, skip_y, skip),
        ("end", part.join - 6, between, branch),
        ("start", part.fork + 6, between, d.times("input_gain", s.input_gain)),
        ("end", left + WIDTH - 3, STREAM - 22, d.times("main_gain", s.main_gain)),
        ("end", part.join - 18, STREAM + 14, entered),
        ("start", left + 3, STREAM - (22 if s.norm_fork else 8), before_the_fork(d, s)),
    )
    return [
        f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
        for kind, x, y, text in placed
        if text
    ]
