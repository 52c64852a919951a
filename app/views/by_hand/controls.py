"""The widgets of the By hand page: the table, the cell to explain, and the experiments."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz.lessons.by_hand import (
    EXPERIMENTS,
    FEATURES,
    PRESETS,
    RANGES,
    ROWS,
    Example,
    shown,
    written,
)

from ...session.markdown import literal
from ...session.page_state import chosen
from ...widgets.buttons import button, submit
from . import state
from .state import GREEK, Hand

EPS = (1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 0.1, 1.0)
PASSES = (0, 1, 2, 5, 10, 20, 50, 100)
MOMENTA = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0)
MODES = {"train": "Train", "eval": "Eval"}
LINE_HEIGHT = 35
"""Pixels of a line of Streamlit's editor: one that is told its height has it before its script is there."""
TAKES = {"neighbour": "Add", "shift": "Add", "scale": "Times"}


def table(hand: Hand) -> None:
    """The presets, the table editor, the size, and a text area to paste a table."""
    with st.container(key="hand_presets", horizontal=True, gap="xsmall"):
        for preset in PRESETS:
            button(
                preset.label, state.begin, preset.key, key=f"begin_{preset.key}", type="tertiary"
            )
    _editor(hand)
    if hand.complaint:
        st.error(literal(hand.complaint))
    with st.container(key="hand_size", horizontal=True):
        _whole("Rows", "hand_rows", hand.example.rows, ROWS)
        _whole("Features", "hand_features", hand.example.features, FEATURES)
        _ladder("ε", "eps", hand.example.eps, EPS, 230)
    with st.expander("Paste a table"), st.form("hand_paste", border=False):
        text = "\n".join(", ".join(map(written, row)) for row in hand.example.x)
        if hand.retyped or "hand_text" not in st.session_state:
            st.session_state["hand_text"], hand.retyped = text, False
        st.text_area("A row in each line", key="hand_text", height=120, max_chars=4000)
        submit("Use these numbers", _paste, key="hand_use")


def _paste() -> None:
    state.paste(chosen("hand_text"))


def _editor(hand: Hand) -> None:
    base = hand.base
    names = [str(i) for i in range(1, base.features + 1)]
    lines = [f"row {i}" for i in range(1, base.rows + 1)] + list(GREEK)
    cells = [list(map(written, line)) for line in (*base.x, base.gamma, base.beta)]
    column = {
        name: st.column_config.TextColumn(name, alignment="right", max_chars=24) for name in names
    }
    key = f"hand_table_{hand.editor}"
    st.data_editor(
        pd.DataFrame(cells, pd.Index(lines, name="x"), names), key=key, on_change=_typed, args=(key,),
        column_config=column, height=(len(lines) + 1) * LINE_HEIGHT + 2,
        alt="The table x, with gamma and beta of each feature below it",
    )  # fmt: skip
    st.caption(
        "Type into any cell. A row is a token or a sample, a column is a feature. Each feature has its "
        "own γ and β."
    )


def _typed(key: str) -> None:
    choice = chosen(key)
    state.typed(None if choice["added_rows"] or choice["deleted_rows"] else choice["edited_rows"])


def _whole(words: str, key: str, value: int, allowed) -> None:
    st.session_state[key] = value
    st.number_input(
        words, int(allowed.low), int(allowed.high), key=key, on_change=_resize, width=120,
    )  # fmt: skip


def _resize() -> None:
    state.attempt("sized", chosen("hand_rows"), chosen("hand_features"))


def cell_controls(hand: Hand) -> None:
    """The widgets that choose the cell to explain, and a slider for its number."""
    example = hand.example
    with st.container(key="hand_cell", horizontal=True):
        _segments("Explain row", "row", example.row, range(1, example.rows + 1))
        _segments("and feature", "feature", example.feature, range(1, example.features + 1))
    value = example.x[example.row - 1][example.feature - 1]
    span = max(hand.span, abs(value))
    st.session_state["hand_drag"] = float(value)
    st.slider(
        "Drag its number", -span, span, key="hand_drag", step=span / 100,
        on_change=lambda: state.drag(chosen("hand_drag")),
    )  # fmt: skip


def experiment_controls(hand: Hand) -> None:
    """The experiment on the batch, and BatchNorm's mode."""
    example = hand.example
    st.session_state["hand_try"] = example.experiment
    st.pills(
        "Try", EXPERIMENTS.keys(), key="hand_try", format_func=EXPERIMENTS.label, required=True,
        wrap=True,
        on_change=lambda: state.attempt("trying", chosen("hand_try")),
    )  # fmt: skip
    if example.experiment in TAKES:
        _amount(example)
    if example.experiment == "padding":
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _segments("Rows of padding", "padding", example.padding, range(1, 5))
            st.session_state["hand_masked"] = example.masked
            st.toggle("Mask them", key="hand_masked", on_change=_take, args=("masked",))
    _segments("BatchNorm", "mode", example.mode, MODES)
    if example.mode == "eval":
        passes, momentum = st.columns(2)
        with passes:
            _ladder("Training passes before", "passes", example.passes, PASSES)
        with momentum:
            _ladder("Momentum (PyTorch's)", "momentum", example.momentum, MOMENTA)


def _amount(example: Example) -> None:
    takes = EXPERIMENTS[example.experiment].takes
    assert takes
    words = TAKES[example.experiment]
    if example.experiment == "neighbour":
        words = f"Add to row {example.neighbour}, feature {example.feature}"
    st.session_state["hand_amount"] = float(example.amount)
    st.number_input(
        words, float(takes.low), float(takes.high), key="hand_amount",
        step=1.0, format="%g", on_change=_take, args=("amount",), width=260,
    )  # fmt: skip


def _segments(words: str, field: str, value: object, options) -> None:
    st.session_state[f"hand_{field}"] = value
    st.segmented_control(
        words, options, key=f"hand_{field}", required=True, on_change=_take, args=(field,),
        format_func=lambda option: MODES.get(option, str(option)),
    )  # fmt: skip


def _ladder(words: str, field: str, value: float, steps, width: int | None = None) -> None:
    """A slider over usual values, plus the present value if a link set another."""
    st.session_state[f"hand_{field}"] = value
    st.select_slider(
        words, sorted({*steps, value}), key=f"hand_{field}", format_func=shown,
        on_change=_take, args=(field,), help=f"Allowed in a link: {RANGES[field].text()}",
        width=width or "stretch",
    )  # fmt: skip


def _take(field: str) -> None:
    state.change(**{field: chosen(f"hand_{field}")})
