"""Which runs of the shelf a visitor has chosen; they stay chosen on its other pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import streamlit as st


@dataclass
class Picks:
    """`runs` in the order chosen; `asking` whether they are about to be deleted; `said` what became
    of a deletion, until the page has shown it."""

    runs: tuple[int, ...] = ()
    asking: bool = False
    said: str = ""


def picks() -> Picks:
    """This session's."""
    return st.session_state.setdefault("picks", Picks())


def key(run: int) -> str:
    """The key of a run's checkbox, which shows whether the run is chosen."""
    name = f"pick_{run}"
    st.session_state[name] = run in picks().runs
    return name


def toggle(run: int) -> None:
    """What a click on a run's checkbox does."""
    it = picks()
    others = tuple(one for one in it.runs if one != run)
    it.runs = (*others, run) if st.session_state[f"pick_{run}"] else others
    it.asking = False


def only(runs: Iterable[int]) -> None:
    """These are chosen now."""
    it = picks()
    it.runs, it.asking = tuple(runs), False
