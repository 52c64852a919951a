"""`normviz export-site`: pages that any static host serves, as a browser sees them, and sentences."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_kit import PATIENCE_MS, files_at, wait_for
from click.testing import Result
from playwright.sync_api import Browser
from typer.testing import CliRunner

from normviz import RunConfig, train
from normviz.cli import main
from normviz.duel.presets import PRESETS
from normviz.runs import collect
from normviz.runs.shipped import adopt
from normviz.runs.store import Store
from normviz.tour import STEPS

EVIL = "<script>alert(1)</script>\"'&"
URL = "https://example.org/norms"


def export_site(*words: object) -> Result:
    return CliRunner().invoke(main, ["export-site", *map(str, words)])


def stored(folder: Path, config: RunConfig) -> tuple[Store, int]:
    store = Store(folder)
    (run,) = store.keep_all([collect(train(config))], "here")
    return store, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole site: everything that ships, and two runs of a store."""
    home, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out") / "new" / "site"
    tiny = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=20)
    _, first = stored(home, tiny)
    _, second = stored(home, tiny.replace(scheme="post"))
    with pytest.MonkeyPatch.context() as patch:
        # Half of the time: other tests hold every chart against its schema.
        patch.setattr("altair.utils.schemapi.validate_jsonschema", lambda *_, **__: None)
        done = export_site(
        out, first, f"{first},{tiny.replace(scheme='post').key}", "--data", home,
        "--title", EVIL, "--url", URL,
    )  # fmt: skip
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert done.stdout.splitlines()[-1] == str(out / "index.html")
    assert {path.name for path in out.glob("run-*.html")} == {
        f"run-{first}.html", f"run-{first}-{second}.html"
    }  # fmt: skip
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
def test_everything_that_ships_has_a_page_with_its_picture(folder: Path) -> None:
    pages = {path.stem for path in folder.glob("*.html")}
    tour = {f"tour-{n}-{step.key}" for n, step in enumerate(STEPS, start=1)}
    assert pages >= {*PRESETS.keys(), *tour, "index"}
    for name in pages - {"index"}:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert set(Page(folder / "index.html").named) == {f"{name}.html" for name in pages - {"index"}}


@pytest.mark.slow
def test_every_page_can_be_previewed_and_names_only_its_neighbours(folder: Path) -> None:
    for path in folder.glob("*.html"):
        page = Page(path)
        assert {"og:title", "og:description", "og:image", "og:type", "description"} <= set(
            page.tags
        )
        assert page.tags["og:url"] == f"{URL}/{path.name}"
        assert page.tags["og:image"].startswith(f"{URL}/")
        assert (folder / page.tags["og:image"].rpartition("/")[2]).is_file()
        for name in page.named:
            assert not urlsplit(name).scheme and not urlsplit(name).netloc
            assert (folder / name).is_file(), name
    hero = Page(folder / "hero.html").tags
    assert hero["og:title"] == PRESETS["hero"].question
    assert "at chance so far" in hero["og:description"] and "learned" in hero["og:description"]


@pytest.mark.slow
def test_a_page_prints_no_asterisk_and_the_tour_leads_on_and_back(folder: Path) -> None:
    tour = [f"tour-{n}-{step.key}.html" for n, step in enumerate(STEPS, start=1)]
    for at, name in enumerate(tour):
        text = (folder / name).read_text("utf-8")
        words = text.partition("<body>")[2].partition('<div id="player">')[0]
        assert STEPS[at].title in words and "*" not in words
        beside = [f'<a href="{tour[at - 1]}">Back</a>'] * (at > 0)
        beside += [f'<a href="{other}">Next</a>' for other in tour[at + 1 : at + 2]]
        assert re.findall(r'<a href="tour[^"]*">\w+</a>', words) == beside
    assert (
        "tour-" not in (folder / "hero.html").read_text("utf-8").partition('<div id="player">')[0]
    )


@pytest.mark.slow
def test_a_title_is_text_and_never_html(folder: Path) -> None:
    text = (folder / "index.html").read_text("utf-8")
    assert "<script" not in text
    page = Page(folder / "index.html")
    assert page.title == page.tags["og:title"] == EVIL


def test_without_an_address_all_is_relative(tmp_path: Path) -> None:
    from normviz.export.preview import tags

    found = tags('"><b>', "words", "", "a.png")
    assert 'property="og:image" content="a.png"' in found and "og:url" not in found
    assert "<b>" not in found


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A plain static file server, with the site in a folder of its own."""
    with files_at(folder.parent) as found:
        yield f"{found}/site"


@pytest.mark.browser
def test_every_page_plays_in_a_browser_and_asks_nobody_else(
    browser: Browser, address: str, folder: Path
) -> None:
    page = browser.new_page(reduced_motion="no-preference")
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    asked: set[str] = set()
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page.on("websocket", lambda line: wrong.append(line.url))
    page.goto(f"{address}/index.html")
    links = [link.get_attribute("href") or "" for link in page.locator("li a").all()]
    assert len(links) == len(list(folder.glob("*.html"))) - 1
    for link in links:
        page.goto(f"{address}/index.html")
        page.locator(f"a[href='{link}']").click()
        page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
        step = page.locator(".nv-step output")
        moved: set[str] = set()
        wait_for(lambda step=step, moved=moved: moved.add(step.inner_text()) or len(moved) > 2)
    page.get_by_text("All duels").click()
    page.wait_for_url(f"{address}/index.html")
    # Browsers ask by themselves for an icon, which a folder need not have.
    assert [text for text in wrong if "404" not in text] == []
    assert asked == {urlsplit(address).netloc}
    page.close()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no-such-run"], "'no-such-run' names no run: allowed are the number"),
        (["999999"], "has no run 999999: `normviz runs` lists"),
        (["e1-0123456789abcdef"], "has no run e1-0123456789abcdef"),
        (["1,2,3,4,5"], "'1,2,3,4,5' names 5 runs, allowed are up to 4"),
        (["9" * 40], "names no run"),
        (["--url", "ftp://x"], "--url is 'ftp://x', allowed is an address such as"),
        (["--url", "javascript:alert(1)"], "--url is 'javascript:alert(1)'"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)  # fmt: skip
def test_bad_input_gets_one_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = export_site(tmp_path / "site", *words, "--data", tmp_path)
    assert (done.exit_code, done.stdout) == (2, ""), done.exception
    assert sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "site").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    mine, data = tmp_path / "mine.txt", tmp_path / "data"
    mine.write_text("mine")
    data.mkdir()
    for folder in (tmp_path, mine):
        done = export_site(folder, "--data", data)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is not empty, and nothing in it is overwritten" in done.stderr
    assert mine.read_text() == "mine" and not list(tmp_path.glob("*.html"))


def test_a_run_without_steps_is_a_sentence(tmp_path: Path) -> None:
    run = Store(tmp_path).enqueue(RunConfig(steps=30))
    done = export_site(tmp_path / "site", run, "--data", tmp_path)
    assert done.exit_code == 2 and f"run {run} is queued and has no steps" in done.stderr


@pytest.mark.slow
def test_a_live_page_is_a_file_among_others_or_all_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.export import live
    from normviz.export.live_link import BROWSER_NORMS, live_link, model_file
    from normviz.export.site import shipped_duels, site

    monkeypatch.setattr(live, "live_schemes", lambda: ["pre", "post"])
    monkeypatch.setattr(live, "DEPTHS", (2, 12))
    store = Store(tmp_path)
    adopt(store)
    monkeypatch.setattr("altair.utils.schemapi.validate_jsonschema", lambda *_, **__: None)
    duels = [duel for duel in shipped_duels(store) if duel.name == "hero"]
    folder = dict(site(duels, "t", URL + "/", "folder"))
    names = {f"model-{scheme}-{norm}.bin" for scheme in ("pre", "post") for norm in BROWSER_NORMS}
    assert names <= set(folder) and b'<a href="live.html">' in folder["index.html"]
    ((name, whole),) = live.live_page([duels[0].lanes], one_file=True)
    assert name == "live.html" and b"src=" not in whole.partition(b"<script>")[0]
    # All that the first training loads beside Vega, packed: the page, its scripts, the module, two models.
    loaded = [name for name in folder if name.startswith(("player", "live", "tape"))]
    packed = sum(len(gzip.compress(folder[name])) for name in loaded)
    assert packed + 2 * max(len(folder[name]) for name in names) < 400_000
    prose = PRESETS["prose"].lanes()
    assert live_link(prose) and {model_file(lane) for lane in prose} <= set(folder)
    assert live_link(PRESETS["today"].lanes()) is None


def test_one_file_needs_a_live_page(tmp_path: Path) -> None:
    done = export_site(tmp_path / "site", "--one-file")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--one-file needs --live" in done.stderr
