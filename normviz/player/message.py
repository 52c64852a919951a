"""What travels to a browser: numbers that it does not have yet, and charts where they changed.

Numbers go as base64 of little-endian float32. The browser cuts curves at the cursor, colours the
heatmap and picks the bars itself: moving the cursor asks the server for nothing. Whatever depends
on the numbers but not on the cursor (axes, words, peaks) is made here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import charts
from ..catalog import PROBES
from ..charts.heatmap_data import PALETTE
from ..charts.scale import shown
from ..frames import LaneFrame

Have = tuple[int, int]
"""Of one lane: losses and layer records that the browser has."""


@dataclass
class Sent:
    """What one browser was sent: so much of each lane, and which charts."""

    have: list[Have] = field(default_factory=list)
    charts: object = None


def message(lanes: Sequence[LaneFrame], sent: Sent, *, live: bool, dark: bool) -> dict[str, Any]:
    """What a browser lacks to show `lanes`, as a JSON object; `sent` is brought up to date.

    `live` says that steps will follow: axes then keep room for them. All lanes hold one probe.
    """
    record = PROBES[lanes[0].probe]
    domain = charts.quantised_domain(record, lanes, live=live)
    loss_domain = charts.loss.y_domain(lanes)
    if len(sent.have) != len(lanes):
        sent.have = [(0, 0)] * len(lanes)
    out: dict[str, Any] = {
        "live": live,
        "lanes": [_fresh(lane, have) for lane, have in zip(lanes, sent.have, strict=True)],
        "sets": {
            "loss": charts.loss.fixed(lanes, loss_domain),
            **{f"heat{i}": charts.heatmap.fixed(lane) for i, lane in enumerate(lanes)},
        },
    }
    known = (record.key, domain, loss_domain, dark, tuple(_identity(lane) for lane in lanes))
    if known != sent.charts:
        out |= _charts(lanes, domain, loss_domain, dark)
    if not live:
        out["findings"] = {
            "loss": charts.loss.finding(lanes),
            "bars": charts.bars.finding(lanes),
            **{f"heat{i}": charts.heatmap.finding(lane) for i, lane in enumerate(lanes)},
        }
    sent.have = [(len(lane.loss), len(lane.probe_steps)) for lane in lanes]
    sent.charts = known
    return out


def _identity(lane: LaneFrame) -> tuple[object, ...]:
    return lane.label, lane.scheme, lane.depth, lane.steps


def _fresh(lane: LaneFrame, have: Have) -> dict[str, Any]:
    """The numbers of a lane beyond those that the browser has."""
    losses, records = have
    return {
        "from": [losses, records],
        "loss": packed(lane.loss[losses:]),
        "records": lane.probe_steps[records:].tolist(),
        "values": packed(shown(lane)[records:]),
        "bad": charts.words.first_bad(lane),
    }


def _charts(
    lanes: Sequence[LaneFrame],
    domain: charts.Domain,
    loss_domain: tuple[float, float],
    dark: bool,
) -> dict[str, Any]:
    """All charts, and what is constant about the lanes."""
    styles = charts.lane_styles(tuple(lane.scheme for lane in lanes))
    labels = tuple(lane.label for lane in lanes)
    steps, depth = max(lane.steps for lane in lanes), max(lane.depth for lane in lanes)
    probe = PROBES[lanes[0].probe]
    specs = {
        "loss": charts.loss.spec(styles, labels, steps, loss_domain, dark),
        "bars": charts.bars.spec(styles, labels, probe.key, depth, domain, dark),
        **{
            f"heat{i}": charts.heatmap.spec(
                style, lane.label, probe.key, lane.depth, lane.steps, domain, dark
            )
            for i, (lane, style) in enumerate(zip(lanes, styles, strict=True))
        },
    }
    return {
        "probe": probe.key,
        "domain": {**asdict(domain), "loss": loss_domain},
        "about": [
            {
                "name": charts.words.name(lane),
                "short": charts.words.short(lane),
                "color": style.color,
                "depth": lane.depth,
                "steps": lane.steps,
                "first": probe.first_layer,
            }
            for lane, style in zip(lanes, styles, strict=True)
        ],
        "probes": choices(PROBES.keys()),
        "palette": b64encode(PALETTE.astype(np.uint8).tobytes()).decode("ascii"),
        "charts": {
            name: {**spec, "config": {**spec["config"], **charts.look(dark)}}
            for name, spec in specs.items()
        },
    }


def choices(keys: Sequence[str]) -> list[dict[str, str]]:
    """The probes that a browser may ask for, with their words."""
    records = [PROBES[key] for key in keys]
    return [
        {"key": r.key, "label": r.label, "definition": r.definition, "source": r.source}
        for r in records
    ]


def packed(values: NDArray[np.float64]) -> str:
    """Base64 of the numbers as little-endian float32, row by row; NaN and infinity survive."""
    with np.errstate(over="ignore"):
        return b64encode(values.astype("<f4").tobytes()).decode("ascii")
