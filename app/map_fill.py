"""The maps themselves, what fills them, and what they say: drawn again and again while they fill."""

from __future__ import annotations

import entries
import pandas as pd
import streamlit as st
import transport
from backend import Shared, adopt_maps, shared
from clicks import button
from map_state import Maps
from state import show_lanes
from streamlit.runtime.scriptrunner import get_script_run_ctx
from words import literal

from normviz.charts.base import Spec
from normviz.charts.map import PICK, Map, colours, finding, live
from normviz.limits import estimated_seconds
from normviz.sweep import cores
from normviz.sweep.board import Board
from normviz.sweep.fill import Job
from normviz.sweep.maps import maps
from normviz.sweep.summary import sensitivity
from normviz.sweep.words import comparisons, said, sensitivity_words

TICK_SECONDS = 0.5
PER_ROW = 3
MARKS = (
    "Colour: the mean loss of the last tenth of the steps, at most chance. × diverged · ○ stopped "
    "early, flat at chance · ▼ the loss was still falling: undertrained, not unstable. The line is "
    "the largest learning rate that trains, half of the way from chance to the lowest possible loss. "
    "Point at a cell for its loss curves; a click opens its run in the duel."
)


def show(it: Maps, back: Shared) -> None:
    """The way to fill, then the maps in a fragment that ticks while they fill."""
    adopt_maps()
    board = looked(it, back)
    job = back.filler.job(it.asked.grid, it.early)
    _actions(it, board, job, back)
    with st.container(key="maps"):
        st.fragment(_tick, run_every=TICK_SECONDS if job else None)(it)


def looked(it: Maps, back: Shared) -> Board:
    """What the store has of the maps by now."""
    if it.board is None:
        it.board = Board(back.store, it.asked.grid, it.early)
    it.board.look()
    return it.board


def _actions(it: Maps, board: Board, job: Job | None, back: Shared) -> None:
    missing = board.missing
    if job is None and not missing:
        return
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="fill_row"
    ):  # fmt: skip
        if job is None:
            button("Fill the map" + ("s" if _count(it) > 1 else ""), _fill, it, back, type="primary",
                   key="fill", icon=":material/play_arrow:")  # fmt: skip
            seconds = sum(estimated_seconds(cell.config) for cell in missing) / cores()
            stored = len(it.asked.grid.cells) - len(missing)
            st.caption(
                f"{len(missing)} runs, about {duration(seconds)} in {cores()} processes"
                + (f"; {stored} are stored already." if stored else ".")
            )
        elif job in it.jobs:
            button("Stop", back.filler.stop, job, key="stop_fill", icon=":material/stop:",
                   help="What has ended stays; filling goes on from there")  # fmt: skip


def _count(it: Maps) -> int:
    return len({cell.at for cell in it.asked.grid.cells}) // max(
        1, len(_axis(it, it.asked.across)) * len(_axis(it, it.asked.up))
    )


def _axis(it: Maps, field: str) -> tuple:
    axis = it.asked.grid.axis(field)
    return axis.values if axis else ()


def _fill(it: Maps, back: Shared) -> None:
    it.jobs.append(back.filler.ask(it.asked.grid, it.early))


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _tick(it: Maps) -> None:
    back = shared()
    board, job = looked(it, back), back.filler.job(it.asked.grid, it.early)
    if job:
        _progress(job, back)
    for asked in it.jobs:
        for why in dict.fromkeys(asked.failures):
            if asked.grid == it.asked.grid:
                st.error(f"A cell could not be trained: {why}. Fill again to try it once more.")
    drawn = maps(
        it.asked.grid, board.points, it.asked.fields, job.running if job else (), board.curve
    )
    picked = _charts(it, drawn, is_filling=job is not None)
    st.caption(MARKS)
    _summary(it, board)
    _reach(it, drawn)
    if picked:
        _open(it, picked, back)
    context = get_script_run_ctx()
    if not job and context and context.fragment_ids_this_run and st.session_state.get("filling"):
        st.session_state["filling"] = False
        st.rerun()  # the timer ends with a run of the whole page
    st.session_state["filling"] = bool(job)


def _progress(job: Job, back: Shared) -> None:
    if n := back.filler.before(job):
        st.caption(
            f"Waits for {n} other map{'s' * (n > 1)} that {'are' if n > 1 else 'is'} filled."
        )
        return
    words = f"{job.ended} of {job.todo} runs" if job.began else "Loading PyTorch"
    if (left := job.seconds_left) is not None:
        words += f", about {duration(left)} left"
    st.progress(min(1.0, job.share), words)


def _charts(it: Maps, drawn: list[Map], is_filling: bool) -> str | None:
    """The maps in rows; the key of the cell that was clicked.

    What a map shows is said in words at the end: other words would build the chart anew.
    """
    picked = None
    domain, dark = colours(drawn), st.context.theme.type == "dark"
    per_row = 2 if len(drawn) in (1, 2, 4) else PER_ROW
    for at in range(0, len(drawn), per_row):
        for i, (column, one) in enumerate(
            zip(st.columns(per_row), drawn[at : at + per_row], strict=False), start=at
        ):
            with column:
                event = st.vega_lite_chart(
                    _patient(live(one, i, domain, dark)), key=f"map_{it.nonce}_{i}", on_select="rerun",
                    selection_mode=[PICK], width="stretch", alt=one.title if is_filling else finding(one),
                )  # fmt: skip
            for row in event["selection"].get(PICK) or ():  # pyright: ignore
                picked = row["key"]
    return picked


def _patient(spec: Spec) -> Spec:
    """The chart with its rows as Arrow tables: Streamlit then swaps them in place, and does not build
    the chart anew, while the rest stays the same."""
    columns = {"frontier": ["x", "y", "at"]}
    tables = {
        name: pd.DataFrame(rows, columns=columns.get(name.rstrip("0123456789")))
        for name, rows in spec["datasets"].items()
    }
    return {**spec, "datasets": tables}


def _open(it: Maps, key: str, back: Shared) -> None:
    """The run of a cell in the duel, or its settings there where nobody has run it."""
    cell = next((cell for cell in it.asked.grid.cells if cell.key == key), None)
    it.nonce += 1
    if cell is None:
        return  # the settings changed meanwhile
    transport.leave_duel(back)
    show_lanes((cell.config,), "replay")
    st.switch_page(entries.duel())


def _summary(it: Maps, board: Board) -> None:
    """What the maps say, in sentences: sensitivity beside the best loss, and who differs."""
    grid, points = it.asked.grid, board.points
    rows = sensitivity(grid, points)
    lines = list(comparisons(grid, points))
    if not rows and not lines:
        return
    with st.expander("Learning-rate sensitivity, best losses and who differs"):
        if rows:
            st.dataframe(
                [
                    {
                        "where": said(grid, row.place) or "all",
                        "sensitivity": row.value.text(),
                        "best loss": row.best.text(),
                        "at learning rate": f"{row.best_rate:g}",
                        "above the floor": "" if row.excess is None else row.excess.text(),
                        "mind": " ".join(w.strip() + "." for w in list(sensitivity_words(grid, row))[1:]),
                    }
                    for row in rows
                ],
                hide_index=True, row_height=36,
            )  # fmt: skip
            st.caption(SENSITIVITY)
        for line in lines:
            st.markdown(f"* {literal(line)}")


SENSITIVITY = (
    "Sensitivity is the mean over the learning rates of min(loss, loss at initialisation) minus the "
    "best loss (Wortsman et al. 2023, [arXiv\\:2309.14322](https://arxiv.org/abs/2309.14322), section "
    "2.2), in nats: median over seeds, with their range. Two traps: where no rate trains it is near "
    "zero and says nothing, and a low rate that only lacked steps counts as if it were unstable."
)


def _reach(it: Maps, drawn: list[Map]) -> None:
    """The way to a cell without pointing at it."""
    first = drawn[0]
    with st.expander("Open a cell by its settings"), st.form("reach", border=False):
        left, middle, right, last = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
        which = left.selectbox("Map", range(len(drawn)), format_func=lambda i: drawn[i].title)
        column = middle.selectbox(
            first.x, range(len(first.columns)), format_func=lambda i: first.columns[i]
        )
        row = right.selectbox(first.y, range(len(first.rows)), format_func=lambda i: first.rows[i])
        if last.form_submit_button("Open in the duel", width="stretch"):
            found = (c for c in drawn[which].cells if (c.column, c.row) == (column, row))
            _open(it, next(found).key, shared())
