"""What every page with settings remembers beside them; each page adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from normviz.links import Link


@dataclass(kw_only=True)
class PageState:
    """One visitor's page.

    link       the link that opened the page, until a setting is changed
    notices    what that link says that is not used
    complaint  why the last change was not taken
    refused    why this server does not train what was asked for
    """

    link: Link | None = None
    notices: tuple[str, ...] = ()
    complaint: str | None = None
    refused: str | None = None

    def changed(self) -> None:
        """A setting was changed: what was said of the link and of the change before is over."""
        self.link, self.notices, self.complaint, self.refused = None, (), None, None


def chosen(key: str) -> Any:
    """What the session's state holds, for a callback: the value of a widget, or a page's state.

    Streamlit ends a callback at a look at `st.session_state` once another message waits, and the rest of
    what it does would be lost; a copy of that state has no such point.
    """
    return st.session_state.to_dict().get(key)
