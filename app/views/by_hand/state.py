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
    it: Hand | None = st.session_state.get("hand")
    arrived = st.session_state["arrived"]
    if it is None or (arrived and links.CODEC.reads(params)):
        it = st.session_state["hand"] = _opened(params)
    elif arrived:  # Streamlit dropped the editor's edits while another page was open
        it.show(it.example, reset=True)
    return it


def open_link(query: str) -> None:
    """Show the example of a link."""
    st.session_state["hand"] = _opened(parse_qs(query, keep_blank_values=True))


def _opened(params: dict[str, list[str]]) -> Hand:
    usual = PRESETS["usual"].example()
    found = links.decode(params) if links.CODEC.reads(params) else None
    if found is None or found.example is None:
        it = Hand(usual, usual, next(EDITORS))
        it.link = Link(problems=found.problems) if found else None
        it.notices = () if found else tuple(links.CODEC.others(params))
        return it
    it = Hand(found.example, found.example, next(EDITORS), notices=found.notices)
    it.span = _span(found.example)
    return it


def begin(preset: str) -> None:
    """Show a preset's table. The experiment stays."""
    it: Hand = chosen("hand")
    fresh = PRESETS[preset].example()
    names = ("x", "gamma", "beta", "row", "feature")
    it.show(it.example.replace(**{name: getattr(fresh, name) for name in names}), reset=True)
    it.span = _span(fresh)


def change(**fields: Any) -> None:
    """Change fields of the example. A value that is not allowed only sets `complaint`."""
    _attempt(lambda example: example.replace(**fields))


def attempt(name: str, *words: Any) -> None:
    """Replace the example by the result of one of its methods, such as `trying` or `sized`."""
    _attempt(lambda example: getattr(example, name)(*words))


def drag(value: float) -> None:
    """Set the number of the chosen cell."""
    it: Hand = chosen("hand")
    at = it.example
    cells = [list(row) for row in at.x]
    cells[at.row - 1][at.feature - 1] = round(value, 6)
    _attempt(lambda example: example.replace(x=tuple(tuple(row) for row in cells)))


def paste(text: str) -> None:
    """Set the whole table from text."""
    if _attempt(lambda example: example.holding(matrix(text)), reset=True):
        it: Hand = chosen("hand")
        it.span = _span(it.example)


def typed(edits: object) -> None:
    """Apply the editor's edits to its base: {line: {feature: text}}, with lines of x, then γ, β.

    Anything else, which our editor never sends, sets `complaint` and resets the editor.
    """
    it: Hand = chosen("hand")
    if (placed := _placed(edits, it.base)) is None:
        it.show(it.example, reset=True)
        it.complaint = f"The change belongs to no cell of this table. {STILL}"
        return
    lines = [list(map(written, line)) for line in _table(it.base)]
    for (line, feature), text in placed.items():
        lines[line][feature] = text
    try:
        *x, gamma, beta = (
            tuple(number(text, _where(i, f, it.base)) for f, text in enumerate(line, 1))
            for i, line in enumerate(lines)
        )
        it.example = it.example.replace(x=tuple(x), gamma=gamma, beta=beta)
        it.changed()
        it.retyped = True
        it.span = max(it.span, _span(it.example))
    except HandError as error:
        it.complaint = f"{sentence(str(error))} {STILL}"


def _placed(edits: object, base: Example) -> dict[tuple[int, int], str] | None:
    """The edited texts by line and feature, both from 0; None if `edits` holds anything else."""
    names = [str(i) for i in range(1, base.features + 1)]
    found: dict[tuple[int, int], str] = {}
    if not isinstance(edits, Mapping):
        return None
    for line, cells in edits.items():
        if line not in range(base.rows + len(GREEK)) or not isinstance(cells, Mapping):
            return None
        for feature, text in cells.items():
            if feature not in names or not isinstance(text, str | None):
                return None
            found[line, names.index(feature)] = text or ""
    return found


def _where(line: int, feature: int, base: Example) -> str:
    name = f"Row {line + 1}" if line < base.rows else GREEK[line - base.rows]
    return f"{name}, feature {feature}"


def _attempt(make: Callable[[Example], Example], reset: bool = False) -> bool:
    """Replace the example by `make(example)`. Returns whether that was allowed."""
    it: Hand = chosen("hand")
    try:
        it.show(make(it.example), reset)
    except HandError as error:
        it.complaint = f"{sentence(str(error))} {STILL}"
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
