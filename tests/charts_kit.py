"""Made-up lanes and readers that the chart tests share."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import vl_convert as vlc

from normviz.catalog.probes import PROBES
from normviz.charts import Domain
from normviz.frames import LaneFrame

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


def rows(data: Any) -> list[dict[str, Any]]:
    """Rows of a dataset: Arrow bytes, columns, or rows already."""
    if isinstance(data, bytes):
        return pa.ipc.open_stream(data).read_all().to_pylist()
    if isinstance(data, list):
        return data
    columns = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def without_data(chart: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in chart.items() if k != "datasets"})


def render(chart: dict[str, Any]) -> str:
    """SVG of a chart with its data, as text. Vega's own compiler checks the spec."""

    def plain(value: Any) -> Any:
        return value if not isinstance(value, float) or np.isfinite(value) else None

    sets = {
        name: [{k: plain(v) for k, v in row.items()} for row in rows(data)]
        for name, data in chart["datasets"].items()
    }
    return vlc.vegalite_to_svg({**chart, "datasets": sets, "width": 500})
