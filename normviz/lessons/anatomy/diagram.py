"""A block of a scheme as a small SVG, drawn from its record. It reads from the bottom up."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from ...catalog import SCHEMES, STREAMS
from ...catalog.patterns import patterns
from ...catalog.scheme import Constant, Gain, Slots

WIDTH, ROW = 244, 34
ENTERED, STREAM, BRANCH = 16, 66, 178
INK = "#868e96"  # an image does not inherit the page's theme; a mid tone is legible on both
PLAIN = {
    r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\lambda": "λ", r"\omega": "ω",
    r"\gamma_{\mathrm{out}}": "γ",
}  # fmt: skip


@dataclass
class Drawing:
    """Rows from the bottom up; `y` is the height of the next one, counted upwards from 0."""

    norm: str
    color: str
    constants: tuple[Constant, ...]
    y: int = 0
    parts: list[str] = field(default_factory=list)

    def up(self, rows: float = 1.0) -> int:
        """Move up by so many rows; the new height."""
        self.y += round(ROW * rows)
        return self.y

    def box(self, x: int, y: int, words: str, is_norm: bool = False) -> None:
        """A labelled box centred on (x, y); norms have the lane's colour."""
        fill, half = (self.color, 42) if is_norm else (INK, 60)
        self.parts.append(
            f'<rect x="{x - half}" y="{-y - 12}" width="{2 * half}" height="24" rx="5" fill="{fill}"/>'
            f'<text x="{x}" y="{-y + 4}" text-anchor="middle" fill="#fff">{escape(words)}</text>'
        )

    def line(self, *points: tuple[int, int]) -> None:
        """A line through points (x, y), under everything else."""
        path = " ".join(f"{x},{-y}" for x, y in points)
        self.parts.insert(
            0, f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.5"/>'
        )

    def word(self, x: int, y: int, words: str, anchor: str = "start") -> None:
        """A text at (x, y), escaped."""
        self.parts.append(
            f'<text x="{x}" y="{-y}" text-anchor="{anchor}" fill="{INK}">{escape(words)}</text>'
        )

    def plus(self, y: int) -> None:
        """A sum: a filled circle over the stream's line, so that the line does not cross its plus."""
        self.parts.append(
            f'<circle cx="{STREAM}" cy="{-y}" r="11" fill="{INK}"/>'
            f'<path d="M{STREAM - 6} {-y}h12M{STREAM} {-y - 6}v12" stroke="#fff" stroke-width="2"/>'
        )

    def times(self, slot: str, gain: Gain) -> str:
        """The label "× name" for a gain that is not 1."""
        named = next((c.symbol for c in self.constants if c.gain == slot), "")
        return "" if gain.is_one else f"× {PLAIN.get(named, named) or f'{gain.value:.3g}'}"


def diagram(key: str, depth: int, norm: str, color: str) -> str:
    """SVG of the stream (left) and the branches (right) of the topmost kind of block, with the scheme's
    norms. It has one sublayer if attention and FFN are wired alike."""
    scheme, group = SCHEMES[key], patterns(key, depth)[-1]
    d = Drawing(norm, color, scheme.constants)
    sublayers = [("attention / FFN", group.ffn)]
    if not group.is_one_wire:
        sublayers = [("attention", group.attention), ("FFN", group.ffn)]
    for name, slots in sublayers:
        _sublayer(d, name, slots)
    d.up(0.8)
    if any(s.branch_reads == "block" or not s.block_gain.is_zero for _, s in sublayers):
        d.word(ENTERED - 4, -4, "x of the block")
    streams = STREAMS[scheme.streams]
    for i in range(1, streams.beside + 1):
        d.line((STREAM - 5 * i, -10), (STREAM - 5 * i, d.y))
    if streams.drawn:
        d.word(STREAM + 8, -10, streams.drawn)
    d.line((STREAM, -10), (STREAM, d.y))
    d.word(STREAM - 12, d.y - 10, "x⁺", "end")
    d.word(STREAM - 12, -10, "x", "end")
    height = d.y + 28
    what = "One sublayer" if len(sublayers) == 1 else "One block"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-d.y - 6} {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(f"{what} of {scheme.label}")}" font-size="11" '
        f'font-family="sans-serif">{"".join(d.parts)}</svg>'
    )


GLYPH_WIDTH, GLYPH_HEIGHT = 84, 36
MAIN, ABOVE = 27, 10  # heights of the stream and of the branch


def glyph(key: str, depth: int, color: str) -> str:
    """A small SVG of the topmost kind of block: the stream below, from left to right; the branches
    above it as boxes; each norm a bar in the lane's colour. One sublayer if all are wired alike."""
    scheme, group = SCHEMES[key], patterns(key, depth)[-1]
    sublayers = [group.ffn] if group.is_one_wire else [group.attention, group.ffn]
    width = GLYPH_WIDTH * len(sublayers)
    lines = [
        f'<path d="M0 {MAIN + 4 * i}H{width}"/>' for i in range(STREAMS[scheme.streams].beside + 1)
    ]
    parts = [_small(s, color, GLYPH_WIDTH * i) for i, s in enumerate(sublayers)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {GLYPH_HEIGHT}" '
        f'height="{GLYPH_HEIGHT}" width="{width}" fill="none" stroke="{INK}" stroke-width="2">'
        f"{''.join(lines)}{''.join(parts)}</svg>"
    )


def _small(s: Slots, color: str, left: int) -> str:
    """One sublayer of a glyph: fork, branch with its norms, sum, and the norms on the stream."""
    fork, join = left + (20 if s.norm_fork else 8), left + GLYPH_WIDTH - (20 if s.norm_main else 8)

    def norm(x: float, y: int) -> str:
        return f'<rect x="{x - 4}" y="{y - 8}" width="8" height="16" rx="2" fill="{color}" stroke="none"/>'

    middle = (fork + join) / 2
    shapes = [
        f'<path d="M{fork} {MAIN}V{ABOVE}H{join}V{MAIN}"/>',
        f'<rect x="{middle - 9}" y="{ABOVE - 8}" width="18" height="16" rx="3" fill="{INK}" stroke="none"/>',
        f'<circle cx="{join}" cy="{MAIN}" r="4.5" fill="{INK}" stroke="none"/>',
        f'<path d="M{join - 2.5} {MAIN}h5M{join} {MAIN - 2.5}v5" stroke="#fff" stroke-width="1"/>',
    ]
    places = (
        (s.norm_fork, left + 8, MAIN),
        (s.norm_in and not s.shares_norm, middle - 16, ABOVE),
        (s.norm_inner or s.norm_qkv or s.unit_qk, middle, ABOVE),
        (s.norm_out, middle + 16, ABOVE),
        (s.norm_skip, middle, MAIN),
        (s.norm_main, left + GLYPH_WIDTH - 8, MAIN),
    )
    return "".join(shapes + [norm(x, y) for there, x, y in places if there])


def _sublayer(d: Drawing, name: str, s: Slots) -> None:
    if before := before_the_fork(d, s):
        d.word(STREAM + 6, d.up(0.6), before)
    if s.norm_fork:
        d.box(STREAM, d.up(0.8), d.norm, True)
    fork = d.up(0.7)
    rows: list[tuple[str, bool]] = []
    if s.norm_in and not s.shares_norm:
        rows.append((d.norm, True))
    rows.append((_branch_words(name, s), False))
    rows += [(d.norm, True)] * s.norm_out
    for words, is_norm in rows:
        d.box(BRANCH, d.up(), words, is_norm)
    if scale := d.times("input_gain", s.input_gain):
        d.word(BRANCH + 6, fork + ROW * len(rows) - 20, scale)
    join = d.up()
    start = ENTERED if s.branch_reads == "block" else STREAM
    d.line((start, fork), (BRANCH, fork), (BRANCH, join), (STREAM + 11, join))
    if s.branch_reads == "block":
        d.line((ENTERED, 0), (ENTERED, fork))
        d.line((STREAM, 0), (ENTERED, 0))
    if not s.block_gain.is_zero:
        d.line((STREAM, 0), (ENTERED, 0), (ENTERED, join), (STREAM - 11, join))
    d.plus(join)
    _gains(d, s, fork, join)
    if s.norm_main:
        d.box(STREAM, d.up(), d.norm, True)
    if main := d.times("main_gain", s.main_gain):
        d.word(STREAM + 6, d.up(0.7), main)
    if s.gate:
        d.word(STREAM + 6, d.up(0.7), "× (1 − SiLU q), forward only")


def before_the_fork(d: Drawing, s: Slots) -> str:
    """What acts on the stream before it splits, in words: its gain, and the embedding that is added."""
    first, share = d.times("stream_gain", s.stream_gain), d.times("embed_gain", s.embed_gain)
    return first if s.embed_gain.is_zero else f"{first} + {share.removeprefix('× ')} x₀".strip()


def _branch_words(name: str, s: Slots) -> str:
    inside = ["γ W / σ"] * s.spectral
    if s.norm_qkv:
        inside.append("qkv norm")
    if s.unit_qk:
        inside.append("unit q, k")
    if not s.hidden_gain.is_one:
        inside.append("hidden gains")
    if s.norm_inner:
        inside.append("norm inside" if name == "FFN" else "inner norm")
    if s.head_gain:
        inside.append("head gains")
    return f"{name}, {inside[0]}" if inside else name


def _gains(d: Drawing, s: Slots, fork: int, join: int) -> None:
    middle = (fork + join) // 2
    if s.norm_skip:
        d.box(STREAM, middle, d.norm, True)
    skip, branch = gain_words(d, s)
    if skip:
        d.word(STREAM - 6, middle, skip, "end")
    if branch:
        d.word((STREAM + BRANCH) // 2 - 8, join + 6, branch)


def gain_words(d: Drawing, s: Slots) -> tuple[str, str]:
    """The gains of skip path and branch, in words; empty for 1."""
    skip, branch = d.times("skip_gain", s.skip_gain), d.times("branch_gain", s.branch_gain)
    if s.mix == "variance":
        skip, branch = "× √(1 − s²)", "× s"
    elif s.mix == "lerp":
        skip, branch = "× (1 − α)", "× α"
    if s.shifts:
        skip, branch = f"+ b {skip}", f"+ b {branch}"
    if s.skip_gain.is_zero:
        skip = "(not added)"
    return skip, branch
