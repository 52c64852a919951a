"""The session state of the Maps page: which maps, and why a change was refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from normviz.studies.maps.link import CODEC, MapRequest, decode, standard
from normviz.studies.maps.results import GridResults
from normviz.studies.maps.standard import MAPS

from ...session import address
from ...session.markdown import sentence, titled
from ...session.page_state import PageState, chosen
from ...session.policy import link_notices

STAYS = "Below is still the map from before this change."


@dataclass
class Maps(PageState):
    """One visitor's maps.

    asked    which maps
    results  what the store has of them, read as far as it was looked at
    typed    the text of a field that was not allowed, which stays there to be corrected
    nonce    counts visits of the duel from a cell: the charts begin anew, with nothing picked
    """

    asked: MapRequest
    results: GridResults | None = None
    typed: dict[str, str] = field(default_factory=dict)
    nonce: int = 0


def maps() -> Maps:
    """The session's maps. On arrival with a link, the link's."""
    params = address.params()
    if "maps" not in st.session_state:
        st.session_state["maps"] = Maps(standard(MAPS.keys()[0]))
    page_maps: Maps = st.session_state["maps"]
    if st.session_state["arrived"] and CODEC.reads(params):
        try:
            show(decode(params))
            configs = [cell.config for cell in page_maps.asked.grid.cells]
            notices = link_notices(configs)
            page_maps.notices = (*CODEC.others(params), *notices)
        except ValueError as error:
            page_maps.complaint = (
                sentence(f"this link can't be opened as it is: {error}") + " Below is another map."
            )
    elif st.session_state["arrived"]:
        page_maps.notices = tuple(CODEC.others(params))
    return page_maps


def show(asked: MapRequest) -> None:
    """Show other maps."""
    page_maps: Maps = chosen("maps")
    page_maps.asked, page_maps.results, page_maps.typed = asked, None, {}
    page_maps.changed()


def change(**words: str) -> None:
    """Change settings. A value that is not allowed only sets `complaint`."""
    _attempt(lambda asked: asked.but(**words))


def set_axis(side: str, setting: str) -> None:
    """Change the setting of an axis: `side` is "across" or "up"."""
    _attempt(lambda asked: asked.with_axis(side, setting))


def _attempt(make: Callable[[MapRequest], MapRequest]) -> None:
    """Show the maps that `make` makes of the present ones; or why they are not allowed."""
    page_maps: Maps = chosen("maps")
    try:
        show(make(page_maps.asked))
    except ValueError as error:
        page_maps.complaint = f"{sentence(titled(str(error)))} {STAYS}"
