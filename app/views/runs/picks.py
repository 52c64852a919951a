"""The runs chosen on the Runs page, in the session state. They stay chosen on other pages of the list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import streamlit as st


@dataclass
class Picks:
    """The chosen runs, in the order chosen.

    asking  whether the page asks to confirm their deletion
    said    the result of a deletion, until the page has shown it
    """

    runs: tuple[int, ...] = ()
    asking: bool = False
    said: str = ""


def picks() -> Picks:
    """The session's picks."""
    return st.session_state.setdefault("picks", Picks())


def key(run: int) -> str:
    """The key of a run's checkbox, which shows whether the run is chosen."""
    name = f"pick_{run}"
    st.session_state[name] = run in picks().runs
    return name


def toggle(run: int) -> None:
    """The callback of a run's checkbox."""
    it = picks()
    others = tuple(one for one in it.runs if one != run)
    it.runs = (*others, run) if st.session_state[f"pick_{run}"] else others
    it.asking = False


def only(runs: Iterable[int]) -> None:
    """Replace the choice."""
    it = picks()
    it.runs, it.asking = tuple(runs), False
