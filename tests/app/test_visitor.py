"""Who a visitor is: one name for every page of a browser, which this server alone can give."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from itsdangerous import Signer
from normviz.app.asgi.visitor_cookie import VisitorCookie
from normviz.app.session import network_address, visitor
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from normviz.home import KEY_BYTES, FolderError, secret
from normviz.runs.store.queue import OTHERS

HEALTH = "/_stcore/health"


def who(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(visitor.named(request.cookies)))


@pytest.fixture
def browser(folder: Path) -> Iterator[TestClient]:
    """It keeps its cookies, and is told which visitor it is."""
    routes = [Route(path, who, methods=["GET", "POST"]) for path in (HEALTH, "/page")]
    with TestClient(Starlette(routes=routes, middleware=[Middleware(VisitorCookie)])) as client:
        yield client


def be(monkeypatch: pytest.MonkeyPatch, cookies: dict[str, str], session: str = "1") -> None:
    """The page of a browser that sent these cookies."""
    kept = type("Cookies", (), {"to_dict": lambda self: cookies})()
    monkeypatch.setattr(visitor.st, "context", type("Context", (), {"cookies": kept}))
    monkeypatch.setattr(visitor, "session", lambda: session)


def test_a_browser_is_named_once_and_keeps_its_name(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = browser.get(HEALTH)
    (cookie,) = first.headers.get_list("set-cookie")
    assert first.text == "None" and cookie.endswith("; Path=/; HttpOnly; SameSite=Lax")
    name = browser.get("/page").text
    assert len(name) == 32 and int(name, 16)
    again = browser.get(HEALTH)
    assert again.text == name and "set-cookie" not in again.headers
    for session in "12":
        be(monkeypatch, dict(browser.cookies), session)
        assert visitor.me() == name
    browser.cookies.clear()
    browser.get(HEALTH)
    assert browser.get("/page").text not in (name, "None")


def test_no_other_answer_names_a_browser(browser: TestClient) -> None:
    """A cache may keep the answer and give it to others."""
    assert "set-cookie" not in browser.get("/page").headers
    assert "set-cookie" not in browser.post(HEALTH).headers


@pytest.mark.parametrize("headers", [{"x-forwarded-proto": "https, http"}, None])
def test_over_https_the_cookie_stays_there(
    browser: TestClient, headers: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if headers is None:  # the server ends TLS itself
        browser.base_url = browser.base_url.copy_with(scheme="https")
    assert browser.get(HEALTH, headers=headers).headers["set-cookie"].endswith("; Secure")
    browser.cookies.clear()
    browser.base_url = browser.base_url.copy_with(scheme="http")
    options = {"server.xsrfCookieSameSite": "none"}
    monkeypatch.setattr("streamlit.get_option", options.get)
    assert browser.get(HEALTH).headers["set-cookie"].endswith("; SameSite=None; Secure")


def test_a_name_that_this_server_did_not_sign_is_none(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.get(HEALTH)
    ((cookie, value),) = browser.cookies.items()
    name, _, signature = value.partition(".")
    other = Signer(b"another key", salt="visitor").sign(name).decode()
    for forged in ("f" * 32, f"{'f' * 32}.{signature}", f"{name}.", name, other, "", ".", "é.é"):
        assert visitor.named({cookie: forged}) is None
        be(monkeypatch, {cookie: forged})
        assert visitor.me() != name


@settings(max_examples=40)
@given(st.text() | st.text("0123456789abcdef.-_"))
def test_whatever_a_script_makes_up(value: str) -> None:
    cookie, _ = visitor._signer(visitor.home())
    assert visitor.named({cookie: value}) is None


def test_a_page_without_cookies_is_a_visitor_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def me(session: str) -> str:
        be(monkeypatch, {}, session)
        return visitor.me()

    assert me("1") == me("1") != me("2")
    assert len(me("1")) == visitor.DIGITS and int(me("1"), 16)
    assert visitor.why_not([]) is None and "only they" in OTHERS


def test_servers_of_one_data_folder_share_the_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(secret, [tmp_path] * 40))
    assert len(keys) == 1 and len(keys.pop()) == KEY_BYTES
    assert stat.S_IMODE((tmp_path / "visitors.key").stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert visitor._signer(tmp_path)[0] != visitor._signer(tmp_path / "other")[0]


def test_a_key_that_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "visitors.key").write_bytes(b"short")
    assert len(secret(tmp_path)) == KEY_BYTES


def test_a_folder_that_takes_no_key_gets_a_sentence(
    browser: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "visitors.key").mkdir()
    be(monkeypatch, {})
    with pytest.raises(
        FolderError, match=r"the secret key can't be kept in .* set NORMVIZ_HOME to a folder"
    ):
        visitor.me()
    assert browser.get(HEALTH).text == "None"  # the server answers all the same


def test_an_address_is_stored_as_a_keyed_hash_and_ipv6_by_its_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(host: str | None) -> str:
        context = type("Context", (), {"ip_address": host})
        monkeypatch.setattr(network_address.st, "context", context)
        return visitor.address()

    one = named("203.0.113.7")
    assert len(one) == 12 and set(one) <= set("0123456789abcdef")
    assert named("::ffff:203.0.113.7") == one != named("203.0.113.8")
    assert named("2001:db8::1") == named("2001:db8::ffff:2") != named("2001:db8:0:1::1")
    assert named(None) == ""
    (folder / "visitors.key").unlink()
    visitor._signer.cache_clear()
    assert named("203.0.113.7") != one  # without the key the address can't be guessed
