"""Who a visitor is: one browser, as a short hash that says nothing else about it.

Streamlit gives each browser a random token against forged requests, in a cookie that stays while the
browser is open. Where a browser keeps no cookies, each page is a visitor of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import cycle

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from normviz import texts
from normviz.store import Run
from normviz.store.admission import OTHERS, may_steer

COOKIE = "_streamlit_xsrf"
DIGITS = 12


def me() -> str:
    """The visitor of this page."""
    return named(st.context.cookies.to_dict()) or _hash(session().encode())


def named(cookies: Mapping[str, str]) -> str | None:
    """The visitor whose browser sent these cookies; None where the one that says so is not there."""
    token = _token(cookies.get(COOKIE, ""))
    return _hash(token) if token else None


def _hash(name: bytes) -> str:
    return sha256(name).hexdigest()[:DIGITS]


def _token(cookie: str) -> bytes:
    """The token in a cookie "2|mask|masked token|time", which every answer masks anew; else empty."""
    try:
        version, mask, masked, _ = cookie.strip("\"'").split("|")
        pairs = zip(cycle(bytes.fromhex(mask)), bytes.fromhex(masked), strict=False)
        return bytes(a ^ b for a, b in pairs) if version == "2" else b""
    except ValueError:
        return b""


def session() -> str:
    """The id of Streamlit's session; a reload starts a new session."""
    context = get_script_run_ctx()
    return context.session_id if context else ""


def steers(run: Run) -> bool:
    """Whether this visitor may pause, step or stop a run, or change its learning rate."""
    return may_steer(run, me())


def lacks(what: str, named: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each named text that this visitor can't train on; `what` uses the texts."""
    found = (texts.lacking(what, text, me(), "paste it") for text in named)
    return tuple(dict.fromkeys(f"{why}." for why in found if why))


def why_not(runs: list[Run]) -> str | None:
    """Why this visitor may steer none of the runs; None if they may steer one, or without runs."""
    return OTHERS if runs and not any(map(steers, runs)) else None
