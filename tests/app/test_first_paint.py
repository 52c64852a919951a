"""The HTML that a browser gets first: title, preview tags, and a still of stored results alone."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit
from charts_kit import broken, cells, few, make
from crossing_kit import case
from shelf_kit import kept
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from normviz import RunConfig
from normviz.catalog import PROBES
from normviz.charts import heatmap, quantised_domain
from normviz.charts.palette import LOWEST
from normviz.execution.process import start
from normviz.export.preview import CARD, outcome, still
from normviz.lessons.presets import PRESETS
from normviz.runs.lane import Lane
from normviz.runs.store import Store, pictures
from normviz.runs.store.pictures import Picture

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
HERO, HERO_LANES = "v=1&scheme=pre,post", PRESETS["hero"].lanes()


def put(store: Store, *configs: RunConfig) -> list[int]:
    """A picture that names the stored runs of these settings; returns their numbers."""
    runs = [run for config in configs if (run := store.latest(config.key))]
    numbers, names = [run.id for run in runs], [run.trained.scheme for run in runs]
    svg = {name: f"<svg>{name} of {','.join(names)}</svg>" for name in ("loss", "bars")}
    pictures.ask(store, numbers, None)
    pictures.keep(store, numbers, Picture(svg, svg, b"\x89PNG"))
    return numbers


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    from normviz.app.asgi import first_paint

    def page(_: Any) -> Response:
        return FileResponse(INDEX, headers={"ETag": "one"})

    monkeypatch.setattr(first_paint, "PATIENCE", 60)
    put(Store(folder), *HERO_LANES)
    routes = [
        Route(f"/{first_paint.PICTURE}", first_paint.picture),
        Route("/other", page),
        Route("/{page:path}", page),
    ]
    middleware = [Middleware(first_paint.FirstPaint)]
    with TestClient(Starlette(routes=routes, middleware=middleware)) as it:
        yield it


def head(html: str) -> dict[str, str]:
    """Title and tags of a page."""
    tags = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', html)
    title = re.findall("<title>(.*?)</title>", html)
    assert len(title) == 1
    return {name: unescape(text) for name, text in (*tags, ("title", title[0]))}


def page(client: TestClient, query: str = "", path: str = "") -> str:
    answer = client.get(f"/{path}?{query}")
    assert answer.status_code == 200
    return answer.text


def test_html_of_another_shape_is_served_as_it_is() -> None:
    from normviz.app.asgi.first_paint import rewritten

    for html in (b"", b"<title>Streamlit</title>", b"<html><div id='app'></div>"):
        assert rewritten(html, "<title>x</title>", "still") == html


def test_a_page_opens_with_title_description_picture_and_still(client: TestClient) -> None:
    for query in ("", HERO, f"{HERO}&utm_source=mail", "preset=hero"):
        html = page(client, query)
        said = head(html)
        assert said["title"] == "Pre-LN against Post-LN · NormViz"
        assert said["og:title"] == "Pre-LN against Post-LN"
        assert "B Post-LN: at chance since step 6" in said["og:description"]
        assert said["og:image"] == f"http://testserver/normviz/preview.png?{HERO}"
        assert "loss of pre,post" in html and "bars of pre,post" in html
        assert html.index('id="nv-still"') < html.index('<div id="root"></div>')


def test_a_request_has_no_picture_drawn(client: TestClient, folder: Path) -> None:
    """A duel whose picture is not stored has a title and words."""
    for _ in range(3):
        html = page(client, "v=1&scheme=post,pre")
        assert head(html)["og:description"].startswith("A Post-LN: at chance")
        assert "og:image" not in head(html) and "nv-still" not in html
        assert client.get("/normviz/preview.png?v=1&scheme=post,pre").status_code == 404
    assert pictures.waiting(Store(folder)) is None


def test_every_page_has_its_title(client: TestClient) -> None:
    from normviz.app.session.pages import PAGES

    titles = {head(page(client, path=path))["title"] for path in PAGES}
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


def test_a_link_without_a_stored_result_has_no_still(client: TestClient) -> None:
    """Nor has a step of the tour whose result a visitor is to guess."""
    for query, title in WITHOUT:
        with case(query[:60]):
            html = page(client, query)
            assert head(html)["title"].startswith(title) and "og:image" not in head(html)
            assert "nv-still" not in html
            assert client.get(f"/normviz/preview.png?{query}").status_code == 404


def test_a_still_is_of_the_lanes_of_the_link(client: TestClient, folder: Path) -> None:
    pre, post = HERO_LANES
    put(Store(folder), post, pre)
    put(Store(folder), post)
    for query, lanes, probe in (
        (HERO, "pre,post", ""), ("v=1&scheme=post,pre", "post,pre", ""), ("v=1&scheme=post", "post<", ""),
        (f"{HERO}&probe=nothing", "pre,post", ""), (f"{HERO}&probe=stream_rms", "pre,post", "stream_rms"),
    ):  # fmt: skip
        html = page(client, query)
        assert f"loss of {lanes}" in html
        assert (f"bars of {lanes}" in html) == (not probe)  # they are of another quantity


def test_a_still_is_of_the_runs_that_the_page_shows(client: TestClient, folder: Path) -> None:
    kept(Store(folder), HERO_LANES[1])  # trained again
    assert "nv-still" not in page(client, HERO)


def test_the_address_of_a_picture_is_that_of_the_visitor(client: TestClient) -> None:
    answer = client.get("/duel", headers={"host": 'x"><b>.org', "x-forwarded-proto": "https"})
    assert 'x">' not in answer.text
    answer = client.get("/duel", headers={"host": "a.org", "x-forwarded-proto": "https"})
    assert head(answer.text)["og:image"] == f"https://a.org/normviz/preview.png?{HERO}"


def test_a_question_for_the_head_alone_is_no_page_of_another_shape(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert int(client.head("/").headers["content-length"]) > 0
    assert not caplog.records


def test_a_part_of_a_page_or_an_old_copy_is_not_asked_for(client: TestClient) -> None:
    headers = {"range": "bytes=0-9", "if-none-match": "one", "accept-encoding": "gzip"}
    answer = client.get("/", headers=headers)
    assert answer.status_code == 200 and answer.headers["content-encoding"] == "gzip"
    assert "etag" not in answer.headers and "<title>Pre-LN" in answer.text
    assert "content-encoding" not in client.get("/", headers={"accept-encoding": ""}).headers


# What is drawn.


@pytest.mark.slow
def test_a_picture_is_drawn_from_the_charts_of_the_page(folder: Path) -> None:
    """And so is the one that ships: where charts have changed, `normviz ship` draws it anew."""
    store = Store(folder)
    runs = [run for config in HERO_LANES if (run := store.latest(config.key))]
    lanes = [
        Lane(n, run.config, (store.recording(run),)) for n, run in zip("AB", runs, strict=True)
    ]
    numbers = [run.id for run in runs]
    shipped = pictures.of(store, numbers)
    store.db.connection.execute("DELETE FROM pictures")
    pictures.ask(store, numbers, "somebody")
    named = ",".join(map(str, numbers))
    with start("normviz.export.drawer", folder, named, stdin=subprocess.PIPE) as drawer:
        drawer.wait()
    picture = pictures.of(store, numbers)
    assert picture is not None
    assert list(picture.light) == list(picture.dark) == ["loss", "bars", "heat0", "heat1"]
    assert struct.unpack(">2I", picture.card[16:24]) == CARD
    html = still(lanes, picture)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)
    for words in (
        "chance 3.32", "<b>B Post-LN</b> at chance", "data:image/png", "step 199",
        "<h1>Pre-LN learned, Post-LN ended at chance.</h1>", 'alt="A block with Post-LN.',
    ):  # fmt: skip
        assert words in html
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", html)
    assert outcome(lanes).startswith("A Pre-LN: learned: loss 1.")
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
