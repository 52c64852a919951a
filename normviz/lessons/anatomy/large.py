"""The block of a config as a large picture of a page."""

from __future__ import annotations

from html import escape

from ...catalog import CELLS, FAMILIES, NORMS, PLACEMENTS
from ...charts.palette import ink
from ...charts.svg import data_uri
from ...config import RunConfig
from . import cell
from .block import block


def large(config: RunConfig, color: str, before: str = "", dark: bool = False) -> str:
    """HTML of a config's block or cell, large: with both branches of the block where there is room, with one
    in a narrow place. Norms move there from where the scheme `before` has them."""
    about = PLACEMENTS[config.scheme]
    words = escape(f"A block with {about.label}. {about.sentence}")
    if config.scheme in CELLS:
        drawn = {"two": cell.diagram(config, NORMS.label(config.placed().norm), color)}
    else:
        names = (in_family(config, "attention"), "FFN")
        came = "" if before in CELLS else before
        drawn = {
            name: block(
                config.scheme,
                config.depth,
                color,
                names,
                came,
                config.norm != "none",
                one,
                ink(dark),
            )
            for name, one in (("two", False), ("one", True))
        }
    return "".join(
        f'<img class="{name}" alt="{words}" src="{data_uri(svg)}">' for name, svg in drawn.items()
    )


def in_family(config: RunConfig, words: str) -> str:
    """Words about attention and an FFN, with the name that the family's first branch has."""
    names = {"first": "first FFN", "messages": "messages"}
    return words.replace("attention", names.get(FAMILIES[config.family].first or "", "attention"))
