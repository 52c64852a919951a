"""A hostile visitor in a real browser: nothing of what is put on screen runs, nothing leaves the host."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from browser_kit import PATIENCE_MS, other_hosts, wait_for
from hostile_kit import SCRIPTS
from playwright.sync_api import Browser, Locator, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from normviz import RunConfig
from normviz.links import encode
from normviz.runs.store import Store
from normviz.training.events import Step

pytestmark = pytest.mark.browser
STREAM = "_stcore/stream"
SCRIPT_LINKS = r"""[...document.querySelectorAll('a[href], iframe[src], img[src]')]
  .map((e) => e.getAttribute('href') ?? e.getAttribute('src'))
  .filter((u) => /^\s*javascript:/i.test(u))"""


class Visit:
    """A tab that notes every request, every dialog, and whether a script of a stranger ran."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.page: Page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.asked: set[str] = set()
        self.dialogs: list[str] = []
        self.page.on("request", lambda request: self.asked.add(request.url))
        self.page.on("websocket", lambda line: self.asked.add(line.url))
        self.page.on(
            "dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss())
        )

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.address}/{path}")
        self.page.wait_for_selector(".stMain h1")
        self.page.wait_for_function(
            "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
        )
        return self.page

    def assert_unharmed(self) -> None:
        assert self.page.evaluate("window.pwned") is None
        assert not self.dialogs
        assert not other_hosts(self.asked, self.address)
        assert self.page.locator(".stException").count() == 0
        assert self.page.evaluate(SCRIPT_LINKS) == []
        self.page.context.close()


def test_a_visit_asks_no_other_host_and_sends_no_statistics(browser: Browser, address: str) -> None:
    """What the server tells a browser, not what a file says. `test_browser_access.py` visits each page."""
    visit, told = Visit(browser, address), []

    def listen(frame: str | bytes) -> None:
        told.append(frame if isinstance(frame, bytes) else frame.encode())

    visit.page.on("websocket", lambda line: line.on("framereceived", listen))
    page = visit.open("")
    page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 3")
    page.get_by_role("link", name="Anatomy", exact=True).first.click()
    page.wait_for_selector("text=Anatomy of a placement")
    assert len(visit.asked) > 20 and told
    assert any("normviz/numbers" in url for url in visit.asked)
    answer = urllib.request.urlopen(f"{address}/_stcore/host-config", timeout=20).read()
    assert json.loads(answer)
    assert not [url for url in visit.asked if "segment" in url or "webhooks.fivetran" in url]
    config = (Path(__file__).parents[2] / "app/.streamlit/config.toml").read_text()
    assert "gatherUsageStats = false" in config
    visit.assert_unharmed()


@pytest.mark.parametrize("view", ["", "maps", "claims", "anatomy", "by-hand"])
def test_nothing_that_a_link_says_is_run(browser: Browser, address: str, view: str) -> None:
    """As the name of a setting, as its value, and as the words that pages have of their own; all in
    few links, for each takes a browser a while."""
    visit = Visit(browser, address)
    words = [quote(script, safe="") for script in SCRIPTS[:9]]
    names = "&".join(f"{word}=1" for word in words[:5])
    own = "&".join(
        f"{n}={w}" for n, w in zip(("view", "probe", "seeds", "story"), words, strict=False)
    )
    fields = ("scheme", "lr", "depth", "norm", "init", "task", "width", "x", "gamma")
    values = "&".join(f"{name}={word}" for name, word in zip(fields, words, strict=True))
    claimed = [f"claim={word}" for word in words[:3]]
    links = [f"v=1&{names}&{own}", f"v=1&{values}", f"v={words[0]}"]
    for link in claimed if view == "claims" else links:
        page = visit.open(f"{view}?{link}")
        page.wait_for_selector("[data-testid=stAlert]")
    visit.assert_unharmed()


def test_an_address_in_a_link_becomes_no_link_of_the_page(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    names = (
        "http://evil.example/login",
        "https://evil.example",
        "www.evil.example",
        "a@evil.example",
    )
    page = visit.open("?v=1&" + "&".join(f"{quote(name, safe='')}=1" for name in names))
    page.wait_for_selector("text=/not settings here/")
    shown = page.locator("[data-testid=stAlert]", has_text="not settings here").first
    assert "evil.example/login" in shown.inner_text()
    assert shown.locator("a").count() == 0
    visit.assert_unharmed()


def test_an_embedded_link_that_is_wrong_shows_no_other_duel(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    page = visit.page
    page.goto(f"{address}/?embed=true&v=1&depth=99999")
    page.wait_for_selector("text=/depth is .99999/")
    page.wait_for_selector("text=No charts are shown")
    assert page.get_by_role("link", name="Open in NormViz").count() == 0
    visit.assert_unharmed()


def test_nothing_that_is_typed_is_run(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    page = visit.open("runs")
    for script in SCRIPTS[:2]:
        box = page.locator(".st-key-runs_search input")
        box.fill(script)
        box.press("Enter")
        page.wait_for_selector("text=No placement, norm, task")
    page = visit.open("by-hand")
    page.get_by_text("Paste a table").click()
    page.locator(".st-key-hand_text textarea").fill("\n".join(SCRIPTS))
    wait_for(lambda: _pressed(page.locator(".st-key-hand_use button"), "[data-testid=stAlert]"))
    page = visit.open("catalogue")
    page.locator(".st-key-search input").fill(SCRIPTS[0])
    page.locator(".st-key-search input").press("Enter")
    page.wait_for_selector("text=/^0 of/")
    visit.assert_unharmed()


def _pressed(button: Locator, shown: str) -> bool:
    """Press a button, and whether that shows something. A browser may lose a press in the instant in which
    a page moves; its visitor presses again."""
    button.click()
    with suppress(PlaywrightTimeout):
        button.page.wait_for_selector(shown, timeout=PATIENCE_MS / 8)
        return True
    return False


def test_nothing_that_the_store_holds_is_run(browser: Browser, address: str, data: Path) -> None:
    """Words that stand in a run's row, as another program on the machine may write them."""
    store, visit = Store(data), Visit(browser, address)
    config = RunConfig(depth=5, steps=3)
    run = store.enqueue(config)
    store.append(run, [Step(i, 2.0, 0.1, 1.0, None) for i in range(3)])
    for script in SCRIPTS[:9:4]:
        store.db.connection.execute(
            "UPDATE runs SET status = 'failed', message = ?, device = ?, ended = 1 WHERE id = ?",
            (script, script, run),
        )
        page = visit.open(f"?{encode([config])}")
        page.wait_for_selector("text=failed after 3 steps")
        page = visit.open("runs")
        page.wait_for_selector(f".st-key-run_row_{run}")
    visit.assert_unharmed()


def upgraded(address: str, path: str, origin: str | None) -> int:
    """The status with which a WebSocket is answered."""
    host = urlsplit(address).netloc
    name, _, port = host.partition(":")
    lines = [f"GET /{path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
             "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
             "Sec-WebSocket-Protocol: streamlit"]  # fmt: skip
    lines += [f"Origin: {origin}"] if origin else []
    with socket.create_connection((name, int(port)), timeout=20) as line:
        line.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(line.recv(100).split()[1])


@pytest.mark.parametrize("path", [STREAM, "normviz/numbers"])
def test_a_page_of_another_site_gets_no_line(address: str, path: str) -> None:
    assert upgraded(address, path, address) == 101
    assert upgraded(address, path, "https://evil.example") == 403
    assert upgraded(address, path, "null") == 403


def test_an_upload_without_the_token_is_refused(address: str) -> None:
    request = urllib.request.Request(
        f"{address}/_stcore/upload_file/session/file", b"x", {"Content-Type": "text/plain"}, method="PUT"
    )  # fmt: skip
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    assert refused.value.code in (400, 403)
    assert b"XSRF" in refused.value.read() or refused.value.code == 403


@pytest.mark.parametrize("path", ["_stcore/health", "healthz"])
def test_no_other_site_may_read_an_answer(address: str, path: str) -> None:
    request = urllib.request.Request(
        f"{address}/{path}", headers={"Origin": "https://evil.example"}
    )
    try:
        answer: http.client.HTTPMessage = urllib.request.urlopen(request, timeout=20).headers
    except urllib.error.HTTPError as error:
        answer = error.headers
    assert answer.get("Access-Control-Allow-Origin") in (None, address)


@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "normviz/..%2fnormviz.js", "app/main.py",
             ".streamlit/config.toml", "media/../../etc/passwd", "component/x/../../../etc/passwd"]
)  # fmt: skip
def test_no_path_leads_to_a_file(address: str, path: str) -> None:
    line = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    line.putrequest("GET", f"/{path}")
    line.endheaders()
    body = line.getresponse().read()
    line.close()
    assert b"root:" not in body and b"gatherUsageStats" not in body and b"st.navigation" not in body
