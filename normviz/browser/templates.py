"""The charts of lanes whose numbers are not known yet: what `specs` makes, with marks in their place.

A browser that trains by itself puts its numbers in (`assets/player/axes.js`). So a live page has the charts
of the app, and none of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .. import charts
from ..catalog import FAMILIES, PROBES, TASKS
from ..catalog.probes import ROUNDING, recorded_by
from ..charts.palette import COMPARING, PALETTE, LaneStyle, lane_styles
from ..charts.scale import Domain
from ..player.message import CARRIED, choices, coded

LOW, HIGH = 0.00012345, 67890.5
STEPS = 777777
TICK = 31337.25
LABELS = ("@label0@", "@label1@")
STYLES = (LaneStyle("@color0@", (90001, 1)), LaneStyle("@color1@", (90002, 1)))
"""Marks: each is a text that occurs nowhere else in a chart."""


class MarkedDomain(Domain):
    """An axis with marks in place of its ends and its ticks."""

    def ticks(self, most: int = 6) -> list[float]:
        """The mark of all ticks."""
        return [TICK]


def templates(depths: Sequence[int], schemes: Sequence[str]) -> dict[str, Any]:
    """All that a browser needs beside the numbers to draw two lanes of these depths and placements: the
    charts with marks, the marks, the quantities, the palettes, and the styles of each pair."""
    log, linear = MarkedDomain(LOW, HIGH), MarkedDomain(LOW, HIGH, "linear")
    specs: dict[str, Any] = {}
    for linear_loss in (False, True):
        specs[f"loss {'linear' if linear_loss else 'log'}"] = charts.loss.spec(
            STYLES, LABELS, STEPS, (LOW, HIGH), linear=linear_loss
        )
    for domain in (log, linear):
        specs[f"lines {domain.scale}"] = charts.lines.spec(
            STYLES, LABELS, "grad_block", STEPS, domain
        )
        for depth in depths:
            for probe in ("grad_block", "stream_rms"):
                key = f"{domain.scale} {PROBES[probe].first_layer} {depth}"
                specs[f"bars {key}"] = _titled(
                    charts.layers.spec(STYLES, LABELS, probe, depth, domain), probe
                )
                specs[f"heat {key}"] = charts.heatmap.spec(
                    STYLES[0], LABELS[0], probe, depth, STEPS, domain
                )
                if domain is log:
                    specs[f"ratio {key}"] = charts.heatmap.spec(
                        charts.ratio.style(False),
                        LABELS[0],
                        probe,
                        depth,
                        STEPS,
                        domain,
                        comparing=True,
                    )
    theme = charts.theme(False)
    for name, spec in specs.items():
        specs[name] = json.dumps({**spec, "config": {**spec["config"], **theme}})
    probes = [PROBES[key] for key in recorded_by("one")]
    legend = json.loads(specs["lines log"])["layer"][0]["encoding"]["color"]["legend"]
    columns, per = charts.heatmap.grid(STEPS, charts.heatmap.MOST_COLUMNS)
    return {
        "charts": specs,
        "marks": {
            "low": json.dumps(LOW), "high": json.dumps(HIGH), "steps": json.dumps(STEPS - 0.5),
            "columns": json.dumps(columns * per - 0.5), "ticks": json.dumps([TICK]),
            "loss_ticks": json.dumps(charts.loss.ticks((LOW, HIGH))),
            "labels": LABELS, "colors": [s.color for s in STYLES],
            "dashes": [json.dumps([*s.dash]) for s in STYLES],
            "tick_label": json.dumps(charts.base.tick_label(log))[1:-1],
            "title": PROBES["grad_block"].axis_label,
            "columns_of_legend": legend["columns"]["expr"],
            "legend_limit": '"labelLimit": ' + str(legend["labelLimit"]),
        },
        "probes": [
            {
                "key": p.key, "first": p.first_layer, "shown": p.shown, "scale": p.scale,
                "domain": p.domain, "axis_label": p.axis_label, "title": p.title,
                "rounds_with": p.rounds_with,
            }
            for p in probes
        ],
        "choices": choices([p.key for p in probes]),
        "about": {"row": FAMILIES["decoder"].rows, "unit": TASKS["markov"].unit, "walks": True},
        "rounding": ROUNDING, "carried": CARRIED,
        "palette": coded(PALETTE), "comparing": coded(COMPARING),
        "styles": {
            f"{a} {b}": [[s.color, [*s.dash] or [1, 0]] for s in lane_styles((a, b))]
            for a in schemes for b in schemes
        },
    }  # fmt: skip


def _titled(spec: charts.base.Spec, probe: str) -> charts.base.Spec:
    """The chart with the mark of a title in place of the probe's own."""
    text = json.dumps(spec).replace(
        json.dumps(PROBES[probe].axis_label), json.dumps(PROBES["grad_block"].axis_label)
    )
    return json.loads(text)
