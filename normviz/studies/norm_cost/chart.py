"""What a norm costs: time as a multiple of LayerNorm's, a variant a row, with its interval.

The grey bands are LayerNorm beside itself: an interval that overlaps its band is not distinguishable from
LayerNorm, and drawn pale. Dashed lines are the savings that are claimed for RMSNorm.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from ...charts.base import TEXT_SIZE, Spec, filled, js, named
from ...charts.palette import GREY, ink, paper
from ...formats import megabytes, timing
from .findings import CLAIMS, PublishedSpeed, interval
from .result import Measurement, Row
from .variants import BOTH, CONTEXTS, FORWARD, PASSES, REFERENCE, VARIANTS

ROW = 40
"""Pixels of a variant."""
LEAST = 0.2
"""Ratios below are drawn at this edge, with a mark that points on: doing nothing costs nothing."""
DOMAIN = (0.82, 1.1)
"""Shown in any case: the claims, and a little of the other side."""
SHAPES = {FORWARD: "circle", BOTH: "diamond"}
OFFSETS = {FORWARD: -8, BOTH: 8}
DASHES = ([8, 3], [6, 3], [3, 3], [1, 3])


def chart(measurement: Measurement, context: str, dark: bool = False) -> Spec:
    """One context's ratios as a whole Vega-Lite dict, with its rows."""
    rows = [row for row in measurement.rows_of(context) if row.variant != REFERENCE]
    domain = _domain(rows)
    sets = {
        "rows": [_row(measurement, row) for row in rows],
        "one": [{"x": 1.0}],
        "claims": [{"x": c.ratio, "claim": i, "words": _claimed(c)} for i, c in enumerate(CLAIMS)],
    }
    passes = [p for p in PASSES if any(row.passes == p for row in rows)]
    marks = [_marks(p, OFFSETS[p] if len(passes) > 1 else 0, domain, dark) for p in passes]
    layers = [*(band for band, *_ in marks), *_lines(context, domain, dark)]
    layers += [mark for _, *rest in marks for mark in rest]
    variants = len({row.variant for row in rows})
    spec = alt.layer(*layers).properties(height=ROW * variants).to_dict()
    return filled(spec, sets)


def _domain(rows: list[Row]) -> tuple[float, float]:
    low = min(min(row.ratio.low for row in rows) * 0.97, DOMAIN[0])
    return max(low, LEAST), max(max(row.ratio.high for row in rows) * 1.03, DOMAIN[1])


def _row(measurement: Measurement, row: Row) -> dict[str, Any]:
    ratio, noise = row.ratio, measurement.noise(row.context, row.passes)
    return {
        "variant": VARIANTS.label(row.variant),
        "passes": row.passes,
        "ratio": max(ratio.median, LEAST),
        "low": max(ratio.low, LEAST),
        "high": max(ratio.high, LEAST),
        "noise_low": max(noise.low, LEAST),
        "noise_high": noise.high,
        "differs": measurement.differs(row),
        "words": (
            f"{VARIANTS.label(row.variant)}, {PASSES[row.passes]}: {interval(ratio)} times "
            f"LayerNorm's time, {timing(row.seconds)}, {row.kernels} kernels, "
            f"{megabytes(row.bytes)}"
        ),
    }


def _claimed(claim: PublishedSpeed) -> str:
    return f"claimed for RMSNorm: {claim.label} ({claim.source})"


def _x(field: str, domain: tuple[float, float]) -> alt.X:
    low, high = domain
    scale = alt.Scale(type="linear", domain=[low, high], nice=False, zero=False)
    ticks = [i / 10 for i in range(61)] if high - low < 0.8 else [i / 4 for i in range(13)]
    if high / low > 3:
        scale = alt.Scale(type="log", domain=[low, high], nice=False)
        ticks = [2.0**i for i in range(-2, 8)]
    axis = alt.Axis(
        title="time as a multiple of LayerNorm's", values=[t for t in ticks if low <= t <= high],
        labelExpr="format(datum.value, '.3~g') + '×'", labelOverlap=True,
    )  # fmt: skip
    return alt.X(f"{field}:Q", scale=scale, axis=axis)


def _lines(context: str, domain: tuple[float, float], dark: bool) -> list[alt.Chart]:
    """LayerNorm's own place, and the claims; one legend for all three charts, on the last."""
    labels = js([claim.label for claim in CLAIMS])
    legend = alt.Legend(
        title="claimed for RMSNorm", orient="bottom", symbolType="stroke", symbolSize=500,
        symbolStrokeWidth=1.5, labelExpr=f"{labels}[datum.value]", labelFontSize=TEXT_SIZE,
        titleFontSize=TEXT_SIZE, titleFontWeight="normal", symbolStrokeColor=ink(dark), columns=1,
    )  # fmt: skip
    dash = alt.StrokeDash(
        "claim:N",
        scale=alt.Scale(domain=[*range(len(CLAIMS))], range=[*DASHES]),
        legend=legend if context == CONTEXTS.keys()[-1] else None,
    )
    x = _x("x", domain)
    return [
        named("one").mark_rule(strokeWidth=1.5, color=ink(dark)).encode(x=x),
        named("claims")
        .mark_rule(strokeWidth=1, color=ink(dark))
        .encode(x=x, strokeDash=dash, tooltip=alt.Tooltip("words:N")),
    ]


def _marks(passes: str, offset: int, domain: tuple[float, float], dark: bool) -> list[alt.Chart]:
    """Of one kind of passes: LayerNorm's band, intervals, and medians."""
    order = [variant.label for variant in VARIANTS if variant.key != REFERENCE]
    y = alt.Y("variant:N", sort=order, axis=alt.Axis(title=None, labelLimit=170, grid=True))
    rows = named("rows").transform_filter(f"datum.passes == '{passes}'")
    pale = alt.condition("datum.differs", alt.value(1.0), alt.value(0.5))
    band = rows.mark_rule(strokeWidth=13, yOffset=offset, color=GREY, opacity=0.35)
    bar = rows.mark_rule(strokeWidth=2.5, yOffset=offset, color=ink(dark))
    point = rows.mark_point(
        shape=SHAPES[passes], size=70, yOffset=offset, filled=True, strokeWidth=2,
        fill=paper(dark) if passes == FORWARD else ink(dark), stroke=ink(dark),
    )  # fmt: skip
    return [
        band.encode(x=_x("noise_low", domain), x2=alt.X2("noise_high:Q"), y=y),
        bar.encode(x=_x("low", domain), x2=alt.X2("high:Q"), y=y, opacity=pale),
        point.encode(x=_x("ratio", domain), y=y, opacity=pale, tooltip=alt.Tooltip("words:N")),
    ]
