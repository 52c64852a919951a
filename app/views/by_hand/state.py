"""The session state of the By hand page: the example, and the table editor's content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from math import log10
from typing import Any
from urllib.parse import parse_qs

import streamlit as st

from normviz.lessons.by_hand import PRESETS, Example, HandError, links, matrix, number, written
from normviz.links import Link

from ...session import address
from ...session.markdown import sentence
from ...session.page_state import PageState, chosen

GREEK = ("γ", "β")
STILL = "The page below still shows what was there before."
EDITORS = count(1)
"""A new editor needs another key: with the same one it would go on with the old one's edits."""


@dataclass
class Hand(PageState):
    """One visitor's example.

    base       what the table editor was given; it keeps what was typed on top, also what is no
               number, until it is another editor (`editor`)
    retyped    the text area is to show the example again
    span       the ends of the slider that drags a number, either way
    """

    example: Example
    base: Example
    editor: int
    retyped: bool = True
    span: float = 10.0

    def show(self, example: Example, reset: bool = False) -> None:
        """Show another example. With other numbers, or if `reset`, the editor and the text area start
        again from it; else both keep what was typed."""
        if reset or _table(example) != _table(self.example):
            self.base, self.editor, self.complaint = example, next(EDITORS), None
            self.retyped = True
        self.example = example
        self.link, self.notices = None, ()


def hand() -> Hand:
    """The session's example. On arrival with a link, the link's."""
    params = address.params()
    page_hand: Hand | None = st.session_state.get("hand")
    arrived = st.session_state["arrived"]
    if page_hand is None or (arrived and links.CODEC.reads(params)):
        page_hand = st.session_state["hand"] = _opened(params)
    elif arrived:  # Streamlit dropped the editor's edits while another page was open
        page_hand.show(page_hand.example, reset=True)
    return page_hand


def open_link(query: str) -> None:
    """Show the example of a link."""
    st.session_state["hand"] = _opened(parse_qs(query, keep_blank_values=True))


def _opened(params: dict[str, list[str]]) -> Hand:
    usual = PRESETS["usual"].example()
    link = links.decode(params) if links.CODEC.reads(params) else None
    if link is None or link.example is None:
        page_hand = Hand(usual, usual, next(EDITORS))
        page_hand.link = Link(problems=link.problems) if link else None
        page_hand.notices = () if link else tuple(links.CODEC.others(params))
        return page_hand
    page_hand = Hand(link.example, link.example, next(EDITORS), notices=link.notices)
    page_hand.span = _span(link.example)
    return page_hand


def begin(preset: str) -> None:
    """Show a preset's table. The experiment stays."""
    page_hand: Hand = chosen("hand")
    fresh = PRESETS[preset].example()
    names = ("x", "gamma", "beta", "row", "feature")
    page_hand.show(
        page_hand.example.replace(**{name: getattr(fresh, name) for name in names}), reset=True
    )
    page_hand.span = _span(fresh)


def change(**fields: Any) -> None:
    """Change fields of the example. A value that is not allowed only sets `complaint`."""
    _attempt(lambda example: example.replace(**fields))


def attempt(name: str, *words: Any) -> None:
    """Replace the example by the result of one of its methods, such as `trying` or `sized`."""
    _attempt(lambda example: getattr(example, name)(*words))


def drag(value: float) -> None:
    """Set the number of the chosen cell."""
    page_hand: Hand = chosen("hand")
    at = page_hand.example
    cells = [list(row) for row in at.x]
    cells[at.row - 1][at.feature - 1] = round(value, 6)
    _attempt(lambda example: example.replace(x=tuple(tuple(row) for row in cells)))


def paste(text: str) -> None:
    """Set the whole table from text."""
    if _attempt(lambda example: example.holding(matrix(text)), reset=True):
        page_hand: Hand = chosen("hand")
        page_hand.span = _span(page_hand.example)


def typed(edits: object) -> None:
    """Apply the editor's edits to its base: {line: {feature: text}}, with lines of x, then γ, β.

    Anything else, which our editor never sends, sets `complaint` and resets the editor.
    """
    page_hand: Hand = chosen("hand")
    if (texts := _placed(edits, page_hand.base)) is None:
        page_hand.show(page_hand.example, reset=True)
        page_hand.complaint = f"The change belongs to no cell of this table. {STILL}"
        return
    lines = [list(map(written, line)) for line in _table(page_hand.base)]
    for (line, feature), text in texts.items():
        lines[line][feature] = text
    try:
        *x, gamma, beta = (
            tuple(number(text, _where(i, f, page_hand.base)) for f, text in enumerate(line, 1))
            for i, line in enumerate(lines)
        )
        page_hand.example = page_hand.example.replace(x=tuple(x), gamma=gamma, beta=beta)
        page_hand.changed()
        page_hand.retyped = True
        page_hand.span = max(page_hand.span, _span(page_hand.example))
    except HandError as error:
        page_hand.complaint = f"{sentence(str(error))} {STILL}"


def _placed(edits: object, base: Example) -> dict[tuple[int, int], str] | None:
    """The edited texts by line and feature, both from 0; None if `edits` holds anything else."""
    names = [str(i) for i in range(1, base.features + 1)]
    texts: dict[tuple[int, int], str] = {}
    if not isinstance(edits, Mapping):
        return None
    for line, cells in edits.items():
        if line not in range(base.rows + len(GREEK)) or not isinstance(cells, Mapping):
            return None
        for feature, text in cells.items():
            if feature not in names or not isinstance(text, str | None):
                return None
            texts[line, names.index(feature)] = text or ""
    return texts


def _where(line: int, feature: int, base: Example) -> str:
    name = f"Row {line + 1}" if line < base.rows else GREEK[line - base.rows]
    return f"{name}, feature {feature}"


def _attempt(make: Callable[[Example], Example], reset: bool = False) -> bool:
    """Replace the example by `make(example)`. Returns whether that was allowed."""
    page_hand: Hand = chosen("hand")
    try:
        page_hand.show(make(page_hand.example), reset)
    except HandError as error:
        page_hand.complaint = f"{sentence(str(error))} {STILL}"
        return False
    return True


def _table(example: Example) -> tuple[tuple[float, ...], ...]:
    """The lines that the editor shows."""
    return (*example.x, example.gamma, example.beta)


def _span(example: Example) -> float:
    """The next 1, 2 or 5 with zeros above all numbers, and at least 10."""
    most = max(abs(value) for row in example.x for value in row)
    decade = 10.0 ** int(log10(max(most, 10.0)))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= most)
