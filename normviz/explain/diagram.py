"""One sublayer of a scheme as a small SVG, drawn from its record. Reads from the bottom up."""

from __future__ import annotations

from html import escape

from ..catalog import SCHEMES
from ..catalog.scheme import Place

WIDTH, ROW, TOP = 220, 34, 26
STREAM, BRANCH = 60, 150
INK = "#868e96"  # an image does not see the page's theme: a mid tone reads on light and dark


def _box(x: int, y: int, words: str, color: str, norm: bool) -> str:
    """A labelled box centred on (x, y); norms have the lane's colour."""
    fill = color if norm else INK
    return (
        f'<rect x="{x - 42}" y="{y - 12}" width="84" height="24" rx="5" fill="{fill}"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" fill="#fff">{escape(words)}</text>'
    )


def _line(points: str) -> str:
    return f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-width="1.5"/>'


def diagram(key: str, depth: int, norm: str, color: str) -> str:
    """SVG of the stream (left) and the branch (right) with the norms where the scheme puts them."""
    scheme = SCHEMES[key]
    s = scheme.slots(Place(max(1, depth // 2), depth, "ffn"))
    branch = [("norm", s.norm_in), ("attention / FFN", True), ("norm", s.norm_out)]
    rows = [(words, words == "norm") for words, there in branch if there]
    height = TOP + ROW * (len(rows) + 3 + s.norm_main)
    bottom = height - TOP // 2
    fork, join = bottom - ROW // 2, bottom - ROW * (len(rows) + 1)
    parts = [
        _line(f"{STREAM},{bottom + 8} {STREAM},8"),
        _line(f"{STREAM},{fork} {BRANCH},{fork} {BRANCH},{join} {STREAM + 11},{join}"),
    ]
    for i, (words, is_norm) in enumerate(rows):
        label = norm if is_norm else words
        parts.append(_box(BRANCH, bottom - ROW * (i + 1), label, color, is_norm))
    parts.append(
        f'<circle cx="{STREAM}" cy="{join}" r="11" fill="none" stroke="{INK}"/>'
        f'<text x="{STREAM}" y="{join + 5}" text-anchor="middle" fill="{INK}">+</text>'
    )
    if s.norm_skip:
        parts.append(_box(STREAM, (fork + join) // 2, norm, color, True))
    if s.skip_gain != 1.0:
        parts.append(_gain(STREAM + 6, (fork + join) // 2, s.skip_gain))
    if s.branch_gain != 1.0:
        parts.append(_gain((STREAM + BRANCH) // 2, join - 6, s.branch_gain))
    if s.norm_main:
        parts.append(_box(STREAM, join - ROW, norm, color, True))
    names = f"One sublayer of {scheme.label}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(names)}" font-size="11" font-family="sans-serif">{"".join(parts)}'
        f'<text x="{STREAM - 12}" y="16" text-anchor="end" fill="{INK}">x⁺</text>'
        f'<text x="{STREAM - 12}" y="{bottom + 4}" text-anchor="end" fill="{INK}">x</text>'
        "</svg>"
    )


def _gain(x: int, y: int, value: float) -> str:
    return f'<text x="{x}" y="{y}" fill="{INK}">× {value:.3g}</text>'
