"""The session state of the Maps page: which maps, and why a change was refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from normviz.maps import Asked, decode, names_a_map, notices, standard
from normviz.standard import MAPS
from normviz.sweep.board import Board
from normviz.sweep.fill import MapJob

from ...session import visitor


@dataclass
class Maps:
    """The maps of one session.

    early      whether cells that stay flat at chance are stopped
    board      the maps' cells that the store has, as read last
    jobs       jobs to fill maps that this visitor started
    nonce      counts cells opened in the duel, so that the charts restart without a selection
    complaint  why the last change was refused
    notices    what the link says and the page does not use
    refused    why this server does not fill the maps
    """

    asked: Asked
    early: bool = True
    board: Board | None = None
    jobs: list[MapJob] = field(default_factory=list)
    nonce: int = 0
    complaint: str | None = None
    notices: tuple[str, ...] = ()
    refused: str | None = None


def maps() -> Maps:
    """The session's maps. On arrival with a link, the link's."""
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    if "maps" not in st.session_state:
        st.session_state["maps"] = Maps(standard(MAPS.keys()[0]))
    it: Maps = st.session_state["maps"]
    if st.session_state["arrived"] and names_a_map(params):
        try:
            show(decode(params))
            named = {cell.config.text for cell in it.asked.grid.cells} - {""}
            it.notices = (*notices(params), *visitor.lacks("This link", sorted(named)))
        except ValueError as error:
            it.complaint = f"This link can't be opened as it is: {error}. Below is another map."
    elif st.session_state["arrived"]:
        it.notices = notices(params)
    return it


def show(asked: Asked) -> None:
    """Show other maps."""
    it: Maps = st.session_state["maps"]
    it.asked, it.board = asked, None
    it.complaint, it.refused, it.notices = None, None, ()


def change(**words: str) -> None:
    """Change settings. A value that is not allowed only sets `complaint`."""
    it: Maps = st.session_state["maps"]
    try:
        show(it.asked.but(**words))
    except ValueError as error:
        it.complaint = sentence(str(error))


def turn(side: str, setting: str) -> None:
    """Change the setting of an axis: `side` is "across" or "up"."""
    it: Maps = st.session_state["maps"]
    try:
        show(it.asked.turned(side, setting))
    except ValueError as error:
        it.complaint = sentence(str(error))


def sentence(words: str) -> str:
    """Words as a sentence: an upper-case letter first, a full stop last."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
