"""The signal walk in a real browser: widths follow the numbers, a NaN is marked, a click picks."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from normviz import RunConfig
from normviz.anatomy.walk import CARRIED, walk
from normviz.catalog import PROBES
from normviz.home import shipped
from normviz.player import css
from normviz.player.bundle import joined
from normviz.runs.shipped import load

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><meta name="viewport" content="width=device-width">
<style>body {{ margin: 8px; font: 16px sans-serif; }} {css}</style>
<div id="host"></div><script>{script}
const plan = {plan}, host = document.getElementById("host"), picked = [];
const options = {{ domains: {domains}, layer: null, color: "#3b7dd8", dark: false,
  pick: (layer) => {{ picked.push(layer); }} }};
function draw(values, more) {{
  const typed = Object.fromEntries(Object.entries(values).map(([key, list]) => (
    [key, list && Float32Array.from(list, (value) => value ?? NaN)])));
  drawWalk(host, plan, typed, {{ ...options, ...more }});
}}
// Pixels of the plan that a river covers at a height, seen along a line across it.
function across(side, y) {{
  const flow = host.querySelector(`.nv-walk-${{side}} .nv-walk-flow`);
  const point = host.querySelector("svg").createSVGPoint();
  let wide = 0;
  for (let dx = -30; dx <= 30; dx += 0.1) {{
    point.x = plan.x[side] + dx;
    point.y = y;
    wide += flow.isPointInFill(point) / 10;
  }}
  return wide;
}}
</script>"""
DOMAINS = {
    "stream_rms": {"lo": 0.1, "hi": 100},
    "grad_hidden": {"lo": 1e-6, "hi": 1},
    "grad_block": {"lo": 1e-5, "hi": 10},
}


def hero(name: str, record: int) -> dict[str, list[float | None]]:
    """What the shipped duel's lane measured in one of its records."""
    (path,) = (shipped("assets") / "runs").glob(f"hero-*-{name}.npz")
    (recording,) = load(path)
    layers = recording.steps.layers[record]
    rows = {key: layers[PROBES.keys().index(key)][PROBES[key].first_layer :] for key in CARRIED}
    return {key: row.tolist() for key, row in rows.items()}


def opened(browser: Browser, scheme: str, depth: int = 12, wide: int = 420) -> Page:
    page = browser.new_page(viewport={"width": wide, "height": 900})
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.set_content(
        PAGE.format(
            css=css(),
            script=joined("walk.js"),
            plan=json.dumps(walk(RunConfig(scheme=scheme, depth=depth))),
            domains=json.dumps(DOMAINS),
        )
    )
    return page


def widths(page: Page, side: str) -> list[float]:
    kind = "stream" if side == "up" else "gradient"
    script = """([side, kind]) => plan.edges.filter((edge) => edge.kind === kind)
        .map((edge) => across(side, edge.y + 0.01))"""
    return page.evaluate(script, [side, kind])


@pytest.mark.parametrize("name", ["pre", "post"])
def test_widths_follow_the_numbers(browser: Browser, name: str) -> None:
    page, values = opened(browser, name), hero(name, 60)
    page.evaluate("(values) => draw(values)", values)
    for side, probe in (("up", "stream_rms"), ("down", "grad_hidden")):
        pairs = sorted(zip(values[probe], widths(page, side), strict=True))
        assert all(wide > 1 for _, wide in pairs)
        for (low, one), (high, other) in pairwise(pairs):
            assert one <= other + 0.25, (side, low, high)
    if name == "post":
        down = widths(page, "down")
        assert down[-1] > 4 * down[0]  # the gradient is lost 6,500-fold, and widths are logarithms
        assert "times less" in page.locator("svg").get_attribute("aria-label")
    page.close()


def test_numbers_that_are_not_finite_or_not_there(browser: Browser) -> None:
    page, values = opened(browser, "post"), hero("post", 0)
    values["stream_rms"][7:] = [None] * 6
    values["grad_block"][8] = None
    page.evaluate("(values) => draw(values)", {**values, "grad_hidden": None})
    label = page.locator("svg").get_attribute("aria-label")
    assert "not finite after block 7" in label and "gradient" not in label
    assert page.locator(".nv-walk-up .nv-walk-bad").get_attribute("d")
    assert "NaN" in page.locator(".nv-walk-word:visible").all_text_contents()
    assert page.locator(".nv-walk-down .nv-walk-flow").first.get_attribute("d") == ""
    assert page.locator('.nv-walk-box[fill="#e03131"]').count() == 1
    page.evaluate("(values) => draw(values)", hero("post", 0))
    assert page.locator(".nv-walk-word:visible").count() == 0
    assert page.locator('.nv-walk-box[fill="#e03131"]').count() == 0
    page.evaluate("() => draw({})")
    assert "No numbers" in page.locator("svg").get_attribute("aria-label")
    page.close()


def test_a_click_picks_a_block_and_pointing_reads_it(browser: Browser) -> None:
    page, values = opened(browser, "pre"), hero("pre", 30)
    page.evaluate("(values) => draw(values)", values)
    boxes = page.locator(".nv-walk-box")
    boxes.nth(4).hover(position={"x": 9, "y": 9})
    assert page.locator(".nv-walk-words").inner_text().startswith("Block 5: stream RMS")
    boxes.nth(4).click(position={"x": 9, "y": 9})
    page.locator(".nv-walk-end").first.click(position={"x": 9, "y": 9})
    assert page.evaluate("picked") == [5, 0]
    page.mouse.move(1, 890)
    page.evaluate("(values) => draw(values, { layer: 5 })", values)
    mark, box = page.locator(".nv-walk-mark").bounding_box(), boxes.nth(4).bounding_box()
    assert mark and box and mark["y"] <= box["y"] <= mark["y"] + mark["height"]
    page.locator("svg").press("ArrowUp")
    assert page.evaluate("picked") == [5, 0, 6]
    page.close()


@pytest.mark.parametrize("depth", [1, 12, 24, 96, 1000])
def test_nothing_is_clipped_on_a_phone(browser: Browser, depth: int) -> None:
    page = opened(browser, "post", depth, wide=375)
    grow: list[Any] = [1.2345e-10] * (depth + 1)
    values = {"stream_rms": grow, "grad_hidden": grow, "grad_block": grow[1:], "branch_ratio": None}
    page.evaluate("(values) => draw(values)", values)
    outside = """() => { const frame = host.querySelector("svg").getBoundingClientRect();
      return [...host.querySelectorAll("svg *")].filter((part) => {
        const box = part.getBoundingClientRect();
        return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
      }).map((part) => part.outerHTML.slice(0, 120)); }"""
    assert page.evaluate(outside) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.close()
