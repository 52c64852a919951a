"""Links and buttons that lead from one page to another. No page imports another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NoReturn

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from normviz.config import RunConfig
from normviz.lessons.anatomy.untrained import untrained
from normviz.links import as_params

from ..session import duel
from ..session.backend import SharedBackend
from ..session.markdown import literal

MODEL_TYPE = "model_type"
"""The parameter of a link to Your model that names a type of models."""


def register(pages: Mapping[str, StreamlitPage]) -> None:
    """Keep the pages of the navigation by their paths, for the rest of this script run."""
    st.session_state["pages"] = pages


def at(path: str) -> StreamlitPage:
    """The page at a path, as the navigation knows it. Raises KeyError for a path it has not."""
    return st.session_state["pages"][path]


def open_duel(
    lanes: tuple[RunConfig, ...],
    backend: SharedBackend,
    start: Literal["follow", "replay"] = "replay",
) -> NoReturn:
    """Leave the duel of this session and open the Duel page with these lanes."""
    duel.open_lanes(duel.duel(), lanes, backend, start)
    st.switch_page(at("duel"))


def to(path: str, words: str, params: Mapping[str, str], icon: str) -> None:
    """A link to a page with the parameters of a link."""
    st.page_link(at(path), label=literal(words), icon=icon, query_params=dict(params))


def models() -> None:
    """A link to the census of real models."""
    to("catalogue", "What real models use", {"table": "models"}, ":material/table:")


def anatomy(configs: Sequence[RunConfig], words: str) -> None:
    """A link to the anatomy of one or two configs."""
    params = as_params([untrained(config) for config in configs])
    to("catalogue", f"Anatomy of {words}", params, ":material/biotech:")
