"""Made-up lanes and readers that the chart tests share."""

from __future__ import annotations

import io
import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import playwright
import vl_convert as vlc
from PIL import Image

from normviz import RunConfig
from normviz.charts import Domain
from normviz.charts.palette import COMPARING, PALETTE
from normviz.player import ChartOptions, Sent, message
from normviz.player.bundle import folder
from normviz.runs import Recording, Steps
from normviz.runs.lane import Lane
from normviz.training.events import Diverged, Started

STEPS, DEPTH = 60, 6
NODE = Path(playwright.__file__).parent / "driver" / "node"
"""Playwright brings its own."""
LOG = Domain(1e-4, 1e1)


def falling() -> np.ndarray:
    """[STEPS, DEPTH+1] made-up values that fall from layer to layer."""
    return 10.0 ** -np.linspace(0, 3, DEPTH + 1) * np.linspace(1, 0.5, STEPS)[:, None]


def make(
    scheme: str = "pre",
    ran: int = STEPS,
    probe: str = "grad_block",
    *,
    steps: int = STEPS,
    depth: int = DEPTH,
    loss: np.ndarray | None = None,
    probe_steps: Sequence[int] | np.ndarray | None = None,
    values: np.ndarray | None = None,
    first_bad: tuple[int, int | None] | None = None,
    chance: float = 3.3,
    floor: float | None = 1.0,
    held_out: np.ndarray | None = None,
    probes: Sequence[str] = (),
    edits: tuple[tuple[int, float], ...] = (),
    name: str = "",
    earlier: str = "",
) -> Lane:
    """A lane with made-up numbers: `values` [m, L+1] at `probe_steps` [m], the same for all of its probes."""
    config = RunConfig(scheme=scheme, depth=depth, steps=steps, lr_edits=edits, batch=1)
    loss = np.linspace(3.5, 1.5, STEPS)[:ran] if loss is None else loss
    values = falling()[:ran] if values is None else values
    at = np.arange(len(values)) if probe_steps is None else np.array(probe_steps, np.int64)
    layers = np.repeat(values[:, None, :], max(1, len(probes)), axis=1)
    nothing = np.zeros(len(loss))
    held_out = np.full(len(loss), np.nan) if held_out is None else held_out
    recorded = Steps(np.arange(len(loss)), loss, nothing, nothing, at, layers, held_out)
    run = Recording(
        config,
        Started(config, "cpu", 1, 1, chance, floor, None),
        "diverged" if first_bad else "finished",
        Diverged(*first_bad, "loss") if first_bad else None,
        probes=tuple(probes) or (probe,),
        steps=recorded,
    )
    return Lane(name or f"A  {scheme}", config, (run,), earlier)


def broken(probe: str = "grad_block") -> Lane:
    """A lane that stops being finite at step 20, in layer 4 and above."""
    lane = make("none", ran=21, probe=probe, first_bad=(20, 4))
    lane.recording.losses[20] = np.nan
    lane.recording.steps.layers[20, :, 4:] = np.nan
    return lane


def few(at: Sequence[int] = (0, 4, 64, 399)) -> Lane:
    """A lane of 400 steps whose layers were recorded at a few of them."""
    curve = np.linspace(3.5, 1.5, 400)
    return make(steps=400, loss=curve, probe_steps=at, values=falling()[: len(at)])


def rows(data: Any) -> list[dict[str, Any]]:
    """Rows of a dataset: columns, or rows already."""
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
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", head + code],
        input=json.dumps(given), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Lanes as the browser has them, and a player without a page, whose menus say 0: no trend.
PLAYER = """
import { cells } from "player/heatmap.js";
import { newLane, quotient, take } from "player/numbers.js";
import { Player } from "player/player.js";
const { message, cursor } = given, { domain, between, sets } = message;
const player = Object.assign(Object.create(Player.prototype), {
  lanes: message.about.map(newLane), domain, between, sets, cursor: { at: cursor }, charts: {},
  find: () => ({ value: "0" }) });
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
    lanes: Sequence[Lane],
    cursor: int,
    look: ChartOptions | None = None,
    probe: str = "grad_block",
    live: bool = False,
) -> dict[str, dict[str, Any]]:
    """Every chart at a step with its rows, as the browser would save it; by the player, in Node."""
    told = message(lanes, probe, Sent(), live=live, options=look or ChartOptions())
    found = in_node(PLAYER + ROWS, {"message": told, "cursor": cursor})
    for name, one in found.items():
        if "cells" in one:
            palette = COMPARING if name == "ratio" else PALETTE
            png = io.BytesIO()
            Image.fromarray(palette[codes(one["cells"])]).save(png, "png")
            url = f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"
            one["sets"]["picture"] = [{"url": url}]
    return {name: {**told["charts"][name], "datasets": one["sets"]} for name, one in found.items()}


def cells(lane: Lane, domain: Domain, probe: str = "grad_block") -> np.ndarray:
    """[rows, columns] codes of a lane's heatmap, by the player, in Node."""
    told = message([lane], probe, Sent(), live=False, options=ChartOptions())
    told["domain"] |= {"lo": domain.lo, "hi": domain.hi, "scale": domain.scale}
    code = "const { codes, ...size } = cells(player.lanes[0], domain);"
    code += "console.log(JSON.stringify({ ...size, codes: [...codes] }));"
    return codes(in_node(PLAYER + code, {"message": told, "cursor": 0}))


def codes(cells: dict[str, Any]) -> np.ndarray:
    return np.array(cells["codes"], np.uint8).reshape(cells["rows"], cells["columns"])


def marks(chart: dict[str, Any], width: int = 500) -> Iterator[dict[str, Any]]:
    """What Vega draws of a chart with its data: every mark's item, with the kind of its mark."""

    def inside(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for item in node.get("items", []):
            if "marktype" in item:
                yield from inside(item)
            else:
                yield {**item, "kind": node["marktype"], "role": node["role"]}
                yield from inside(item)

    yield from inside(vlc.vegalite_to_scenegraph({**whole(chart), "width": width})["scenegraph"])


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
