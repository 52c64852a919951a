"""The session state of the anatomy: one or two configs, and their runs.

The configs ask for no steps: such a run measures at initialisation and ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import streamlit as st

from normviz.config import DEFAULTS, ConfigError, RunConfig
from normviz.lessons.anatomy.untrained import DEPTHS, NAMES, TRAINING, untrained
from normviz.links import DUEL, Link, Problem, decode, encode

from ...session import address
from ...session.page_state import PageState, chosen
from ...session.policy import link_notices

TABLE = "table"
"""The parameter of a link that names the open tab."""
CODEC = replace(DUEL, view=(TABLE,))
"""The links of a duel, of which this page knows nothing but the settings."""
TRAINED = (
    "The link also has settings of training, such as steps and learning rate. They are left out: this "
    "page measures before the first step, where they have no effect."
)


@dataclass
class Anatomy(PageState):
    """One visitor's anatomy: of one placement, or of two side by side.

    asked  results that this visitor has queued a run for
    mine   the runs queued so
    drawn  the runs of the curves on screen, which stay until all of the next ones are there
    named  whether a link named the placements: the table of all is closed then
    """

    lanes: tuple[RunConfig, ...]
    asked: set[str] = field(default_factory=set)
    mine: set[int] = field(default_factory=set)
    drawn: tuple[int, ...] = ()
    named: bool = False

    @property
    def is_usual(self) -> bool:
        """Whether the page shows what it opens with, and no link named that."""
        return not self.named and self.lanes == usual()


def usual() -> tuple[RunConfig, ...]:
    """The placements that the page opens with."""
    return tuple(untrained(RunConfig(scheme=scheme)) for scheme in ("pre", "post"))


def trained(page_anatomy: Anatomy) -> tuple[RunConfig, ...]:
    """Two lanes to train: the page's two placements, or its only one and `peer`.

    Raises ConfigError if they may not be trained.
    """
    first, *rest = (lane.replace(steps=DEFAULTS["steps"]) for lane in page_anatomy.lanes)
    return (first, *(rest or [first.replace(scheme=peer(page_anatomy))]))


def peer(page_anatomy: Anatomy) -> str:
    """The placement to train beside the page's first one: Pre-LN, or Post-LN beside Pre-LN."""
    return "post" if page_anatomy.lanes[0].scheme == "pre" else "pre"


def anatomy() -> Anatomy:
    """The session's state. On arrival with a link, the link's."""
    params = address.params()
    if "anatomy" not in st.session_state or (st.session_state["arrived"] and CODEC.reads(params)):
        st.session_state["anatomy"] = _opened(params)
    return st.session_state["anatomy"]


def open_link(query: str) -> None:
    """Show the placements of a link."""
    st.session_state["anatomy"] = _opened(parse_qs(query, keep_blank_values=True))


def _opened(params: dict[str, list[str]]) -> Anatomy:
    others = CODEC.others(params)
    if not CODEC.reads(params):
        return Anatomy(usual(), notices=tuple(others))
    link = decode(params)
    shown = tuple(untrained(lane) for lane in link.lanes[: len(NAMES)])
    if problem := _too_deep(shown):
        link = Link(problems=(problem,))
    if link.problems:
        return Anatomy(usual(), link=link)
    notices: list[str] = []
    if len(link.lanes) > len(NAMES):
        notices.append(f"The link has {len(link.lanes)} lanes: the first two are shown here.")
    setting_names = {*TRAINING, "steps"} - set(link.missing)
    if any(
        getattr(a, name) != getattr(untrained(a), name)
        for a in link.lanes
        for name in setting_names
    ):
        notices.append(TRAINED)
    return Anatomy(shown, notices=(*notices, *link_notices(shown), *others), named=True)


def _too_deep(lanes: Sequence[RunConfig]) -> Problem | None:
    depth = max((lane.depth for lane in lanes), default=1)
    if depth in DEPTHS:
        return None
    most = int(DEPTHS.high)
    mended = [lane.replace(depth=min(lane.depth, most)) for lane in lanes]
    sentence = f"depth is {depth}, allowed on this page is {DEPTHS.text()}"
    return Problem(sentence, encode(mended), f"depth = {most}")


def change(field: str, value: Any, lane: int | None = None) -> None:
    """Set a field in one config or in all. A value that is not allowed only sets `complaint`."""
    page_anatomy: Anatomy = chosen("anatomy")
    try:
        page_anatomy.lanes = tuple(
            config.replace(**{field: value}) if lane in (None, i) else config
            for i, config in enumerate(page_anatomy.lanes)
        )
        page_anatomy.changed()
    except ConfigError as error:
        page_anatomy.complaint = str(error)


def take_row(schemes: Sequence[str], key: str) -> None:
    """Set the first placement to that of the row that was chosen in the table with this key."""
    rows = chosen(key).selection.rows
    if rows and rows[0] < len(schemes):
        change("scheme", schemes[rows[0]], 0)


def compare_with(scheme: str | None) -> None:
    """Set the second placement, or remove it."""
    page_anatomy: Anatomy = chosen("anatomy")
    first = page_anatomy.lanes[0]
    second = page_anatomy.lanes[1] if len(page_anatomy.lanes) > 1 else first
    page_anatomy.lanes = (first,) if scheme is None else (first, second.replace(scheme=scheme))
    page_anatomy.changed()
