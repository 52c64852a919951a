"""Duels to open: the presets as cards with their loss curves, and suggestions of what to try next."""

from __future__ import annotations

from contextlib import suppress
from html import escape

import streamlit as st

from normviz.charts import thumb
from normviz.charts.svg import data_uri
from normviz.config import ConfigError, estimated_seconds
from normviz.lessons.presets import PRESETS, Lanes, Preset
from normviz.lessons.suggest import suggestions
from normviz.runs.lane import LETTERS, stored_lane
from normviz.runs.names import with_names
from normviz.studies.maps import SweepError
from normviz.studies.maps import link as map_link

from ...session import duel
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...widgets import page_links
from ...widgets.buttons import button

OPEN = "presets_open"
"""The key of the presets' popover."""


def presets(backend: SharedBackend) -> None:
    """A popover with all presets. They are rendered once it is open; a choice closes it."""
    popover = st.popover("Presets", key=OPEN, on_change="rerun", help="Finished duels to open")
    if popover.open:
        with popover, st.container(key="presets", width=640):
            for preset in PRESETS:
                with st.container(border=True, key=f"preset_{preset.key}"):
                    _card(preset, backend)


def _card(preset: Preset, backend: SharedBackend) -> None:
    lanes = preset.lanes()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if picture := _picture(lanes, backend):
            st.html(picture, width="content")
        with st.container(gap="xxsmall"):
            button(
                preset.question, _choose, duel.duel(), lanes, backend, key=f"open_{preset.key}",
                type="tertiary",
            )  # fmt: skip
            seconds = sum(estimated_seconds(lane) for lane in lanes)
            st.caption(
                f"{preset.sentence} {len(lanes)} lanes, about {seconds:.0f} s to train again."
            )


def _choose(page_duel: Duel, lanes: Lanes, backend: SharedBackend) -> None:
    duel.open_lanes(page_duel, lanes, backend)
    st.session_state[OPEN] = False


def _picture(lanes: Lanes, backend: SharedBackend) -> str | None:
    """The loss curves of the lanes' stored runs; None if one is missing."""
    latest = [backend.store.latest(config.key) for config in lanes]
    runs = [run for run in latest if run and run.is_done]
    if len(runs) < len(lanes):
        return None
    numbers = tuple(run.id for run in runs)
    return _drawn(numbers, backend)


@st.cache_data(show_spinner=False, max_entries=200)
def _drawn(numbers: tuple[int, ...], _shared: SharedBackend) -> str:
    runs = [run for number in numbers if (run := _shared.store.run(number))]
    lanes = with_names(
        [
            stored_lane(letter, run, _shared.frames)
            for letter, run in zip(LETTERS, runs, strict=False)
        ]
    )
    return f'<img src="{data_uri(thumb.svg(lanes))}" alt="{escape(thumb.finding(lanes))}">'


def tries(backend: SharedBackend) -> None:
    """Suggestions of what to try next, as buttons and a link to the maps."""
    page_duel = duel.duel()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="tries"):
        st.markdown("Try next:", width="content")
        for i, suggestion in enumerate(suggestions(page_duel.lanes)):
            button(
                suggestion.text, duel.open_lanes, page_duel, suggestion.lanes, backend, key=f"try_{i}",
                type="tertiary", icon=":material/arrow_forward:",
            )  # fmt: skip
        with suppress(ConfigError, SweepError):  # no map can have these settings
            params = map_link.map_of_duel(page_duel.lanes).params()
            page_links.to(
                "maps", "see at which depths and rates these train", params, ":material/grid_on:"
            )
