"""The HTML that a browser gets first: title, preview tags, and a still of stored results alone."""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit
from browser_kit import wait_for
from charts_kit import broken, cells, few, make
from crossing_kit import case
from shelf_kit import SMALL, kept
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from normviz import RunConfig
from normviz.catalog import PROBES
from normviz.charts import heatmap, quantised_domain
from normviz.charts.palette import LOWEST
from normviz.export.preview import CARD, Preview, draw, outcome, still
from normviz.links import encode
from normviz.runs.frames import Frames
from normviz.runs.lane import stored_lane
from normviz.runs.shipped import adopt
from normviz.runs.store import Store

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
HERO = "v=1&scheme=pre,post"


class Drawn:
    """In place of the drawing of charts: what was drawn, and a still that names it."""

    def __init__(self) -> None:
        self.duels: list[tuple[str, ...]] = []
        self.may = threading.Event()
        self.may.set()

    def __call__(self, lanes: Any, probe: str) -> Preview:
        self.may.wait(20)
        names = tuple(f"{lane.config.scheme}{lane.config.depth}" for lane in lanes)
        self.duels.append(names)
        svg = {"loss": f"<svg>{probe} of {','.join(names)}</svg>"}
        return Preview(svg, svg, b"\x89PNG" + b"x" * 1000)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    from normviz.app.asgi import first_paint, previews

    it = Drawn()
    monkeypatch.setattr(first_paint, "PREVIEWS", previews.Previews(it))
    monkeypatch.setattr(first_paint, "PATIENCE", 60)
    return it


@pytest.fixture
def client(folder: Path, drawn: Drawn) -> Iterator[TestClient]:
    from normviz.app.asgi.first_paint import PICTURE, FirstPaint, picture

    def page(_: Any) -> Response:
        return FileResponse(INDEX, headers={"ETag": "one"})

    routes = [Route(f"/{PICTURE}", picture), Route("/other", page), Route("/{page:path}", page)]
    with TestClient(Starlette(routes=routes, middleware=[Middleware(FirstPaint)])) as it:
        yield it


def head(html: str) -> dict[str, str]:
    """Title and tags of a page."""
    tags = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', html)
    title = re.findall("<title>(.*?)</title>", html)
    assert len(title) == 1
    return {name: unescape(text) for name, text in (*tags, ("title", title[0]))}


def page(client: TestClient, query: str = "", path: str = "", n: int = 2) -> str:
    """The page after it was asked for `n` times, so that its still is drawn."""
    for _ in range(n):
        answer = client.get(f"/{path}?{query}")
        assert answer.status_code == 200
        client.get(f"/normviz/preview.png?{query}")  # waits for the drawing
    return answer.text


def test_html_of_another_shape_is_served_as_it_is() -> None:
    from normviz.app.asgi.first_paint import rewritten

    for html in (b"", b"<title>Streamlit</title>", b"<html><div id='app'></div>"):
        assert rewritten(html, "<title>x</title>", "still") == html


def test_a_page_opens_with_title_description_picture_and_still(client: TestClient) -> None:
    assert 'id="nv-still"' not in page(client, n=1)  # not drawn yet: the page does not wait
    for query in ("", HERO, f"{HERO}&utm_source=mail", "preset=hero"):
        html = page(client, query)
        said = head(html)
        assert said["title"] == "Pre-LN against Post-LN · NormViz"
        assert said["og:title"] == "Pre-LN against Post-LN"
        assert "B Post-LN: at chance so far, since step 6" in said["og:description"]
        assert said["og:image"] == f"http://testserver/normviz/preview.png?{HERO}"
        assert "grad_block of pre12,post12" in html
        assert html.index('id="nv-still"') < html.index('<div id="root"></div>')


def test_the_first_visitor_after_a_start_gets_the_still(folder: Path, drawn: Drawn) -> None:
    from normviz.app.asgi.first_paint import PREVIEWS, FirstPaint, drawn_first
    from normviz.app.asgi.previews import read

    routes = [Route("/{page:path}", lambda _: FileResponse(INDEX))]
    drawn.may.clear()
    app = Starlette(
        routes=routes, middleware=[Middleware(FirstPaint)], lifespan=lambda _: drawn_first()
    )
    with TestClient(app) as it:
        assert (
            it.get("/maps").status_code == 200
        )  # the server answers while the still is being drawn
        drawn.may.set()
        wait_for(lambda: PREVIEWS.kept(read({})) is not None)
        assert drawn.duels == [("pre12", "post12")]
        assert 'id="nv-still"' in it.get("/").text


def test_every_page_has_its_title(client: TestClient) -> None:
    from normviz.app.session.pages import PAGES

    titles = {head(page(client, path=path, n=1))["title"] for path in PAGES}
    assert len(titles) == len(PAGES) and "Maps · NormViz" in titles
    assert "nv-still" not in page(client, HERO, "maps")
    assert "<title>Streamlit</title>" in client.get("/other").text


WITHOUT = (
    ("v=1&scheme=pre,post&depth=13", "Pre-LN against Post-LN"),
    ("v=1&scheme=pre,post&depth=12,13", "Pre-LN against Post-LN"),
    ("v=1&scheme=post,peri&lr=0.5", "Post-LN against Peri-LN"),
    ("preset=warmup&depth=3", "Duel"),
    ("preset=nothing", "Duel"),
    ("v=9", "Duel"),
    ("lanes=99", "Duel"),
    ("depth=" + "9" * 9000, "NormViz"),
    ("story=3", "The tour: "),
)


def test_a_link_without_a_stored_result_has_no_still(client: TestClient, drawn: Drawn) -> None:
    """Nor has a step of the tour whose result a visitor is to guess."""
    for query, title in WITHOUT:
        with case(query[:60]):
            html = page(client, query)
            assert head(html)["title"].startswith(title) and "og:image" not in head(html)
            assert "nv-still" not in html and not drawn.duels
            assert client.get(f"/normviz/preview.png?{query}").status_code == 404


def test_a_still_is_of_the_lanes_of_the_link(client: TestClient) -> None:
    for query, words in (
        (HERO, "grad_block of pre12,post12"),
        ("v=1&scheme=post,pre", "grad_block of post12,pre12"),
        ("v=1&scheme=post", "grad_block of post12<"),
        (f"{HERO}&probe=stream_rms", "stream_rms of pre12,post12"),
        (f"{HERO}&probe=nothing", "grad_block of pre12,post12"),
    ):
        assert words in page(client, query)


def test_the_address_of_a_picture_is_that_of_the_visitor(client: TestClient) -> None:
    answer = client.get("/duel", headers={"host": 'x"><b>.org', "x-forwarded-proto": "https"})
    assert "><b>" not in answer.text
    answer = client.get("/duel", headers={"host": "a.org", "x-forwarded-proto": "https"})
    assert head(answer.text)["og:image"] == f"https://a.org/normviz/preview.png?{HERO}"


def test_a_part_of_a_page_or_an_old_copy_is_not_asked_for(client: TestClient) -> None:
    headers = {"range": "bytes=0-9", "if-none-match": "one", "accept-encoding": "gzip"}
    answer = client.get("/", headers=headers)
    assert answer.status_code == 200 and answer.headers["content-encoding"] == "gzip"
    assert "etag" not in answer.headers and "<title>Pre-LN" in answer.text
    assert "content-encoding" not in client.get("/", headers={"accept-encoding": ""}).headers


def test_a_client_cannot_make_the_server_draw_without_limit(
    client: TestClient, drawn: Drawn, folder: Path
) -> None:
    """Any number of addresses leads to a few drawings a minute, and what is drawn is served again."""
    from normviz.app.asgi.previews import A_MINUTE

    store = Store(folder)
    page(client, HERO)
    for depth in range(2, 32):
        kept(store, SMALL.replace(depth=depth))
    queries = [encode([SMALL.replace(depth=depth)]) for depth in range(2, 32)]
    answers = [client.get(f"/normviz/preview.png?{query}") for query in queries]
    assert [a.status_code for a in answers].count(200) == A_MINUTE - 1 == len(drawn.duels) - 1
    assert {a.status_code for a in answers} == {200, 503}
    assert answers[-1].headers["retry-after"] == "60"
    assert "nv-still" in page(client, HERO) and "nv-still" not in page(client, queries[-1])


def test_few_previews_wait_and_the_oldest_are_forgotten(
    client: TestClient, drawn: Drawn, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.asgi import previews

    store = Store(folder)
    queries = []
    for depth in range(2, 9):
        kept(store, SMALL.replace(depth=depth))
        queries.append(encode([SMALL.replace(depth=depth)]))
    drawn.may.clear()
    for query in queries:
        client.get(f"/?{query}")
    drawn.may.set()
    page(client, queries[0])
    assert len(drawn.duels) == previews.WAITING
    monkeypatch.setattr(previews, "MOST_BYTES", 1500)
    page(client, queries[-1])
    assert "nv-still" not in client.get(f"/?{queries[0]}").text


# What is drawn.


@pytest.mark.slow
def test_a_picture_is_drawn_from_the_charts_of_the_page(folder: Path) -> None:
    """Also the one that ships: where charts have changed, `normviz ship` draws it anew."""
    store = Store(folder)
    runs = [store.latest(config.key) for config in PRESETS["hero"].lanes()]
    lanes = [Lane(n, run.config, (store.recording(run),)) for n, run in zip("AB", runs, strict=True) if run]
    picture = draw(lanes)
    assert list(picture.light) == list(picture.dark) == ["loss", "bars", "heat0", "heat1"]
    assert struct.unpack(">2I", picture.card[16:24]) == CARD
    html = still(lanes, picture)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)
    for words in ("chance 3.32", "<b>B Post-LN</b> at chance so far", "data:image/png", "step 199"):
        assert words in html
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", html)
    assert outcome(lanes).startswith("A Pre-LN: learned: loss 1.")
    shipped = pictures.of(store, [run.id for run in runs if run])
    assert shipped and (shipped.light, shipped.dark) == (picture.light, picture.dark)


@pytest.mark.slow
def test_the_server_paints_a_heatmap_as_the_browser_does() -> None:
    """Up to one of 253 colours: the browser has its numbers with seven digits."""
    for lane in (make("pre"), make("post", ran=30), broken(), make("pre", steps=3000), few()):
        layers = lane.recording.layers("grad_block")
        domain = quantised_domain(PROBES["grad_block"], [layers])
        here, there = heatmap.codes(lane, "grad_block", domain), cells(lane, domain)
        assert (np.abs(here.astype(int) - there) <= 1).all()
        special = (here < LOWEST) | (there < LOWEST)
        assert (here[special] == there[special]).all()
