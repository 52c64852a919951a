"""A recurrent net's placement as pictures, formula and gradient path. Torch-free."""

from __future__ import annotations

from html import escape

from ...catalog import CELLS, FAMILIES
from ...config import RunConfig
from .diagram import GLYPH_HEIGHT, GLYPH_WIDTH, INK


def glyph(key: str, color: str) -> str:
    """A small SVG of a cell: its input from the left, its state in a loop above, and norms as bars."""
    cell, middle = CELLS[key], GLYPH_WIDTH / 2

    def norm(x: float) -> str:
        return (
            f'<rect x="{x - 4}" y="19" width="8" height="16" rx="2" fill="{color}" stroke="none"/>'
        )

    parts = [
        f'<path d="M0 27H{GLYPH_WIDTH}"/>',
        f'<path d="M{middle + 16} 27V7H{middle - 30}V27"/>',
        f'<rect x="{middle - 9}" y="19" width="18" height="16" rx="3" fill="{INK}" stroke="none"/>',
        norm(middle - 18) if cell.in_cell else "",
        norm(middle + 28) if cell.between else "",
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {GLYPH_WIDTH} {GLYPH_HEIGHT}" '
        f'height="{GLYPH_HEIGHT}" width="{GLYPH_WIDTH}" fill="none" stroke="{INK}" stroke-width="2">'
        f"{''.join(parts)}</svg>"
    )


def diagram(config: RunConfig, norm: str, color: str) -> str:
    """An SVG of a cell with names: what enters a time step, what leaves it, and the norms."""
    cell, net = CELLS[config.scheme], FAMILIES.label(config.family)

    def box(x: int, words: str, fill: str, ink: str = "#fff") -> str:
        return (
            f'<rect x="{x - 34}" y="62" width="68" height="24" rx="4" fill="{fill}"/>'
            f'<text x="{x}" y="78" text-anchor="middle" fill="{ink}">{escape(words)}</text>'
        )

    parts = [
        '<path d="M12 74H352M276 74V28H40V74" fill="none" stroke="#7a7f8a" stroke-width="2"/>',
        '<text x="12" y="66" fill="#7a7f8a">x t</text>',
        '<text x="158" y="22" text-anchor="middle" fill="#7a7f8a">h of the step before</text>',
        box(208, f"{net} cell", INK),
        box(122, norm, color) if cell.in_cell else "",
        box(312, norm, color) if cell.between else "",
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 364 100" width="364" height="100" role="img" '
        f'aria-label="{escape(f"A time step of {net}, {cell.label}")}" font-size="11" '
        f'font-family="sans-serif">{"".join(parts)}</svg>'
    )


def gradient_path(config: RunConfig) -> str:
    """LaTeX of what a gradient passes on its way to the time step before."""
    J = r"\, J_N" if CELLS[config.scheme].in_cell else ""
    if config.family == "rnn":
        return rf"\frac{{\partial h_t}}{{\partial h_{{t-1}}}} = \mathrm{{diag}}(1 - h_t^2){J}\, W_h"
    return (
        r"\frac{\partial c_t}{\partial c_{t-1}} = \mathrm{diag}(\sigma(f)) + \ldots, \quad "
        r"\frac{\partial h_t}{\partial c_t} = \mathrm{diag}(\sigma(o)\,\tanh')" + J
    )
