"""The learning rate of a running duel, in a real browser: one press is one edit, in both lanes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from browser_kit import chip, opened, text_now, wait_for
from playwright.sync_api import Browser, Page

from normviz.config import RunConfig
from normviz.links import encode
from normviz.runs.store import Run, Store

pytestmark = pytest.mark.browser

HOWS = ("key", "click", "drag", "paused")
SLIDER = ".st-key-knob_lr input[type=range]"
TRACK = ".st-key-knob_lr [role=group] > div"
PAUSE = ".st-key-pause button:visible"
"""Its label comes after the words "Paused at" beside it."""
SEED = count(1000)
"""A trial that runs once more has one of its own: the store keeps the runs of the first."""
LADDER = (0.003, 0.01, 0.03)
"""The rate at the start of a trial, and after each press."""


@pytest.fixture(scope="module")
def page(address: str, browser: Browser) -> Iterator[Page]:
    lanes = [RunConfig(scheme=scheme, init_seed=999, steps=20_000) for scheme in ("pre", "post")]
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        tab = opened(context.new_page(), f"{address}/?{encode(lanes)}", charts=0)
        tab.locator(".st-key-by_itself label").click()  # only Train starts the runs
        wait_for(lambda: tab.locator(".st-key-by_itself input:not(:checked)").count())
        yield tab


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that do nothing else than keep a core busy."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def another_seed(page: Page, seed: int) -> None:
    field = page.locator(".st-key-knob_init_seed input")
    field.fill(str(seed))
    field.press("Enter")
    wait_for(lambda: re.search(rf"init_seed={seed}\b", page.evaluate("location.search")), 20)


def progress(page: Page) -> str:
    return text_now(page, ".nv-progress:not([hidden]) span")


def steps_done(page: Page) -> int:
    """The step that the progress bar says; 0 where it says something else."""
    done = re.match(r"Step (\d+)", progress(page))
    return int(done[1]) if done else 0


def shown_rate(page: Page) -> float:
    return float(page.locator(SLIDER).get_attribute("aria-valuetext") or "nan")


def turn(page: Page, how: str) -> None:
    """One stop up the ladder of learning rates, as a visitor does it."""
    thumb = page.locator(SLIDER)
    if how in ("key", "paused"):
        thumb.focus()
        page.keyboard.press("ArrowRight")
        return
    place = page.locator(TRACK).bounding_box()
    stops, at = int(thumb.get_attribute("max") or 0), int(thumb.input_value())
    assert place is not None and at < stops
    stop, y = place["width"] / stops, place["y"] + place["height"] / 2
    x = place["x"] + at * stop
    if how == "click":
        page.mouse.click(x + stop, y)
        return
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + stop / 3, y, steps=3)
    page.mouse.move(x + stop, y, steps=5)
    page.mouse.up()


def runs_of(store: Store, seed: int) -> list[Run]:
    rows = store.db.connection.execute("SELECT id FROM runs ORDER BY id").fetchall()
    return [
        run for (number,) in rows if (run := store.run(number)) and run.config.init_seed == seed
    ]


def last_rates(store: Store, seed: int) -> list[float]:
    """The rate of the last step that each run of a seed has taken; those without a step have none."""
    taken = [store.steps(run).lr for run in runs_of(store, seed)]
    return [rates[-1] for rates in taken if len(rates)]


@pytest.mark.parametrize(
    ("how", "others"),
    [*((how, 0) for how in HOWS), ("drag", 2), ("paused", 2)],
    ids=lambda it: it if isinstance(it, str) else ("busy" if it else "quiet"),
)
def test_one_press_is_one_edit(page: Page, data: Path, how: str, others: int) -> None:
    """Both lanes take each press at one step, the rate stays where it was put, and they train with it."""
    seed = next(SEED)
    store = Store(data)
    another_seed(page, seed)
    while shown_rate(page) > LADDER[0]:  # the rate that the trial before ended with
        page.locator(SLIDER).focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(500)
    wait_for(lambda: shown_rate(page) == LADDER[0])
    with busy(others):
        press(page, "train")
        wait_for(lambda: steps_done(page) > 30)
        for rate in LADDER[1:]:
            if how == "paused":
                page.locator(PAUSE, has_text="Pause").click()
                wait_for(lambda: "Paused" in progress(page))
            turn(page, how)
            page.wait_for_timeout(1000)  # whatever takes the rate back has this long to do so
            assert shown_rate(page) == rate
            if how == "paused":
                page.locator(PAUSE, has_text="Resume").click()
                wait_for(lambda: "Paused" not in progress(page))
    # The runs have the lowest priority: the others are gone.
    wait_for(lambda: last_rates(store, seed) == [LADDER[-1]] * 2)
    press(page, "stop")
    wait_for(lambda: not any(run.is_open for run in runs_of(store, seed)))
    runs = runs_of(store, seed)
    edits = [run.config.lr_edits for run in runs]
    print(f"by {how}: {edits}")
    assert [run.status for run in runs] == ["stopped", "stopped"]
    assert edits[0] == edits[1] and tuple(rate for _, rate in edits[0]) == LADDER[1:]
    wait_for(lambda: all(chip(page, lane).startswith("stopped after") for lane in (0, 1)))
    assert shown_rate(page) == LADDER[-1]
