"""Who a visitor is: one browser, by a random name in a cookie that this server signs.

A script can't make up a name that counts, because the signature needs a key in the data folder. The
cookie stays while the browser is open. Where a browser keeps no cookies, each page is a visitor of its
own.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import streamlit as st
from itsdangerous import BadSignature, Signer
from streamlit.runtime.scriptrunner import get_script_run_ctx

from normviz.home import FolderError, home, secret
from normviz.runs import Run
from normviz.runs.store.queue import OTHERS

from . import network_address
from .policy import policy

DIGITS = 12
"""Of the name of a page without cookies."""


def me() -> str:
    """The visitor of this page. Raises FolderError where the data folder has no key and takes none."""
    return _verified(st.context.cookies.to_dict()) or _hash(session().encode())


def named(cookies: Mapping[str, str]) -> str | None:
    """The visitor whose browser sent these cookies; None where this server signed none of them."""
    with suppress(FolderError):  # the page says why
        return _verified(cookies)
    return None


def new_cookie() -> tuple[str, str]:
    """Cookie name and signed value for a browser that sent no signed one. Raises FolderError."""
    name, signer = _signer(home())
    return name, signer.sign(secrets.token_hex(16)).decode()


def _verified(cookies: Mapping[str, str]) -> str | None:
    name, signer = _signer(home())
    try:
        return signer.unsign(cookies.get(name, "")).decode()
    except BadSignature:
        return None


@lru_cache(maxsize=1)
def _signer(folder: Path) -> tuple[str, Signer]:
    """The cookie of the servers of a data folder, and what signs it. Its name is that of the key: a
    browser sends the cookies of all servers of a machine to each of them, whatever their ports."""
    key = secret(folder)
    return f"normviz_{_hash(key)[:8]}", Signer(key, salt="visitor", digest_method=sha256)


def forget_key() -> None:
    """Read the key again next time: it may have been deleted with the data folder."""
    _signer.cache_clear()


def _hash(name: bytes) -> str:
    return sha256(name).hexdigest()[:DIGITS]


def session() -> str:
    """The id of Streamlit's session; a reload starts a new session."""
    context = get_script_run_ctx()
    return context.session_id if context else ""


def address() -> str:
    """The network address of this page as a hash that a key of this server makes; empty where it is
    unknown. Raises FolderError."""
    network = network_address.of_page()
    if not network or not isinstance(network, str):  # a session without a connection
        return ""
    _, signer = _signer(home())
    keyed = Signer(signer.secret_key, salt="address", digest_method=sha256)
    return _hash(keyed.get_signature(network))


def steers(asked: Run) -> bool:
    """Whether this visitor may pause, step or stop a run, or change its learning rate."""
    return policy().may_steer(asked.visitor, me())


def why_not(runs: list[Run]) -> str | None:
    """Why this visitor may steer none of the runs; None if they may steer one, or without runs."""
    return OTHERS if runs and not any(map(steers, runs)) else None
