"""The widgets of the Maps page: the placements, the two settings of the axes, and all others."""

from __future__ import annotations

from typing import Any

import streamlit as st

from normviz.catalog import INITS, SCHEMES, TASKS
from normviz.catalog.registry import Registry
from normviz.config import CHOICES, SETTINGS, RunConfig
from normviz.limits import MAX_MAPS, MAX_SWEEP_SEEDS
from normviz.links import FIELDS, shown
from normviz.studies.maps.grid import Grid
from normviz.studies.maps.link import spanning, standard
from normviz.studies.maps.standard import MAPS

from ...session.markdown import capital, literal
from ...session.page_state import chosen
from ...widgets import link_notices
from . import state
from .state import Maps

SEEDS = (1, 3, 5)
PLAIN = ("warmup", "steps", "depth", "lr")
"""Settings with a text field of their own, unless they are an axis of the maps."""
OWN = "Settings of your own: cells that are stored are shown at once, and the others can be trained here."


def show(page_maps: Maps) -> None:
    """The standard maps, then the widgets of all settings, then notices and errors."""
    _standard(page_maps)
    asked = page_maps.asked
    # On a phone the settings are shown on request, between what they change and the button that fills it.
    st.toggle("Settings", key="map_settings")
    with st.container(key="map_knobs"):
        axes = [_room(field) for field in asked.fields]
        left = 10 - sum(axes)
        columns = st.columns([0.69 * left, 0.31 * left, *axes])
        with columns[0]:
            if "scheme" not in asked.fields:
                _many("scheme", "Placements (a map each)", SCHEMES)
        with columns[1]:
            if "init" not in asked.fields:
                _many("init", "Initialisation", INITS)
        for column, field in zip(columns[2:], asked.fields, strict=True):
            side = "across" if field == asked.across else "upwards"
            with column:
                _axis(field, f"{_title(field)}, {side}")
        plain = [name for name in PLAIN if name not in asked.fields]
        left /= len(plain) + 1.6  # so that the last two stand under those above
        widths = [*[left] * len(plain), 1.6 * left, *axes]
        columns = st.columns(widths, vertical_alignment="bottom")
        for column, field in zip(columns, plain, strict=False):
            with column:
                _text(field, _title(field))
        task, seeds, more = columns[-3:]
        with task:
            if "task" not in asked.fields:
                _one("task", "Task", TASKS)
        with seeds:
            _seeds(page_maps)
        with more:
            _more(page_maps)
    if words := _narrow(page_maps):
        st.caption(words)
    link_notices.notices(page_maps)
    if page_maps.complaint:
        st.error(literal(page_maps.complaint))


def _narrow(page_maps: Maps) -> str:
    """How to widen a map of one column or row; "" where it has several of both."""
    parts = [
        f"one {word} for one {SETTINGS[axis.field].title} ({literal(axis.shown(axis.values[0]))})"
        for word, axis in zip(("column", "row"), page_maps.asked.axes, strict=True)
        if len(axis.values) == 1
    ]
    more = "Give several values, separated by commas, or choose another axis under *More settings*."
    return f"The map has {' and '.join(parts)}. {more}" if parts else ""


def _standard(page_maps: Maps) -> None:
    st.session_state["map_standard"] = page_maps.asked.standard
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="map_which"):
        st.segmented_control(
            "Standard maps", MAPS.keys(), key="map_standard", format_func=MAPS.label,
            on_change=_open_standard, label_visibility="collapsed",
        )  # fmt: skip
        key = page_maps.asked.standard
        st.caption(MAPS[key].sentence if key else f"{OWN}{_shared(page_maps.asked.grid)}")


def _shared(grid: Grid) -> str:
    """The settings of all cells that are not the usual ones."""
    usual, spans = RunConfig(), {axis.field for axis in grid.axes}
    words = [
        f"{SETTINGS[name].title} {shown(name, value)}"
        for name in FIELDS
        if name not in spans and (value := getattr(grid.base, name)) != getattr(usual, name)
    ]
    return literal(f" All cells have {', '.join(words)}.") if words else ""


def _open_standard() -> None:
    if key := chosen("map_standard"):
        state.show(standard(key))


def _title(field: str) -> str:
    return capital(SETTINGS[field].title)


def _help(field: str) -> str:
    allowed = f"Allowed: {SETTINGS[field].allowed()}."
    return f"{allowed} Several values, separated by commas, make an axis, or one map each."


def _room(field: str) -> float:
    """The width of an axis' values, in tenths of the row: seven learning rates are the longest of numbers."""
    return 3 if field == "lr" or field in CHOICES else 1.75


def _axis(field: str, label: str) -> None:
    """The values of an axis: a list to choose from, or a text field for numbers."""
    if field in CHOICES:
        _many(field, label, CHOICES[field])
    else:
        _text(field, label)


def _text(field: str, label: str) -> None:
    """A text field for one value, or for several separated by commas."""
    key = f"map_{field}"
    page_maps: Maps = st.session_state["maps"]
    st.session_state[key] = page_maps.typed.get(field, page_maps.asked.values(field))
    st.text_input(label, key=key, help=_help(field), on_change=_take_text, args=(field, key))


def _take_text(field: str, key: str) -> None:
    """Set the field. Text that is not allowed stays in it."""
    typed = chosen(key)
    _take(field, key)
    page_maps: Maps = chosen("maps")
    page_maps.typed = {field: typed} if page_maps.complaint else {}


def _take(field: str, key: str) -> None:
    state.change(**{field: chosen(key)})


def _many(field: str, label: str, registry: Registry[Any]) -> None:
    key = f"map_{field}"
    values = st.session_state["maps"].asked.values(field).split(",")
    st.session_state[key] = values
    st.multiselect(
        label, dict.fromkeys((*registry.keys(), *values)), key=key, format_func=registry.label,
        max_selections=MAX_MAPS, on_change=_take_many, args=(field, key),
        accept_new_options=registry.made is not None,
    )  # fmt: skip


def _take_many(field: str, key: str) -> None:
    if values := chosen(key):
        state.change(**{field: ",".join(values)})


def _one(field: str, label: str, registry: Registry[Any]) -> None:
    key = f"map_{field}"
    value = st.session_state["maps"].asked.values(field)
    st.session_state[key] = value if value in registry else None  # None: several tasks, from a link
    known = [record.key for record in registry if record.key != "text" or value == "text"]
    st.selectbox(
        label, known, key=key, format_func=registry.label, placeholder=value,
        on_change=_take, args=(field, key),
    )  # fmt: skip


def _seeds(page_maps: Maps) -> None:
    seeds = page_maps.asked.grid.seeds
    st.session_state["map_seeds"] = seeds
    st.segmented_control(
        "Seeds", sorted({*SEEDS, seeds}), key="map_seeds", required=True, width="stretch",
        on_change=_take_seeds,
        help=f"Runs for each cell, which shows their median. A link may set up to {MAX_SWEEP_SEEDS}.",
    )  # fmt: skip


def _take_seeds() -> None:
    state.change(seeds=str(chosen("map_seeds")))


def _more(page_maps: Maps) -> None:
    """A popover to choose the axes and any other setting."""
    with st.popover("More settings", help="Other axes and any other setting", width="stretch"):
        for side, words, field in (
            ("across", "Setting across", page_maps.asked.across),
            ("up", "Setting upwards", page_maps.asked.up),
        ):
            key = f"map_side_{side}"
            st.session_state[key] = field
            st.selectbox(
                words, spanning(), key=key, format_func=_title, on_change=_take_side,
                args=(side, key),
            )  # fmt: skip
        taken = {"scheme", "init", "task", *PLAIN, *page_maps.asked.fields, "lr_edits", "text"}
        rest = [name for name in SETTINGS if name not in taken]
        field = st.selectbox("Another setting to change", rest, key="map_other", format_func=_title)
        assert field is not None
        about = SETTINGS[field].about
        _axis(field, f"{_title(field)} (a map each)" if field in CHOICES else _title(field))
        if about:
            st.caption(literal(f"{capital(about)}."))


def _take_side(side: str, key: str) -> None:
    state.set_axis(side, chosen(key))
