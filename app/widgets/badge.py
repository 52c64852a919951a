"""The verdict of a run as a coloured badge."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ..session.markdown import literal

Color = Literal["blue", "gray", "green", "orange", "red", "violet"]

COLORS: dict[str, Color] = {
    "learned": "green", "solved": "green", "learned little": "orange", "learned in part": "orange",
    "memorised": "orange", "training only": "orange", "at chance": "orange", "back at chance": "orange",
    "above": "orange", "still falling": "orange", "not settled": "orange",
    "diverged": "red", "failed": "red", "measured": "blue", "running": "blue",
}  # fmt: skip


def verdict(kind: str, words: str, width: int | Literal["content"] = "content") -> None:
    """The words in the colour of that kind of verdict."""
    st.badge(literal(words), color=COLORS.get(kind, "gray"), width=width)
