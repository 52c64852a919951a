"""Charts: constant specs, rows that hold the numbers given, nothing left out in silence.

The rows of a duel's charts are made by the player, which runs in Node here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import combinations, pairwise, product
from typing import Any

import altair as alt
import numpy as np
import pytest
from charts_kit import (
    DEPTH,
    STEPS,
    broken,
    cells,
    drawn,
    falling,
    few,
    in_node,
    make,
    marks,
    render,
    rows,
    without_data,
)

from normviz.catalog.probes import PROBES
from normviz.charts import (
    Domain,
    heatmap,
    layers,
    lines,
    loss,
    quantised_domain,
    ratio,
    styles_of,
)
from normviz.charts.base import CONTAINER_WIDTH, compiled, named, step_axis
from normviz.charts.loss import y_domain
from normviz.charts.map import Map, MapCell, finding
from normviz.charts.map import chart as map_chart
from normviz.charts.palette import BACKGROUNDS, LETTER_WIDTH, LOWEST, RED, contrast
from normviz.player import ChartOptions, Sent, message
from normviz.runs.lane import Lane


def axis(lanes: Sequence[Lane]) -> tuple[float, float]:
    """The axis of the lanes' losses."""
    return y_domain([lane.recording for lane in lanes])


def domain_of(lanes: Sequence[Lane], probe: str = "grad_block", live: bool = False) -> Domain:
    """The axis of the lanes' values."""
    return quantised_domain(PROBES[probe], [lane.recording.layers(probe) for lane in lanes], live)


# Every chart


@pytest.mark.parametrize("steps", [0, 1, 20])
def test_the_axis_of_steps_begins_half_a_step_before_the_first(steps: int) -> None:
    """Of a run without a step too: Vega draws an empty domain as one from -1 to 1."""
    low, high = step_axis(steps).to_dict()["scale"]["domain"]
    assert (low, high) == (-0.5, max(steps, 1) - 0.5)


VIEWS = [
    ChartOptions(),
    ChartOptions(dark=True),
    ChartOptions(linear=True),
    ChartOptions(view="lines"),
    ChartOptions(view="ratio"),
]


def all_charts(
    lanes: list[Lane],
    cursor: int,
    looks: Sequence[ChartOptions] = VIEWS,
    probe: str = "grad_block",
) -> list[dict[str, Any]]:
    each = (drawn(lanes, cursor, options, probe, live=True) for options in looks)
    return [*(chart for some in each for chart in some.values()), layers.chart(lanes, probe)]


def test_specs_stay_equal_while_a_run_goes_on() -> None:
    specs = set()
    for ran in range(1, STEPS, 7):
        lanes = [make("pre", ran), make("post", ran)]
        told = message(lanes, "grad_block", Sent(), live=True, options=ChartOptions())
        still = without_data(layers.chart(lanes, "grad_block"))
        specs.add((json.dumps(told["charts"]), still))
    assert len(specs) == 1


@pytest.mark.slow
def test_specs_are_constant_canvas_and_without_aria() -> None:
    for chart in all_charts([make(), broken()], 10):
        assert chart["usermeta"]["embedOptions"]["renderer"] == "canvas"
        assert chart["config"]["aria"] is False
        named = set(re.findall(r'"data": \{"name": "(\w+)"\}', without_data(chart)))
        assert named == set(chart["datasets"])


def test_a_caller_cannot_corrupt_a_cached_spec() -> None:
    before = without_data(loss.chart([make()]))
    spoilt = loss.chart([make()])
    spoilt.clear()
    assert without_data(loss.chart([make()])) == before


KINDS = {(p.scale, p.shown, p.first_layer): p.key for p in PROBES}.values()
"""A probe of each kind of axis."""


@pytest.mark.slow
def test_every_kind_of_probe_renders_empty_and_full() -> None:
    for probe, ran in (*product(KINDS, [STEPS]), ("grad_block", 0)):
        lanes = [make("pre", ran, probe), make("pre", ran, probe)]
        for chart in all_charts(lanes, max(0, ran - 1), [ChartOptions()], probe):
            assert "<svg" in render(chart)


@pytest.mark.slow
def test_deep_models_and_dark_pages_render() -> None:
    lane = make(depth=100, values=np.full((STEPS, 101), 0.1))
    charts = drawn([lane], 3, ChartOptions(dark=True))
    assert "line" in without_data(charts["bars"])
    for chart in charts.values():
        assert "<svg" in render(chart)


# Loss


def test_loss_rows_are_what_was_measured_up_to_the_cursor() -> None:
    lanes = [make("pre"), make("post", loss=np.linspace(4, 3, STEPS))]
    data = drawn(lanes, 30)["loss"]["datasets"]
    for index, lane in enumerate(lanes):
        curve = list(lane.recording.losses.astype("f4"))
        past, whole = ([r for r in data[name] if r["lane"] == index] for name in ("past", "ahead"))
        assert [r["loss"] for r in past] == curve[:31]
        assert [r["loss"] for r in whole] == curve
    assert data["cursor"] == [{"step": 30}]


@pytest.mark.slow
def test_divergence_and_losses_above_the_axis_are_marked() -> None:
    spike = make("post")
    spike.recording.losses[3] = 904.0
    lanes = [broken(), spike]
    domain = axis(lanes)
    data = loss.fixed(lanes, domain)
    assert domain[1] < 904  # one spike does not set the axis
    assert [r["text"] for r in data["peaks"]] == ["peak 904"]
    (bad,) = data["bad"]
    assert (bad["step"], bad["text"]) == (20, "A diverged at step 20, layer 4")
    for chart in (loss.chart(lanes), drawn(lanes, STEPS - 1)["loss"]):
        items = list(marks(chart))
        (above,) = (one for one in items if one.get("shape") == "triangle-up")
        assert above["fill"] == styles_of(lanes)[1].color
        ends = [one for one in items if one.get("shape") == "circle" and one["role"] == "mark"]
        assert above["x"] < min(one["x"] for one in ends)
        # The line of the lane that diverged ends at its last finite step.
        assert len(ends) == 2 and ends[0]["x"] < ends[1]["x"]
        assert "diverged at step 20, layer 4" in render(chart)


def test_a_loss_of_zero_lies_on_the_lower_edge() -> None:
    lane = make(loss=np.array([3.0, 2.0, 0.0]))
    for chart in (loss.chart([lane]), drawn([lane], 2)["loss"]):
        line = [one for one in marks(chart) if one["kind"] == "line"]
        assert max(one["y"] for one in line) == loss.HEIGHT


def test_a_change_of_the_rate_is_a_tick_once_for_all_that_took_it_together() -> None:
    """With the rate in words; none for a change that a run has not reached."""
    a = make(edits=((12, 0.01),))
    b = make("post", edits=((12, 0.01), (40, 0.003)), name="B  post")
    rates = loss.fixed([a, b], axis([a, b]))["rates"]
    assert [(r["step"], r["text"]) for r in rates] == [(12, "rate 0.01"), (40, "B: rate 0.003")]
    assert len({r["row"] for r in rates}) == 2
    assert "B post has learning rate 0.003 from step 40" in loss.finding([a, b])
    lane = make(ran=20, edits=((12, 0.01), (40, 0.003)))
    assert lane.recording.edits == ((12, 0.01),)


EDITED = """
import { lossSets } from "player/axes.js";
console.log(JSON.stringify(lossSets(given.lanes, given.domain)));
"""


@pytest.mark.parametrize("width", [340, 460])
@pytest.mark.parametrize(
    "ends", [(1.5, 1.5, 1.5, 1.5), (0.9, 0.9, 0.91, 0.92), (1.2, 3, 1.21, 2.9)]
)
def test_names_are_at_the_ends_of_their_lines_and_cover_no_other(
    ends: tuple[float, ...], width: int
) -> None:
    """Beside the plot, so also none of the words in it. A narrow place has room for letters alone."""
    labels = ("Pre-LN", "Post-LN, depth 12", "Sandwich-LN", "Pre-LN (before: depth 3)")
    lanes = [
        make(loss=np.linspace(3.5, end, STEPS), name=f"{letter}  {label}")
        for letter, label, end in zip("ABCD", labels, ends, strict=True)
    ]
    chart = loss.chart(lanes)
    chart["params"] = [
        {**one, "value": width} if one["name"] == CONTAINER_WIDTH else one
        for one in chart["params"]
    ]
    items = [one for one in marks(chart) if one["role"] == "mark"]
    names = {one["text"]: one for one in items if one.get("fontWeight") == "bold"}
    short = ["A Pre-LN", "B Post-LN", "C Sandwich-LN", "D Pre-LN"]
    assert sorted(names) == (short if width > loss.NAMED else [*"ABCD"])
    heads = [one["x"] for one in items if one.get("size") == 70]
    assert {one["x"] for one in names.values()} == {*heads}
    places = sorted(one["y"] + one["dy"] for one in names.values())
    assert all(low - high >= loss.NAME_LINE - 1e-6 for high, low in pairwise(places))
    assert places[0] >= 0 and places[-1] <= loss.HEIGHT - loss.NAME_LINE / 2 + 1e-6


def test_words_about_rates_are_at_the_top_and_cover_no_other_word() -> None:
    """Also where a rate is turned at once again; the page that trains in a browser has the same rows."""
    steps = (1, 2, 3, 20, 21, 24, 30, 36, 38, 44, 50, 55, 57)
    edits = tuple((step, 0.001 * step) for step in steps)
    high = np.linspace(3.5, 1.5, STEPS)
    high[7] = 50.0
    lane = make(edits=edits, loss=high)
    lanes = [lane, make("post", edits=edits[:5], name="B  post", first_bad=(40, 2))]
    domain = axis(lanes)
    sets = loss.fixed(lanes, domain)
    rates = sets["rates"]
    assert [r["step"] for r in rates] == [*steps] and sum(bool(r["text"]) for r in rates) > 3
    assert rates[-1]["text"] == "A: rate 0.057", "the last rate of many is named"
    boxes = sorted((r["row"], *extent(r)) for r in rates + sets["peaks"] + sets["bad"] if r["text"])
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(boxes)), boxes
    assert max(row for row, *_ in boxes) <= loss.HEIGHT / 2
    given = [
        {
            "short": one.letter, "name": one.label, "edits": one.recording.edits,
            "loss": one.recording.losses.tolist(),
            "steps": STEPS, "chance": 3.3, "floor": 1.0, "heldOut": [],
            "bad": bad and {"step": bad[0], "layer": bad[1]},
        }
        for one in lanes
        for bad in [one.recording.bad]
    ]  # fmt: skip
    found = in_node(EDITED, {"lanes": given, "domain": domain})
    assert [found[name] for name in ("rates", "peaks", "bad", "levels")] == [
        sets[name] for name in ("rates", "peaks", "bad", "levels")
    ]
    begun = make(ran=24)
    given = [{**given[0], "loss": begun.recording.losses.tolist(), "edits": []}]
    for high in (5.0, 1e4):  # with and without room below the floor
        found = in_node(EDITED, {"lanes": given, "domain": [0.8, high]})
        assert found["levels"] == loss.fixed([begun], (0.8, high))["levels"]
        assert [level["under"] for level in found["levels"]] == [False, high < 10]


def test_words_in_the_plot_cover_no_other_beside_the_longest_names() -> None:
    """Drawn where lanes have names and the plot is at its narrowest: those of a rate that is turned several
    times within a few steps, and those of chance while lanes at chance have run a part of their steps."""
    edits = tuple((30 + 2 * i, 0.001 * (i + 1)) for i in range(6))
    shown = {"Hyper-connections": 0, "Pre-LN": 0}
    for ran, label in product(range(6, STEPS + 1, 6), shown):
        lanes = [
            make(
                loss=np.full(ran, 3.3), name=f"{letter}  {label}",
                edits=edits if ran == STEPS else (),
            )
            for letter in "AB"
        ]  # fmt: skip
        boxes = words(loss.chart(lanes), loss.NAMED)
        assert sum(text.startswith("rate") for text in boxes) == (2 if ran == STEPS else 0)
        shown[label] += "chance: 3.30" in boxes
        for (one, a), (other, b) in combinations(boxes.items(), 2):
            apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
            assert apart, (ran, one, a, other, b)
    assert shown["Hyper-connections"] > 5 and shown["Pre-LN"] >= 8, "else they are left out"
    for ran in (16, 32):  # beside letters they always have room
        lanes = [make(loss=np.full(ran, 3.3), name=f"{letter}  Pre-LN") for letter in "AB"]
        boxes = words(loss.chart(lanes), 290)
        assert {"A", "B", "chance: 3.30", "floor: 1.00"} <= boxes.keys()
        at = boxes["chance: 3.30"]
        assert all(at[1] <= boxes[one][0] or at[0] >= boxes[one][1] for one in "AB"), boxes


def words(chart: dict[str, Any], width: int) -> dict[str, tuple[float, float, float, float]]:
    """Left, right, top and bottom in pixels of each text of a chart's plot, about."""
    chart["params"] = [
        {**one, "value": width} if one["name"] == CONTAINER_WIDTH else one
        for one in chart["params"]
    ]
    found = {}
    for one in marks(chart, width):
        if one["kind"] != "text" or one["role"] != "mark" or not one["text"]:
            continue
        wide = LETTER_WIDTH * len(one["text"])
        left = (
            one["x"]
            + one.get("dx", 0)
            - {"left": 0, "center": 0.5, "right": 1}[one["align"]] * wide
        )
        top = (
            one["y"]
            + one.get("dy", 0)
            - {"top": 0, "middle": 0.5, "bottom": 1}[one["baseline"]] * 12
        )
        found[one["text"]] = left, left + wide, top, top + 12
    return found


def extent(row: dict[str, Any]) -> tuple[float, float]:
    """Left and right end of words, in pixels of the narrowest plot."""
    at, width = loss.NARROWEST * row["step"] / STEPS, LETTER_WIDTH * len(row["text"])
    left = (
        at + {"left": loss.SHIFT, "center": -width / 2, "right": -loss.SHIFT - width}[row["side"]]
    )
    return left, left + width


def test_a_lane_of_earlier_settings_is_paler_than_its_own_colour() -> None:
    for dark in (False, True):
        own, pale = (
            styles_of([make("post", earlier=words)], dark)[0] for words in ("", "depth 12")
        )
        assert own.dash == pale.dash
        assert contrast(pale.color, BACKGROUNDS[dark]) < contrast(own.color, BACKGROUNDS[dark])


def test_y_domain_only_widens_and_changes_rarely() -> None:
    rng = np.random.default_rng(0)
    curve = np.exp(np.linspace(np.log(4), np.log(1e-4), 300)) * rng.lognormal(0, 0.2, 300)
    curve[40:80] = 5e3
    domains = [axis([make(steps=300, loss=curve[:n])]) for n in range(301)]
    for (low, high), (lower, higher) in zip(domains, domains[1:], strict=False):
        assert lower <= low and higher >= high
    assert len(set(domains)) <= 12
    assert domains[-1][0] <= curve.min()


def test_the_axis_of_a_long_run_doubles_while_it_goes_on() -> None:
    """As `spanOf` of assets/player/axes.js."""
    short = make("post", steps=100, loss=np.ones(100))
    spans = {n: loss.span([make(steps=3000, loss=np.ones(n)), short]) for n in (0, 375, 376, 1501)}
    assert spans == {0: 375, 375: 375, 376: 750, 1501: 3000}
    assert loss.span([make(steps=600, loss=np.ones(9))]) == 600, "else it would have no trend"
    domains = {
        layer["encoding"]["x"]["scale"]["domain"][1]
        for layer in loss.chart([make(steps=3000, loss=np.ones(376))])["layer"]
        if "scale" in layer["encoding"].get("x", {})
    }
    assert domains == {749.5}


def test_a_lane_that_diverged_does_not_flatten_the_others() -> None:
    sound, lost = make("pre"), make("post", loss=np.full(STEPS, 5e3))
    gone = make("post", loss=np.full(STEPS, 5e3), first_bad=(0, 1))
    assert axis([sound, lost])[1] >= 5e3
    assert axis([sound, gone]) == axis([sound])
    assert axis([gone])[1] >= 5e3  # alone it has an axis for its own losses


@pytest.mark.parametrize(
    ("name", "columns"),
    [("pre", "2 : 4"), ("No norm, depth 12", "2 : 3"), ("Post-LN, warm-up 200, depth 10", "1 : 2")],
)
def test_a_legend_has_only_as_many_columns_as_its_names_leave_room_for(
    name: str, columns: str
) -> None:
    lanes = [make(name=f"{letter}  {name}") for letter in "ABCD"]
    chart = without_data(layers.chart(lanes, "grad_block"))
    assert f'"columns": {{"expr": "container_width < 540 ? {columns}"}}' in chart


def test_different_chances_each_have_a_rule() -> None:
    lanes = [make(), make("post", chance=2.2, floor=None)]
    texts = {r["text"] for r in loss.fixed(lanes, axis(lanes))["levels"]}
    assert texts == {"chance: 3.30", "chance: 2.20", "floor: 1.00"}


# Bars


def test_bars_show_the_last_record_at_or_before_the_cursor() -> None:
    lane = make(probe_steps=range(0, 60, 10), values=falling()[::10])
    data = drawn([lane], 39)["bars"]["datasets"]
    assert [r["value"] for r in data["bars"]] == list(falling()[30, 1:].astype("f4"))
    assert [r["layer"] for r in data["bars"]] == list(range(1, DEPTH + 1))
    assert data["note"] == [{"text": "step 30"}]


def test_a_still_names_the_steps_of_its_bars_as_the_page_does() -> None:
    lanes = [make(), make("post", ran=30, name="B  post")]
    note = layers.rows_at(lanes, "grad_block")["note"]
    assert (
        note == drawn(lanes, 59)["bars"]["datasets"]["note"] == [{"text": "step 59 (B: step 29)"}]
    )
    assert layers.rows_at([make(ran=0)], "grad_block")["note"] == []


def sorted_marks(chart: dict[str, Any]) -> dict[str, list[int]]:
    """The layers at which each kind of mark is."""
    items = list(marks(chart))
    at = {one["x"]: int(one["text"]) for one in items if one["role"] == "axis-label"
          and one["text"].isdigit()}  # fmt: skip
    found: dict[str, list[int]] = {}
    for one in items:
        if one["role"] != "mark" or one["kind"] == "line" or one.get("text", "0") != "0":
            continue
        kind = one.get("shape") or one["kind"]
        middle = one["x"] + one.get("width", 0) / 2
        found.setdefault(kind, []).append(at[min(at, key=lambda x: abs(x - middle))])
        assert (one["fill"] == RED) == (kind == "cross")
    return found


def test_what_bars_cannot_hold_has_a_mark_of_its_own() -> None:
    lane = make()
    lane.recording.steps.layers[5, :, 1:] = [0.0, np.nan, np.inf, 1e-12, 1e6, 0.1]
    chart = drawn([lane], 5)["bars"]
    assert sorted_marks(chart) == {
        "text": [1], "cross": [2, 3], "triangle-down": [4], "triangle-up": [5], "circle": [4, 5, 6],
    }  # fmt: skip
    heights = [one["y"] for one in marks(chart) if one.get("shape") == "circle"]
    ends = [layers.HEIGHT - layers.EDGE, layers.EDGE]
    assert heights[:2] == pytest.approx(ends) and ends[1] < heights[2] < ends[0]


def test_lines_over_the_layers_have_the_same_marks() -> None:
    lane = make(probe="stream_rms", values=np.full((STEPS, DEPTH + 1), 1.0))
    lane.recording.steps.layers[0] = [1.0, 0.0, np.nan, np.inf, 1e-12, 1e310, 0.1]
    found = sorted_marks(layers.chart([lane], "stream_rms"))
    assert (found["text"], found["cross"]) == ([1], [2, 3, 5])  # 1e310 is not finite
    assert found["triangle-down"] == [4]


def test_cosines_are_drawn_as_one_minus() -> None:
    lane = make(probe="token_cosine", values=np.full((STEPS, DEPTH + 1), 1 - 1e-6))
    lane.recording.steps.layers[9, :, 2] = 1.0 + 1e-16 * 4  # rounding: one minus it is not positive
    chart = drawn([lane], 9, probe="token_cosine")["bars"]
    assert chart["datasets"]["bars"][0]["value"] == pytest.approx(1e-6)
    assert sorted_marks(chart)["text"] == [2]


def test_lines_of_layers_leave_out_what_has_no_place_on_the_axis() -> None:
    lane = make(depth=3, values=np.full((STEPS, 4), 0.1))
    lane.recording.steps.layers[4:6, :, 2] = [[0.0], [np.nan]]
    chart = drawn([lane], 9, ChartOptions(view="lines"))["lines"]
    line = [one for one in marks(chart) if one["kind"] == "line" and one["role"] == "mark"]
    assert len(line) == 3 * STEPS - 2


def test_lines_of_layers_have_dots_where_few_steps_were_recorded() -> None:
    lanes = [few(), make("post", steps=400)]
    chart = drawn(lanes, 9, ChartOptions(view="lines"))["lines"]
    dots = [one for one in marks(chart) if one["kind"] == "symbol" and one["role"] == "mark"]
    assert len(dots) == 3 * 4


# Domains


def test_domain_is_whole_decades_over_everything_and_shared() -> None:
    record = PROBES["grad_block"]
    assert domain_of([make(ran=0)]) == Domain(*record.domain)
    domain = domain_of([make(), make("post", values=falling() * 1e-3)])
    assert (domain.lo, domain.hi) == (1e-7, 1.0)
    assert not (domain.below or domain.above or domain.zeros or domain.broken)
    assert domain_of([broken()]).broken
    live = domain_of([make()], live=True)
    assert (live.lo, live.hi) == record.domain and domain_of([make()]) != live


def test_domain_only_grows() -> None:
    walk = 10.0 ** np.cumsum(np.random.default_rng(2).normal(0, 0.3, (STEPS, DEPTH + 1)), axis=0)
    for probe, live in product(KINDS, (False, True)):
        spans = []
        for ran in range(1, STEPS + 1):
            domain = domain_of([make(ran=ran, probe=probe, values=walk[:ran])], probe, live)
            spans.append((domain.lo, domain.hi))
        for (low, high), (lower, higher) in pairwise(spans):
            assert lower <= low and higher >= high


def test_a_live_domain_grows_rarely() -> None:
    """A gradient that falls by five decades rebuilds the charts once or twice."""
    falls = np.logspace(0, -8, STEPS)[:, None] * np.ones(DEPTH + 1)
    lanes = [make(values=falls[:n]) for n in range(1, STEPS + 1)]
    domains = {domain_of([lane], live=True).lo for lane in lanes}
    assert len(domains) <= 3


def test_values_beyond_reach_are_clamped_and_the_legend_says_so() -> None:
    lane = make()
    lane.recording.steps.layers[4, :, 1:3] = [1e30, 1e-30]
    domain = domain_of([lane])
    assert domain.above and domain.below and domain.hi < 1e30
    codes = cells(lane, domain)
    assert (codes[-1, 4], codes[-2, 4]) == (255, LOWEST)
    svg = render(drawn([lane], 4)["heat0"])
    assert "≥1e4" in svg and "≤1e-10" in svg


# Findings


def test_findings_state_numbers() -> None:
    lanes = [make("pre"), broken()]
    assert loss.finding(lanes) == (
        "Loss at step 59 in nats per token: A pre 1.50, chance 3.30. "
        "A none diverged at step 20, layer 4."
    )
    assert "A pre at step 59: 0.158 in layer 1, 0.0005 in layer 6" in layers.finding(
        lanes, "grad_block"
    )
    assert heatmap.finding(lanes[1], "grad_block").endswith(
        "The lane diverged at step 20, layer 4."
    )
    two = [make("pre"), make("post", values=2 * falling())]
    assert "0.5 in layer 1 and 0.5 in layer 6" in ratio.finding(two[0], two[1], "grad_block")
    assert "A pre: layer 1 from 0.316 to 0.158, layer 6 from" in lines.finding(two, "grad_block")
    solved = make(loss=np.full(STEPS, 1e-4))
    assert "go with success" in layers.finding([solved], "grad_block")


def test_a_chance_not_measured_yet_draws_no_rule() -> None:
    lane = make(chance=float("nan"), floor=None)
    assert loss.fixed([lane], axis([lane]))["levels"] == []
    assert "chance" not in loss.finding([lane]) and "<svg" in render(loss.chart([lane]))


def test_findings_of_a_run_that_has_not_begun() -> None:
    empty, probe = make(ran=0), "grad_block"
    for text in (
        loss.finding([empty]),
        layers.finding([empty], probe),
        heatmap.finding(empty, probe),
        lines.finding([empty], probe),
    ):
        assert "yet" in text
    assert "No step" in ratio.finding(empty, make(), probe)


def test_lines_over_the_layers_hold_every_decade_of_growth() -> None:
    grown = 10.0 ** np.linspace(0, 18, DEPTH + 1)[None, :]
    lanes = [make(probe="stream_rms"), make("none", probe="stream_rms", values=grown)]
    chart = layers.chart(lanes, "stream_rms")
    values = [row["value"] for row in rows(chart["datasets"]["bars"]) if row["lane"] == 1]
    assert values == pytest.approx(list(grown[0]))
    assert not {"triangle-up", "triangle-down"} & set(sorted_marks(chart))
    assert "1e" in render(chart)


def test_an_axis_says_what_is_drawn() -> None:
    """One minus the cosine, where charts draw that."""
    assert "1 - token cosine" in render(layers.chart([make(probe="token_cosine")], "token_cosine"))
    assert "1 - " not in render(layers.chart([make(probe="stream_rms")], "stream_rms"))


def test_a_deep_model_has_lines_without_points() -> None:
    lane = make("pre", probe="stream_rms")
    deep = make("pre", probe="stream_rms", depth=77, values=np.full((1, 78), 1.0))
    points = [
        [layer["mark"]["opacity"] for layer in layers.chart([it], "stream_rms")["layer"][1:3]]
        for it in (lane, deep)
    ]
    assert points == [[1, 1], [0, 0]]


def test_points_of_equal_values_stand_round_one_another() -> None:
    chart = drawn([make(), make("post"), make("peri"), make("none")], 9)["bars"]
    points = [one for one in marks(chart) if one.get("shape") == "circle" and one["role"] == "mark"]
    at = [one for one in points if (one["x"], one["y"]) == (points[0]["x"], points[0]["y"])]
    assert [one["fill"] == "transparent" for one in at] == [False, True, True, True]
    assert sorted({one["size"] for one in at}) == [one["size"] for one in at] == [*layers.RINGS]


@pytest.mark.slow
def test_every_chart_keeps_to_the_schema_of_altair() -> None:
    """The product skips this check, to save time."""
    lanes, charts = [make("pre"), make("post")], dict[str, dict[str, Any]]()
    for look in VIEWS[3:]:
        charts |= message(lanes, "grad_block", Sent(), live=False, options=look)["charts"]
    for name, spec in charts.items():
        own = {key: value for key, value in spec.items() if key != "config"}
        assert alt.LayerChart.from_dict(own).layer, name


def test_a_chart_compiles_to_what_altair_makes_of_its_layers() -> None:
    """With data of each layer's own, with data that all share, and with a parameter of one layer."""
    line = named("past").mark_line().encode(x=step_axis(20))
    zoom = alt.selection_interval(name="zoom", bind="scales")
    zoomed = line.properties(name="lines").add_params(zoom)
    for parts in ([line, named("levels").mark_rule()], [line, line.mark_point()], [line, zoomed]):
        ours, theirs = compiled(parts, 100), alt.layer(*parts, height=100).to_dict()
        assert ours["params"][:-1] == theirs.get("params", [])
        assert {key: ours[key] for key in theirs if key not in ("params", "config")} == {
            key: value for key, value in theirs.items() if key not in ("params", "config")
        }


def test_the_finding_of_a_map_of_one_cell() -> None:
    cell = MapCell(0, 0, None, "", "depth 2", "not run yet", "key")
    one = Map("Pre-LN", "depth", "lr", ("2",), ("0.1",), (cell,), (None,), None, None)
    assert finding(one).startswith("Pre-LN: 1 cell, 1 not run yet.")


def test_the_cells_of_a_map_stand_in_their_columns_and_rows() -> None:
    cells = [MapCell(c, r, 1.0, "", f"at {c} {r}", "", "") for r in range(2) for c in range(3)]
    one = Map(
        "Pre-LN", "depth", "lr", ("1", "2", "3"), ("a", "b"), tuple(cells), (0, None, 1), 3.3, None
    )
    sets = map_chart([one])["datasets"]
    assert [(row["left"], row["right"], row["low"], row["high"]) for row in sets["cells0"]] == [
        (c - 0.5, c + 0.5, r - 0.5, r + 0.5) for r in range(2) for c in range(3)
    ]
    assert [row["y"] for row in sets["frontier0"]] == [0.5, 0.5, -0.5, -0.5, 1.5, 1.5]


def test_a_column_without_a_result_has_no_line() -> None:
    """A line below it would say that it was tried and none trains."""
    cells = tuple(MapCell(c, 0, 1.0 if c == 1 else None, "", "", "", "") for c in range(3))
    one = Map("Pre-LN", "depth", "lr", ("1", "2", "3"), ("a",), cells, (None,) * 3, 3.3, None)
    line = map_chart([one])["datasets"]["frontier0"]
    assert [row["y"] for row in line] == [None, None, -0.5, -0.5, None, None]
    assert finding(one).endswith("by depth: 2: none.")
