"""`normviz export-site`: pages that any static host serves, and sentences."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli_kit import normviz
from click.testing import Result
from crossing_kit import case

from normviz import RunConfig, train
from normviz.browser import page as live
from normviz.browser.link import VARIANTS, live_link, model_file
from normviz.browser.site import SiteDuel, shipped_duels, site
from normviz.export.preview import tags
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.runs import collect
from normviz.runs.shipped import adopt
from normviz.runs.store import Store

EVIL = "<script>alert(1)</script>\"'&"
URL = "https://example.org/norms"
TOUR = [f"tour-{n}-{step.key}" for n, step in enumerate(STEPS, start=1)]
NORMS = ("layernorm", "rmsnorm")


def export_site(*words: object) -> Result:
    return normviz("export-site", *map(str, words))


def chosen() -> set[str]:
    """Some of what ships: the hero, and the ends of the tour."""
    return {"hero", TOUR[0], TOUR[-1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of some of what ships, and of two runs of a store."""
    home, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out") / "new" / "site"
    tiny = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=20)
    runs = [collect(train(one)) for one in (tiny, tiny.replace(scheme="post"))]
    first, second = Store(home).keep_all(runs, "here")

    def some(store: Store, every: Any = shipped_duels) -> list[SiteDuel]:
        duels = every(store)
        assert [duel.name for duel in duels] == [*PRESETS.keys(), *TOUR]
        return [duel for duel in duels if duel.name in chosen()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("normviz.browser.site.shipped_duels", some)
        done = export_site(
        out, f"{first},{tiny.replace(scheme='post').key}", "--data", home,
        "--title", EVIL, "--url", URL,
    )  # fmt: skip
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert done.stdout.splitlines()[-1] == str(out / "index.html")
    pages = {path.stem for path in out.glob("*.html")}
    assert pages == {*chosen(), f"run-{first}-{second}", "index"}
    return out


class Page(HTMLParser):
    """What a page says in its head, and every place that it names."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: dict[str, str] = {}
        self.named: list[str] = []
        self.title, self._in = "", ""
        self.feed(re.sub(r"<script>.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self._in = tag
        if tag == "meta" and (name := said.get("property") or said.get("name")):
            self.tags[name] = said["content"]
        if tag != "svg":
            self.named += [said[name] for name in ("src", "href") if name in said]

    def handle_data(self, data: str) -> None:
        if self._in == "title" and not self.title:
            self.title = data


@pytest.mark.slow
def test_a_page_has_its_picture_can_be_previewed_and_names_only_its_neighbours(
    folder: Path,
) -> None:
    for path in folder.glob("*.html"):
        page = Page(path)
        if path.stem != "index":
            assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert {"og:title", "og:description", "og:image", "og:type", "description"} <= set(
            page.tags
        )
        assert page.tags["og:url"] == f"{URL}/{path.name}"
        assert page.tags["og:image"].startswith(f"{URL}/")
        assert (folder / page.tags["og:image"].rpartition("/")[2]).is_file()
        for name in page.named:
            assert not urlsplit(name).scheme and not urlsplit(name).netloc
            assert (folder / name).is_file(), name
    index = Page(folder / "index.html")
    assert {*index.named, "index.html"} == {path.name for path in folder.glob("*.html")}
    assert "<script" not in (folder / "index.html").read_text("utf-8")
    assert index.title == index.tags["og:title"] == EVIL
    hero = Page(folder / "hero.html").tags
    assert hero["og:title"] == PRESETS["hero"].question
    assert "at chance" in hero["og:description"] and "learned" in hero["og:description"]


@pytest.mark.slow
def test_a_page_prints_no_asterisk_and_the_tour_leads_on_and_back(folder: Path) -> None:
    tour = [TOUR[0], TOUR[-1]]
    for at, name in enumerate(tour):
        text = (folder / f"{name}.html").read_text("utf-8")
        words = text.partition("<body>")[2].partition('<div id="player">')[0]
        assert STEPS[TOUR.index(name)].title in words and "*" not in words
        beside = [f'<a href="{tour[at - 1]}.html">Back</a>'] * (at > 0)
        beside += [f'<a href="{other}.html">Next</a>' for other in tour[at + 1 : at + 2]]
        assert re.findall(r'<a href="tour[^"]*">\w+</a>', words) == beside
    assert (
        "tour-" not in (folder / "hero.html").read_text("utf-8").partition('<div id="player">')[0]
    )


def test_without_an_address_all_is_relative() -> None:
    found = tags('"><b>', "words", "", "a.png")
    assert 'property="og:image" content="a.png"' in found and "og:url" not in found
    assert "<b>" not in found


BAD = [
    (["no-such-run"], "'no-such-run' names no run: allowed are the number"),
    (["999999"], "has no run 999999: `normviz runs` lists"),
    (["e1-0123456789abcdef"], "has no run e1-0123456789abcdef"),
    (["1,1,1,1,1"], "'1,1,1,1,1' names 5 runs, allowed are up to 4"),
    (["9" * 40], "names no run"),
    (["2"], "run 2 is queued and has no steps"),
    (["--url", "ftp://x"], "--url is 'ftp://x', allowed is an address such as"),
    (["--url", "javascript:alert(1)"], "--url is 'javascript:alert(1)'"),
    (["--one-file"], "--one-file needs --live"),
]


@pytest.mark.slow
def test_bad_input_gets_one_sentence(
    tmp_path: Path, tiny: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normviz.cli.export.adopt", lambda store: None)
    monkeypatch.setattr("normviz.browser.site.shipped_duels", lambda store: [])
    store = Store(tmp_path)
    assert store.keep_all([collect(train(tiny))], "here") == [1]
    assert store.enqueue(tiny) == 2
    for words, sentence in BAD:
        with case(*words):
            done = export_site(tmp_path / "site", "--data", tmp_path, *words)
            assert (done.exit_code, done.stdout) == (2, ""), done.exception
            assert sentence in done.stderr and done.stderr.count("\n") == 1
            assert not (tmp_path / "site").exists()
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    for folder in (tmp_path, mine):
        done = export_site(folder, "--data", tmp_path)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is not empty, and nothing in it is overwritten" in done.stderr
    assert mine.read_text() == "mine" and not list(tmp_path.glob("*.html"))


@pytest.mark.slow
def test_a_live_page_is_a_file_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "live_schemes", lambda: ["pre", "post"])
    monkeypatch.setattr(live, "DEPTHS", (2, 12))
    monkeypatch.setattr("normviz.browser.site.picture", lambda *of, **more: b"")
    monkeypatch.setattr(live, "VARIANTS", dict.fromkeys(VARIANTS, dict.fromkeys(NORMS, (2, 12))))
    store = Store(tmp_path)
    adopt(store)
    duels = [duel for duel in shipped_duels(store) if duel.name == "hero"]
    folder = dict(site(duels, "t", URL + "/", "folder"))
    names = {f"model-{scheme}-{norm}.bin" for scheme in ("pre", "post") for norm in NORMS}
    assert names <= set(folder) and b'<a href="live.html">' in folder["index.html"]
    # All that the first training loads beside Vega, packed: the page, its scripts, the module, two models.
    loaded = [name for name in folder if name.startswith(("player", "live", "tape"))]
    packed = sum(len(gzip.compress(folder[name])) for name in loaded)
    assert packed + 2 * max(len(folder[name]) for name in names) < 400_000
    prose = PRESETS["prose"].lanes()
    assert live_link(prose) and {model_file(lane) for lane in prose} <= set(folder)
    assert live_link(PRESETS["today"].lanes()) is None
