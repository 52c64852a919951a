"""A result in a notebook: the frame that shows the player, and the example notebook in real Jupyter."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from backend_kit import SHORT
from browser_kit import PATIENCE_MS
from nbclient import NotebookClient
from playwright.sync_api import Browser

from normviz import train
from normviz.result import Duel, Result, collect

NOTEBOOK = Path(__file__).parents[2] / "assets" / "notebooks" / "norm_placement.ipynb"
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


@pytest.mark.browser
@pytest.mark.slow
def test_the_example_notebook_runs_in_jupyter_and_shows_its_charts(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # other tests use the other cores
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()  # raises where a cell fails

    printed = "".join(o.text for cell in code(notebook) for o in cell.outputs if "text" in o)
    assert "Pre-LN:  learned" in printed and "Post-LN: at chance so far" in printed

    shown = [o.data for cell in code(notebook) for o in cell.outputs if "data" in o]
    frames = [data["text/html"] for data in shown if "<iframe" in data.get("text/html", "")]
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{''.join(frames)}", "utf-8")
    view = browser.new_page()
    view.set_default_timeout(PATIENCE_MS)
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.goto(page.as_uri())
    players = view.locator("iframe")
    assert players.count() == 2
    for i in range(2):
        players.nth(i).scroll_into_view_if_needed()  # a browser draws no frame that is out of sight
        inside = players.nth(i).content_frame
        inside.locator(".nv-loss canvas").wait_for()
        inside.locator(".nv-bars canvas").wait_for()
        inside.locator(".nv-readout", has_text="Pre-LN" if i == 0 else "Post-LN").wait_for()
    network = [url for url in asked if not url.startswith(("file:", "about:", "data:", "blob:"))]
    assert network == [], "a notebook also opens without a network"
    view.close()


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
