"""Everything a visitor's session remembers, behind typed accessors. Nothing else writes these keys.

The truth is `lanes`: one validated config a lane. Widgets show it and write back through callbacks;
a value that is not allowed changes nothing and leaves a sentence in `complaint`.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from normviz.config import ConfigError, RunConfig
from normviz.limits import MAX_LANES
from normviz.links import Link, decode, names_a_setting
from normviz.presets import PRESETS

REPLAY_SECONDS = 8.0
NAMES = "ABCD"


@dataclass
class Duel:
    """One visitor's duel.

    runs       the run shown in each lane, None where there is none
    cursor     step that bars and rules show
    following  the cursor follows the training
    replay     when and from where the cursor started to move by itself, or None
    given      the last positions that the slider was given by us
    touched    the settings are the visitor's own: the address names them
    mine       runs that this visitor started: nobody else's are stopped by leaving them
    turned     lanes whose running run was given another learning rate that it has not taken yet
    """

    lanes: tuple[RunConfig, ...]
    runs: tuple[int | None, ...]
    cursor: int = 0
    following: bool = False
    replay: tuple[float, int] | None = None
    given: deque[int] = field(default_factory=lambda: deque([0], maxlen=12))
    probe: str = "grad_block"
    complaint: str | None = None
    mine: frozenset[int] = frozenset()
    turned: frozenset[int] = frozenset()
    notices: tuple[str, ...] = ()
    link: Link | None = None
    touched: bool = False


def duel() -> Duel:
    """This session's duel; on the first look, what the address says, else the hero."""
    if "duel" not in st.session_state:
        st.session_state["duel"] = _opened()
    return st.session_state["duel"]


def _opened() -> Duel:
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    link = decode(params) if names_a_setting(params) else None
    if link is None or not link.lanes:
        lanes = PRESETS["hero"].lanes()
        return Duel(lanes, (None,) * len(lanes), replay=(time.monotonic(), 0), link=link)
    found = Duel(
        link.lanes, (None,) * len(link.lanes), notices=link.notices, following=True, touched=True
    )
    probe = params.get("probe", [""])[0]
    from normviz.catalog import PROBES

    return replace(found, probe=probe) if probe in PROBES else found


def reset(name: str = "hero") -> None:
    """Back to a preset, replaying."""
    lanes = PRESETS[name].lanes()
    st.session_state["duel"] = Duel(
        lanes, (None,) * len(lanes), replay=(time.monotonic(), 0), probe=duel().probe
    )
    st.query_params.clear()


def change(field: str, value: Any, lane: int | None = None) -> None:
    """Set a field in one lane or in all. A value that is not allowed changes nothing and is said."""
    it = duel()

    # A new peak rate replaces the changes that were made while an earlier run went on.
    # Fewer steps leave out the changes beyond them.
    def changed(config: RunConfig) -> RunConfig:
        values = {field: value}
        if field == "lr":
            values["lr_edits"] = ()
        if field == "steps" and str(value).isdecimal():
            values["lr_edits"] = tuple(e for e in config.lr_edits if e[0] < int(value))
        return config.replace(**values)

    try:
        it.lanes = tuple(
            changed(config) if lane in (None, i) else config for i, config in enumerate(it.lanes)
        )
        it.complaint, it.touched = None, True
    except ConfigError as error:
        it.complaint = str(error)


def set_lane_count(n: int) -> None:
    """Add copies of the last lane, or drop lanes from the end."""
    it = duel()
    n = max(1, min(n, MAX_LANES))
    it.lanes = (*it.lanes, *(it.lanes[-1:] * MAX_LANES))[:n]
    it.runs = (*it.runs, *(None,) * MAX_LANES)[:n]
    it.touched = True


def replay_cursor(it: Duel, last: int) -> int:
    """Where a replay stands now; ends it at the last step. Slow first: the early steps decide."""
    if it.replay is None:
        return it.cursor
    began, start = it.replay
    share = min(1.0, (time.monotonic() - began) / REPLAY_SECONDS)
    if share >= 1.0:
        it.replay = None
    return start + round((last - start) * share**2)
