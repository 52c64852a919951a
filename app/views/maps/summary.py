"""The maps' findings: sensitivity to the learning rate, best losses, and differences in words."""

from __future__ import annotations

import streamlit as st

from normviz.sweep.board import Board
from normviz.sweep.summary import Sensitivity, sensitivity
from normviz.sweep.words import comparisons, said

from ...widgets.markdown import literal
from .state import Maps

SENSITIVITY = (
    "Sensitivity is the mean over the learning rates of min(loss, loss at initialisation) minus the "
    "best loss (Wortsman et al. 2023, [arXiv\\:2309.14322](https://arxiv.org/abs/2309.14322), section "
    "2.2), in nats: median over seeds, with their range. Two traps: where no rate trains it is near "
    "zero and says nothing, and a low rate that only lacked steps counts as if it were unstable."
)

DIFFERENCES = (
    "Each at its own best learning rate of those tried. Two count as different only if the difference has "
    "the same sign in every pair of seeds and its 95 % interval excludes zero. With many comparisons some "
    "will do so by chance."
)


def show(it: Maps, board: Board) -> None:
    """A table of sensitivities and best losses, and sentences on the differences."""
    grid, points = it.asked.grid, board.points
    rows = sensitivity(grid, points)
    lines = list(comparisons(grid, points))
    if not rows and not lines:
        return
    with st.expander("Learning-rate sensitivity, best losses and differences"):
        if rows:
            st.dataframe(
                [
                    {
                        "where": said(grid, row.place) or "all",
                        "sensitivity": row.value.text(),
                        "best loss": row.best.text(),
                        "at learning rate": f"{row.best_rate:g}",
                        "above the floor": "" if row.excess is None else row.excess.text(),
                        "note": _mind(row),
                    }
                    for row in rows
                ],
                hide_index=True, row_height=36,
            )  # fmt: skip
            st.caption(SENSITIVITY)
        if lines:
            st.markdown("\n".join(f"* {literal(line)}" for line in lines))
            st.caption(DIFFERENCES)


def _mind(row: Sensitivity) -> str:
    """A warning against misreading the row's sensitivity; empty without one."""
    said = ["trains at no rate"] if row.fails else []
    if row.undertrained:
        said.append("undertrained at " + ", ".join(f"{rate:g}" for rate in row.undertrained))
    return "; ".join(said + ([f"{row.stood_in} cells stopped early"] if row.stood_in else []))
