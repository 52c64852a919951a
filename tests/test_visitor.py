"""A visitor's name: the same for every page of one browser, and nothing of the token in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normviz.app.session import visitor
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from normviz.store.admission import OTHERS


@given(st.binary(min_size=1, max_size=40))
def test_the_token_is_found_however_it_is_masked(token: bytes) -> None:
    cookies = {generate_xsrf_token_string(token) for _ in range(3)}
    assert {visitor._token(cookie) for cookie in cookies} == {token}


@given(st.text() | st.text("2|0123456789abcdef\"'", max_size=60))
def test_whatever_stands_in_the_cookie(cookie: str) -> None:
    assert isinstance(visitor._token(cookie), bytes)


def test_a_name_is_short_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cookies:
        def __init__(self, token: bytes) -> None:
            self.cookies = {visitor.COOKIE: generate_xsrf_token_string(token)} if token else {}

        def to_dict(self) -> dict[str, str]:
            return self.cookies

    def me(token: bytes, session: str) -> str:
        context = type("Context", (), {"cookies": Cookies(token)})
        monkeypatch.setattr(visitor.st, "context", context)
        monkeypatch.setattr(visitor, "session", lambda: session)
        return visitor.me()

    one = me(b"sixteen bytes...", "1")
    assert one == me(b"sixteen bytes...", "2") != me(b"sixteen bytes..!", "1")
    assert len(one) == visitor.DIGITS and int(one, 16)
    assert me(b"", "1") == me(b"", "1") != me(b"", "2")  # without cookies
    assert visitor.why_not([]) is None and "only they" in OTHERS
