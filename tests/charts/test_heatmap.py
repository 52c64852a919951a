"""The heatmap: right way up, nothing lost, columns that stay, colours that match the legend."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import vl_convert as vlc
from charts_kit import (
    DEPTH,
    LOG,
    STEPS,
    broken,
    cells,
    codes,
    drawn,
    few,
    in_node,
    make,
    without_data,
)

from normviz.charts import heatmap, styles_of
from normviz.charts.palette import BROKEN, EMPTY, LEVELS, LOWEST, PALETTE, RED, ZERO, ramp, rgb
from normviz.runs.lane import Lane

PAINT = """
import { paint } from "player/heatmap.js";
globalThis.ImageData = class { constructor(w, h) { this.data = new Uint8Array(4 * w * h); } };
let image, canvas = { getContext: () => ({ putImageData: (it) => { image = it; } }) };
const { lane, domain, palette } = given;
paint(canvas, lane, domain, Uint8Array.from(palette));
console.log(JSON.stringify({ data: [...image.data], size: [canvas.height, canvas.width] }));
"""


def image(lane: Lane) -> np.ndarray:
    """[rows, columns, 4] pixels of the picture that the browser paints."""
    run, layers = lane.recording, lane.recording.layers("grad_block")
    told = {
        "about": {"first": 1, "depth": run.depth, "steps": run.total},
        "loss": [0] * len(run.losses),
        "records": layers.step.tolist(),
        "values": [
            [None if not np.isfinite(v) else v for v in row] for row in layers.drawn.tolist()
        ],
    }
    domain = {"lo": LOG.lo, "hi": LOG.hi, "scale": "log"}
    given = {"lane": told, "domain": domain, "palette": PALETTE.ravel().tolist()}
    found = in_node(PAINT, given)
    return np.array(found["data"], np.uint8).reshape(*found["size"], 4)


def test_the_bottom_row_is_the_lowest_layer_and_time_runs_right() -> None:
    values = np.full((STEPS, DEPTH + 1), 1e-4)
    values[:, 0], values[-1, -1] = 1e1, 1e-2
    codes = cells(make(probe="grad_hidden", values=values), LOG, "grad_hidden")
    assert codes.shape == (DEPTH + 1, STEPS)
    assert set(codes[-1]) == {255} and set(codes[0, :-1]) == {LOWEST}
    assert LOWEST < codes[0, -1] < 255


def test_cells_that_are_not_finite_are_red_and_zeros_grey() -> None:
    lane = broken()
    lane.recording.steps.layers[7, :, 2] = 0.0
    codes = cells(lane, LOG)
    pixels = image(lane)
    assert [tuple(p[:3]) for p in pixels[: DEPTH - 3, 20]] == [rgb(RED)] * (DEPTH - 3)
    assert codes[DEPTH - 2, 7] == ZERO
    assert (pixels[:, 21:, 3] == 0).all() and (pixels[:, :21, 3] == 255).all()
    assert (codes == BROKEN).sum() == np.isnan(lane.recording.values("grad_block")[:, 1:]).sum()


@pytest.mark.slow
def test_no_bad_cell_is_lost_in_a_long_and_deep_run() -> None:
    steps, depth = 3000, 600
    values = np.full((steps, depth + 1), 0.1)
    values[1237, 333] = np.nan
    lane = make(steps=steps, depth=depth, values=values)
    codes = cells(lane, LOG)
    assert max(codes.shape) <= 256
    assert (codes == BROKEN).sum() == 1 and not (codes == EMPTY).any()


def test_what_was_not_recorded_is_empty_and_the_title_says_so() -> None:
    """A map's cell has four records in 400 steps: they don't speak for the steps between them."""
    found = cells(few(), LOG)
    assert np.flatnonzero((found != EMPTY).all(axis=0)).tolist() == [0, 1, 2, 32, 199]
    assert np.flatnonzero((found == EMPTY).all(axis=0)).size == 195
    charts = drawn([few(), make("post", steps=400)], 9)
    words = [charts[name]["title"]["subtitle"] for name in ("heat0", "heat1")]
    assert [text.endswith("empty: not recorded") for text in words] == [True, False]
    assert "layers 1 to 6, 4 of the steps 0 to 399: lowest" in heatmap.finding(few(), "grad_block")


# Cuts a lane where it ends after some steps, and takes its cells.
CUT = """
import { cells } from "player/heatmap.js";
const found = given.ends.map((ran) => {
  const n = given.records.findIndex((step) => step >= ran), m = n < 0 ? given.records.length : n;
  const { codes, ...size } = cells({ about: given.about, loss: Array(ran).fill(1),
    records: given.records.slice(0, m), values: given.values.slice(0, m) }, given.domain);
  return { ...size, codes: [...codes] };
});
console.log(JSON.stringify(found));
"""


@pytest.mark.parametrize("every", [1, 16])
def test_drawn_columns_never_change_as_steps_arrive(every: int) -> None:
    steps = 700
    rng = np.random.default_rng(1)
    values = rng.lognormal(-2, 1, (steps, DEPTH + 1))
    at, ends = np.arange(0, steps, every), [*range(0, steps + 1, 7)]
    given = {
        "about": {"first": 0, "depth": DEPTH, "steps": steps},
        "domain": {"lo": LOG.lo, "hi": LOG.hi, "scale": "log"},
        "records": at.tolist(), "values": values[at].tolist(), "ends": ends,
    }  # fmt: skip
    before = None
    for ran, found in zip(ends, in_node(CUT, given), strict=True):
        now = codes(found)
        if before is not None:
            whole = max(0, (ran - 7 - every) // 3)  # steps a column: 3; the last may still change
            assert (now[:, :whole] == before[:, :whole]).all()
        before = now
    assert before is not None and not (before == EMPTY).any()


@pytest.mark.slow
def test_legend_and_picture_have_the_same_colours() -> None:
    values = np.full((STEPS, DEPTH + 1), 1.0)
    exponents = np.linspace(-4, 1, STEPS)
    values[:, 1] = 10.0**exponents
    lane = make(values=values)
    drawn = image(lane)[-1, :, :3].astype(int)
    (style,) = styles_of([lane])
    chart = heatmap.spec(style, lane.label, "grad_block", DEPTH, STEPS, LOG)
    (scale,) = re.findall(r'"color": (\{.*?"scale": \{[^{}]*\})', without_data(chart))[-1:]
    color = json.loads(re.search(r'"scale": (\{[^{}]*\})', scale)[1])
    table = [{"i": i, "v": 10.0**e} for i, e in enumerate(exponents)]
    probe = {
        "data": {"values": table},
        "mark": "rect",
        "encoding": {
            "x": {"field": "i", "type": "ordinal"},
            "color": {"field": "v", "type": "quantitative", "scale": color},
        },
    }
    marks = re.findall(
        r'roledescription="rect mark"[^>]*fill="rgb\(([^)]*)\)', vlc.vegalite_to_svg(probe)
    )
    legend = np.array([[int(c) for c in mark.split(",")] for mark in marks])
    # 253 levels: half a level is less than 2 of 255 in any channel.
    assert len(legend) == STEPS and abs(legend - drawn).max() <= 2


def test_ramp_spans_the_palette() -> None:
    assert (PALETTE[LOWEST:, :3] == ramp(LEVELS)).all()
    assert tuple(PALETTE[BROKEN]) == (*rgb(RED), 255) and PALETTE[EMPTY, 3] == 0
