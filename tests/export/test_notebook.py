"""Results and watches in a notebook: the frame that shows the player, the example notebook and a watch that
trains in one real Jupyter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from backend_kit import SHORT
from browser_kit import PATIENCE_MS
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page

from normviz import train
from normviz.result import Duel, Result, collect

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "assets" / "notebooks" / "norm_placement.ipynb"
WATCH = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests" / "own_model")!r})
from test_watch_loop import batch, made
import normviz
model, optimizer = made()
watch = normviz.watch(model, optimizer, to=None)
watch
"""
LOOP = """
model(*batch(0))[1].backward(); optimizer.step(); optimizer.zero_grad()
watch.flush()
"""
SMALLER = "depth=2, width=16, heads=2, steps=20"
MB = 2**20


class Tags(HTMLParser):
    """The tags of a piece of HTML with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def pre() -> Result:
    return collect(train(SHORT))


@pytest.fixture(scope="module")
def post() -> Result:
    return collect(train(SHORT.replace(scheme="post")))


@pytest.mark.slow
def test_results_are_lanes_of_one_frame_that_can_not_reach_the_notebook(
    pre: Result, post: Result
) -> None:
    both = Duel(pre, post)
    shown = both._repr_html_()
    ((tag, attrs),) = Tags(shown).found
    assert tag == "iframe"
    rights = (attrs["sandbox"] or "").split()
    assert "allow-scripts" in rights and "allow-same-origin" not in rights
    assert not [right for right in rights if right.startswith("allow-top-navigation")]
    assert attrs["title"] == (
        f"A Pre-LN: {pre.verdict.sentence}; B Post-LN: {post.verdict.sentence}"
    )
    html = both.html()
    assert attrs["srcdoc"] == html, "what the frame holds is escaped once"
    assert '"A Pre-LN"' in html and '"B Post-LN"' in html
    # Vega is most of it.
    assert len(shown) < 3.5 * MB
    assert repr(pre) == f"Result(Pre-LN: {pre.verdict.sentence})"


def test_a_duel_has_one_to_four_results(pre: Result) -> None:
    for count in (0, 5):
        with pytest.raises(ValueError, match=f"a duel has 1 to 4 results, got {count}"):
            Duel(*[pre] * count)


def test_a_result_without_steps_is_a_sentence(pre: Result) -> None:
    events = train(SHORT)
    begun = collect([next(events)])
    events.close()
    for it in (begun, Duel(pre, begun)):
        tags = Tags(it._repr_html_())
        assert [tag for tag, _ in tags.found] == ["p"]
        assert "stopped after 0 steps" in tags.text


@pytest.fixture(scope="module")
def jupyter(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[nbformat.NotebookNode, list[list[str]]]:
    """The example notebook with smaller runs and a watch, after one kernel has run both; and what the watch's
    cell showed after each message of the kernel."""
    folder = tmp_path_factory.mktemp("jupyter")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("RunConfig(", f"RunConfig({SMALLER}, ")
    notebook.cells += [nbformat.v4.new_code_cell(text) for text in (WATCH, LOOP)]
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    seen: list[list[str]] = []
    kept = client.process_message
    client.process_message = lambda *given: (kept(*given), seen.append(frames(notebook, -2)))[0]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder))
        patch.setenv("OMP_NUM_THREADS", "1")  # other tests use the other cores
        client.execute()  # raises where a cell fails
    return notebook, seen


def frames(notebook: nbformat.NotebookNode, cell: int) -> list[str]:
    """What a cell shows as HTML."""
    outputs = notebook.cells[cell].get("outputs", ())
    return [out.data.get("text/html", "") for out in outputs if "data" in out]


@contextmanager
def opened(browser: Browser, folder: Path, html: list[str]) -> Iterator[Page]:
    """A page of some outputs, which asks for nothing: a notebook also opens without a network."""
    file = folder / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{''.join(html)}", "utf-8")
    view = browser.new_page()
    view.set_default_timeout(PATIENCE_MS)
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.goto(file.as_uri())
    yield view
    assert not [url for url in asked if not url.startswith(("file:", "about:", "data:", "blob:"))]
    view.close()


def draws(view: Page, frame: int, words: str) -> None:
    """Waits until a frame shows its charts, and these words."""
    player = view.locator("iframe").nth(frame)
    player.scroll_into_view_if_needed()  # a browser draws no frame that is out of sight
    inside = player.content_frame
    inside.locator(".nv-loss canvas").wait_for()
    inside.locator(".nv-bars canvas").wait_for()
    inside.locator(".nv-readout", has_text=words).wait_for(state="attached")


@pytest.mark.browser
@pytest.mark.slow
def test_charts_of_the_example_and_of_a_watch_that_trains_stand_in_the_notebook(
    browser: Browser, tmp_path: Path, jupyter: tuple[nbformat.NotebookNode, list[list[str]]]
) -> None:
    notebook, seen = jupyter
    cells = range(len(notebook.cells) - 2)
    players = [html for at in cells for html in frames(notebook, at) if "<iframe" in html]
    assert len(players) == 2
    saved = frames(notebook, -2)
    posts = [shown for shown in seen if len(shown) == 2 and "postMessage" in shown[1]]
    assert posts, "the first recorded step was posted while the cell ran"
    assert "postMessage" not in saved[1] and "Step" in saved[0]
    with opened(browser, tmp_path, [players[0], *posts[0]]) as view:
        draws(view, 0, "Pre-LN")
        draws(view, 1, "Model, Pre-LN loss 2.63")
    with opened(browser, tmp_path, saved) as view:
        draws(view, 0, "Model, Pre-LN loss 2.63")
