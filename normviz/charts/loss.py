"""Loss curves of all lanes on one log axis, with the losses of chance and of the task's floor for comparison.

Curves are solid before the cursor and faint after it. Held-out losses are a thin line with points.
Divergence, and losses above the axis, are drawn. The axis changes in tiers, so that a spike or a solved task
changes the chart only a few times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, floor, isfinite, log10
from typing import Any

import altair as alt
import numpy as np

from normviz import formats
from normviz.runs import Recording
from normviz.runs.lane import Lane, diverged, divergences, units

from .base import (
    CONTAINER_WIDTH,
    TEXT_SIZE,
    Column,
    Columns,
    Rows,
    Spec,
    compiled,
    halo,
    js,
    named,
    rows,
    step_axis,
)
from .palette import (
    AXIS_WIDTH,
    LETTER_WIDTH,
    RED,
    LaneStyle,
    ink,
    lane_color,
    lane_dash,
    paper,
    styles_of,
)
from .scale import Floats

ZOOM = "loss_zoom"  # assets/player/chart.js keeps its signals when the axes grow
HEIGHT = 234  # pixels of the plot
NAMED = 380
"""Pixels of the page's place; in a narrower one a line's end has the lane's letter alone."""
NAME_LINE, NAME_LETTERS = 14, 15  # pixels of a name's height, and the most letters of one
LONG, TREND = 300, 0.9
"""As in assets/player/draw.js: steps above which it draws a trend, and the weight of a step away."""
ROW_HEIGHT, TOP_ROW = 16, 8  # pixels: words about events are below one another
RATE_ROWS = 2  # those about learning rates are in so many at most: chance stands below them
FINITE_LOSS = "isNumber(datum.loss) && isFinite(datum.loss)"
SHIFT = 8  # pixels between words and what they are beside
NARROWEST = NAMED - AXIS_WIDTH - (SHIFT + (LETTER_WIDTH + 2) * NAME_LETTERS)
"""Pixels of the steps beside the longest names, in the narrowest place that has names."""
SMALLEST = 290 - AXIS_WIDTH - (SHIFT + LETTER_WIDTH + 2)
"""Those beside letters, on the smallest phone."""
HAS_LETTERS = f"{CONTAINER_WIDTH} > 0 && {CONTAINER_WIDTH} < {NAMED}"


def chart(lanes: Sequence[Lane], dark: bool = False, linear: bool = False) -> Spec:
    """The loss chart at the last step, with its rows: a whole Vega-Lite dict."""
    runs = [lane.recording for lane in lanes]
    domain = y_domain(runs)
    if linear:
        domain = (0.0, domain[1])
    styles = styles_of(lanes, dark)
    labels = tuple(lane.label for lane in lanes)
    steps = span(lanes)
    curves = rows(_curves(runs))
    last = max((len(run.losses) for run in runs), default=0) - 1
    cursor = [{"step": last}] if last >= 0 else []
    sets = {"past": curves, "ahead": curves, "cursor": cursor, **_seed_rows(lanes)}
    constant = spec(styles, labels, steps, domain, dark, linear)
    return {**constant, "datasets": {**sets, **fixed(lanes, domain)}}


def _seed_rows(lanes: Sequence[Lane]) -> dict[str, Rows]:
    """The curves of a lane's other seeds, and the lowest and highest loss at each step that all have run."""
    seeds, band = Rows(), Rows()
    for i, lane in enumerate(lanes):
        curves = [run.losses for run in lane.repeats]
        for seed, curve in enumerate(curves[1:], start=1):
            steps = np.arange(len(curve))
            columns = {
                "step": steps,
                "loss": curve,
                "lane": steps * 0 + i,
                "seed": steps * 0 + seed,
            }
            seeds += rows(columns)
        every = np.array([curve[: min(map(len, curves))] for curve in curves])
        if every.size:
            low, high = every.min(0), every.max(0)
            steps = np.arange(len(low))
            band += rows({"step": steps, "loss": low, "highest": high, "lane": steps * 0 + i})
    return {"seeds": seeds, "band": band}


def _curves(runs: Sequence[Recording]) -> Columns:
    """Every loss as it was measured."""
    counts = [len(run.losses) for run in runs]
    return {
        "step": np.concatenate([np.empty(0, np.int64), *map(np.arange, counts)]),
        "loss": np.concatenate([np.empty(0), *(run.losses for run in runs)]),
        "lane": np.repeat(np.arange(len(runs)), counts),
    }


def fixed(lanes: Sequence[Lane], domain: tuple[float, float]) -> dict[str, Rows]:
    """The datasets that the cursor does not change: chance and floor, held-out losses, changes of the
    learning rate, the highest losses above the axis, and where lanes diverged."""
    runs, steps = [lane.recording for lane in lanes], span(lanes)
    peaks = _peak_rows(runs, steps, domain[1])
    row = len(peaks["text"]) + bool(len(peaks["text"]))
    rates, used = _rate_rows(lanes, steps, row)
    sets = {
        "levels": _level_rows(lanes, steps, domain),
        "held_out": _held_out_rows(runs),
        "rates": rates,
        "peaks": peaks,
        "bad": _bad_rows(lanes, steps, domain, first_row=row + used),
    }
    return {name: rows(columns) for name, columns in sets.items()}


def spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    steps: int,
    domain: tuple[float, float],
    dark: bool = False,
    linear: bool = False,
    unit: str = "nats per token",
) -> Spec:
    """Vega-Lite dict of the loss chart without its data; a shallow copy of a cached one."""
    return dict(_spec(styles, labels, steps, domain, dark, linear, unit))


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    steps: int,
    domain: tuple[float, float],
    dark: bool,
    linear: bool,
    unit: str,
) -> Spec:
    room = _room(labels)
    x = step_axis(steps, room=room)
    scale = alt.Scale(type="linear" if linear else "log", domain=list(domain), nice=False)
    axis = alt.Axis(title=f"loss ({unit})", format=".4~g")
    if not linear:
        axis.values = ticks(domain)
    y = alt.Y("loss:Q", scale=scale, axis=axis)
    line = {
        "x": x,
        "y": y,
        "color": lane_color(styles),
        "strokeDash": lane_dash(styles),
    }
    past = _losses("past", domain).mark_line(clip=True, strokeWidth=2.2).encode(**line)
    layers = [
        named("levels")
        .mark_rule(clip=True, strokeDash=[5, 4], color=ink(dark))
        .encode(y=y, x=alt.XValue(0), x2=alt.X2Value(alt.ExprRef(f"width - {room}"))),
        _cursor(x, ink(dark)),
        *_seeds(line, domain),
        _losses("ahead", domain).mark_line(clip=True, strokeWidth=1.5, opacity=0.3).encode(**line),
        past.properties(name="loss_lines").add_params(_zoom()),
        *_held_out(line, domain, paper(dark)),
        _heads(domain)
        .mark_point(clip=True, filled=True, size=70, opacity=1)
        .encode(x=x, y=y, color=line["color"]),
        *_level_words(y, room, dark),
        *_rates(x, dark),
        *_above(x, line["color"], domain[1], dark),
        *_bad(x, y, dark),
        *_names(x, y, line["color"], labels, steps, domain, linear, dark),
    ]
    return compiled(layers, HEIGHT)


def _losses(dataset: str, domain: tuple[float, float]) -> alt.Chart:
    """Rows of losses. A loss of zero has no logarithm: it lies on the lower edge."""
    return named(dataset).transform_calculate(loss=_on_edge("loss", domain))


def _on_edge(field: str, domain: tuple[float, float]) -> str:
    return f"isValid(datum.{field}) ? max(datum.{field}, {js(domain[0])}) : null"


def _heads(domain: tuple[float, float]) -> alt.Chart:
    """The last finite point of each lane up to the cursor."""
    finite = _losses("past", domain).transform_filter(FINITE_LOSS)
    ends = finite.transform_aggregate(last="argmax(step)", groupby=["lane"])
    return ends.transform_calculate(step="datum.last.step", loss="datum.last.loss")


def _seeds(line: dict[str, Any], domain: tuple[float, float]) -> list[alt.Chart]:
    """The same settings from other seeds: a thin line each, and a band over their range."""
    place = {name: line[name] for name in ("x", "y", "color")}
    band = _losses("band", domain).transform_calculate(highest=_on_edge("highest", domain))
    area = band.mark_area(clip=True, opacity=0.15)
    thin = _losses("seeds", domain).mark_line(clip=True, strokeWidth=0.8, opacity=0.5)
    return [
        area.encode(**place, y2=alt.Y2("highest:Q")),
        thin.encode(**place, detail=alt.Detail("seed:N")),
    ]


def _held_out(line: dict[str, Any], domain: tuple[float, float], fill: str) -> list[alt.Chart]:
    """The held-out losses of each lane: a thin line with a point a measurement."""
    place = {name: line[name] for name in ("x", "y", "color")}
    at = _losses("held_out", domain).transform_filter(FINITE_LOSS)
    thin = at.mark_line(clip=True, strokeWidth=1)
    points = at.mark_point(clip=True, size=20, opacity=1, fill=fill)
    return [thin.encode(**place), points.encode(**place)]


def _zoom() -> alt.Parameter:
    """Drag to move, ctrl + wheel to zoom, double click to reset.

    A plain wheel and a finger keep scrolling the page.
    """
    return alt.selection_interval(
        name=ZOOM,
        bind="scales",
        translate="[pointerdown[event.pointerType === 'mouse'], window:pointerup]"
        " > window:pointermove!",
        zoom="wheel![event.ctrlKey || event.metaKey]",
    )


def _name_expression(label: str) -> str:
    """Vega expression: what stands at a lane's line of "A Post-LN, depth 12": "A Post-LN", or "A". Of "A Own:
    in + out" it is "A Own"."""
    words = f"truncate(split(split(split({label}, ', ')[0], ' (')[0], ': ')[0], {NAME_LETTERS})"
    return f"{HAS_LETTERS} ? split({label}, ' ')[0] : {words}"


def _room(labels: tuple[str, ...]) -> str:
    """Vega expression: pixels beside the lines' ends for the longest name."""
    longest = ", ".join(
        f"length({_name_expression(js(' '.join(label.split())))})" for label in labels
    )
    return f"({SHIFT} + {LETTER_WIDTH + 2} * max({longest}))"


def _names(
    x: alt.X,
    y: alt.Y,
    color: alt.Color,
    labels: tuple[str, ...],
    steps: int,
    domain: tuple[float, float],
    linear: bool,
    dark: bool,
) -> list[alt.Chart]:
    """The name of each lane at the end of its line, moved down or up as far as others need.

    The line ends there amid its noise: at the geometric mean of its last steps, which is where the player's
    trend ends.
    """
    low, high = map(js, domain)
    weight = f"({js(max(steps, 1) - 0.5)} > {LONG} ? {TREND} : 0.5)"
    share = f"(datum.loss - {high}) / ({low} - {high})"
    if not linear:
        share = f"log(datum.loss / {high}) / log({low} / {high})"
    ends = (
        named("ahead")
        .transform_filter(FINITE_LOSS)
        .transform_joinaggregate(last="max(step)", groupby=["lane"])
        .transform_calculate(share=f"pow({weight}, datum.last - datum.step)")
        .transform_calculate(
            log=f"datum.share * log(clamp(datum.loss, max({low}, {LEAST}), {high}))"
        )
        .transform_aggregate(sum="sum(log)", of="sum(share)", step="max(step)", groupby=["lane"])
        .transform_calculate(loss="exp(datum.sum / datum.of)")
        .transform_calculate(at=f"{HEIGHT} * {share}")
        .transform_window(row="row_number()", sort=[{"field": "at"}, {"field": "lane"}])
        .transform_calculate(start=f"datum.at - {NAME_LINE} * datum.row")
        .transform_window(lowest="max(start)", sort=[{"field": "row"}])
        .transform_joinaggregate(rows="count()")
        .transform_calculate(
            shift=f"min(datum.lowest + {NAME_LINE} * datum.row, {HEIGHT - NAME_LINE / 2}"
            f" - {NAME_LINE} * (datum.rows - datum.row)) - datum.at",
            name=_name_expression(
                f"{js([' '.join(label.split()) for label in labels])}[datum.lane]"
            ),
        )
        .encode(x=x, y=y, text="name:N")
    )
    inside = (
        "inrange(scale('x', datum.step), range('x')) && inrange(scale('y', datum.loss), range('y'))"
    )
    place: dict[str, Any] = {
        "align": "left",
        "baseline": "middle",
        "dx": SHIFT,
        "dy": alt.ExprRef("datum.shift"),
        "fontSize": TEXT_SIZE,
        "fontWeight": "bold",
        "opacity": alt.ExprRef(f"{inside} ? 1 : 0"),  # of a part that is enlarged
    }
    return [
        ends.mark_text(**place, **halo(paper(dark))),
        ends.mark_text(**place).encode(color=color),
    ]


def _level_words(y: alt.Y, room: str, dark: bool) -> list[alt.Chart]:
    """The names of chance and floor at one end of their rules, legible over curves."""
    at = (
        named("levels")
        .transform_calculate(
            text=f"{HAS_LETTERS} ? datum.short : datum.text",
            left=f"{HAS_LETTERS} ? datum.short_left : datum.left",
        )
        .encode(x=alt.XValue(0), y=y, text=alt.Text("text:N"))
    )
    words = []
    for side, baseline, dy in (("!datum.under", "bottom", -3), ("datum.under", "top", 4)):
        place: dict[str, Any] = {
            "align": alt.ExprRef("datum.left ? 'left' : 'right'"),
            "dx": alt.ExprRef(f"datum.left ? {SHIFT} : width - {room} - {SHIFT}"),
            "baseline": baseline,
            "dy": dy,
            "fontSize": TEXT_SIZE,
        }
        names = at.transform_filter(side)
        words += [
            names.mark_text(**place, clip=True, **halo(paper(dark))),
            names.mark_text(**place, clip=True, color=ink(dark)),
        ]
    return words


def _cursor(x: alt.X, color: str) -> alt.Chart:
    return named("cursor").mark_rule(clip=True, strokeWidth=1, color=color, opacity=0.7).encode(x=x)


def _rates(x: alt.X, dark: bool) -> list[alt.Chart]:
    """A rule where the learning rate was changed, and the rate beside its upper end."""
    color = ink(dark)
    rule = named("rates").mark_rule(clip=True, strokeDash=[2, 3], color=color, opacity=0.7)
    return [rule.encode(x=x), *_words("rates", x, alt.ColorValue(color), dark)]


def _above(x: alt.X, color: alt.Color, top: float, dark: bool) -> list[alt.Chart]:
    """Triangles at the upper edge where the loss is above the axis; the peaks in words."""
    above = named("ahead").transform_filter(f"{FINITE_LOSS} && datum.loss > {js(top)}")
    mark = above.mark_point(clip=True, filled=True, shape="triangle-up", size=60, opacity=1)
    return [mark.encode(x=x, y=alt.YValue(8), color=color), *_words("peaks", x, color, dark)]


def _bad(x: alt.X, y: alt.Y, dark: bool) -> list[alt.Chart]:
    """A red rule and cross where a lane diverged, and the words beside it."""
    at = named("bad").encode(x=x)
    rule = at.mark_rule(clip=True, strokeDash=[2, 2], color=RED)
    cross = at.mark_point(
        clip=True, shape="cross", angle=45, filled=True, size=130, color=RED, opacity=1
    ).encode(y=y)
    return [rule, cross, *_words("bad", x, alt.ColorValue(RED), dark)]


def _words(
    dataset: str, x: alt.X, color: alt.Color | alt.ColorValue, dark: bool
) -> list[alt.Chart]:
    """The dataset's words beside their steps, in pixel rows of their own, legible over curves."""
    at = named(dataset).encode(
        x=x, y=alt.Y("row:Q", scale=None, axis=None), text=alt.Text("text:N")
    )
    place: dict[str, Any] = {
        "align": alt.ExprRef("datum.side"),
        "dx": alt.ExprRef(f"{{left: {SHIFT}, center: 0, right: {-SHIFT}}}[datum.side]"),
        "baseline": "middle",
        "fontSize": TEXT_SIZE,
        "clip": True,
    }
    return [
        at.mark_text(**place, **halo(paper(dark))),
        at.mark_text(**place).encode(color=color),
    ]


def _level_rows(lanes: Sequence[Lane], steps: int, domain: tuple[float, float]) -> Columns:
    """Chance and floor of all lanes, and whether the words are under the line: the floor's are, where the
    axis has room for them and no curve is in their way. They are at the left, or left out, where they would
    reach the name of a lane that has run a part of the axis' steps; `short` where a lane's name is its
    letter."""
    runs = [lane.recording for lane in lanes]
    known = [run.chance for run in runs if isfinite(run.chance)]
    levels = {(f"chance: {formats.loss(chance)}", chance, False) for chance in known}
    for run in runs:
        if run.floor is not None:
            below = " (below the axis)" if run.floor < domain[0] else ""
            has_room = _height(run.floor, domain) >= ROW_HEIGHT
            levels.add((f"floor: {formats.loss(run.floor)}{below}", run.floor, has_room))
    texts, values, under = zip(*sorted(levels), strict=True) if levels else ((), (), ())
    loss = np.maximum(np.array(values, dtype=np.float64), domain[0])
    heads = [
        (len(run.losses) / steps, len(_name_of(lane.label)))
        for lane, run in zip(lanes, runs, strict=True)
        if 0 < len(run.losses) < steps
    ]
    words, left = _placed(texts, heads, NARROWEST)
    short, short_left = _placed(texts, [(head, 1) for head, _ in heads], SMALLEST)
    return {
        "loss": loss, "text": words, "under": np.array(under, dtype=bool),
        "left": np.array(left, dtype=bool), "short": short,
        "short_left": np.array(short_left, dtype=bool),
    }  # fmt: skip


def _height(value: float, domain: tuple[float, float]) -> float:
    """Pixels of a loss above the axis' lower end."""
    low, high = domain
    share = log10(value / low) / log10(high / low) if low > 0 < value else (value - low) / high
    return HEIGHT * share


def _placed(
    texts: Sequence[str], heads: Sequence[tuple[float, int]], pixels: float
) -> tuple[list[str], list[bool]]:
    """The words about levels, and whether they are at the left, in steps so many pixels wide. Of each head:
    its share of the steps, and the letters of its name."""
    words, left = list[str](), list[bool]()
    ends = [(head, head + (LETTER_WIDTH * letters + 2 * SHIFT) / pixels) for head, letters in heads]
    for text in texts:
        width = (LETTER_WIDTH * len(text) + SHIFT) / pixels
        left.append(any(end > 1 - width for _, end in ends))
        words.append("" if left[-1] and any(head < width for head, _ in ends) else text)
    return words, left


def _name_of(label: str) -> str:
    """What stands at a line's end where there is room for it (see `_name_expression`)."""
    return " ".join(label.split()).split(", ")[0].split(" (")[0].split(": ")[0][:NAME_LETTERS]


def _held_out_rows(runs: Sequence[Recording]) -> Columns:
    """Every held-out loss, after its step."""
    curves = [run.held_out_curve for run in runs]
    return {
        "step": np.concatenate([np.empty(0, np.int64), *(steps for steps, _ in curves)]),
        "loss": np.concatenate([np.empty(0), *(losses for _, losses in curves)]),
        "lane": np.repeat(np.arange(len(runs)), [len(steps) for steps, _ in curves]),
    }


def _rate_rows(lanes: Sequence[Lane], steps: int, first_row: int) -> tuple[Columns, int]:
    """Where the learning rate was changed while lanes trained, once for all that took it together; and how
    many rows the words take. They are in the first row where they cover none of a later change, or left
    out."""
    taken: dict[tuple[int, float], list[str]] = {}
    for lane in lanes:
        for edit in lane.recording.edits:
            taken.setdefault(edit, []).append(lane.letter)
    changes = sorted(taken.items())
    words = [
        f"rate {formats.number(lr)}"
        if len(who) == len(lanes)
        else f"{', '.join(who)}: rate {formats.number(lr)}"
        for (_, lr), who in changes
    ]
    at = [step for (step, _), _ in changes]
    columns = _beside(at, words, [step / steps for step in at], 0)
    starts, texts, rows = [np.inf] * RATE_ROWS, list[str](), list[int]()
    for step, text, side in [*zip(at, words, columns["side"], strict=True)][::-1]:
        width = (LETTER_WIDTH * len(text) + SHIFT) / NARROWEST
        left = step / steps - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width
        row = next((row for row, start in enumerate(starts) if left + width <= start), None)
        texts.append("" if row is None else text)
        rows.append(row or 0)
        if row is not None:
            starts[row] = left
    place = TOP_ROW + ROW_HEIGHT * (first_row + np.array(rows[::-1], dtype=np.int64))
    return {**columns, "text": texts[::-1], "row": place}, max(rows, default=-1) + 1


def _peak_rows(runs: Sequence[Recording], steps: int, top: float) -> dict[str, Column]:
    """The highest loss of each lane that leaves the axis."""
    losses = [run.losses for run in runs]
    over = [np.where(np.isfinite(loss) & (loss > top), loss, 0.0) for loss in losses]
    some = [index for index, high in enumerate(over) if high.any()]
    peaks = [int(np.argmax(over[i])) for i in some]
    words = [f"peak {formats.loss(losses[i][step])}" for i, step in zip(some, peaks, strict=True)]
    share = [step / steps for step in peaks]
    # The words are below the triangles.
    return {"lane": np.array(some, dtype=np.int64), **_beside(peaks, words, share, 1)}


def _bad_rows(
    lanes: Sequence[Lane], steps: int, domain: tuple[float, float], first_row: int
) -> Columns:
    """Where each lane diverged; the cross sits on its last finite loss up to there."""
    rows = [(lane, bad) for lane in lanes if (bad := lane.recording.bad) is not None]
    before = [lane.recording.losses[: step + 1] for lane, (step, _) in rows]
    last = [losses[np.isfinite(losses)][-1:] for losses in before]
    at_step = [step for _, (step, _) in rows]
    words = [f"{lane.letter} {diverged(lane)}" for lane, _ in rows]
    share = [step / steps for step in at_step]
    at = np.array([loss[0] if len(loss) else domain[1] for loss in last], dtype=np.float64)
    return {"loss": at.clip(*domain), **_beside(at_step, words, share, first_row)}


def _beside(
    steps: list[int], words: list[str], share: list[float], first_row: int
) -> dict[str, Column]:
    """Columns of words beside their steps, each in a row (pixels) of its own.

    To the right of an early step, to the left of a late one: they stay inside a narrow chart.
    """
    return {
        "step": np.array(steps, dtype=np.int64),
        "row": TOP_ROW + ROW_HEIGHT * (first_row + np.arange(len(steps))),
        "text": words,
        "side": ["left" if s < 0.36 else "right" if s > 0.64 else "center" for s in share],
    }


def finding(lanes: Sequence[Lane]) -> str:
    """What the chart shows: the last loss of each lane beside chance, and where one diverged."""
    ran = [lane for lane in lanes if len(lane.recording.losses)]
    if not ran:
        return "No step has run yet."
    finite = [(lane.title, lane.recording) for lane in ran if lane.recording.bad is None]
    ends = {len(run.losses) - 1 for _, run in finite}
    together = f" at step {ends.pop()}" if len(ends) == 1 else ""
    each = [f"{name} {formats.loss(run.losses[-1])}" for name, run in finite]
    if not together:
        each = [
            f"{v} at step {len(run.losses) - 1}" for v, (_, run) in zip(each, finite, strict=True)
        ]
    chances = (lane.recording.chance for lane in ran)
    known = {formats.loss(chance) for chance in chances if isfinite(chance)}
    each += [f"chance {chance}" for chance in sorted(known)]
    sentences = [f"Loss{together} in {units(ran)}: {', '.join(each)}."]
    curves = ((name, run.held_out_curve[1]) for name, run in finite)
    held_out = [f"{name} {formats.loss(losses[-1])}" for name, losses in curves if len(losses)]
    if held_out:
        sentences.append(f"Held-out loss: {', '.join(held_out)}.")
    rates = [
        f"{lane.title} has learning rate {formats.number(lr)} from step {step}."
        for lane in ran
        for step, lr in lane.recording.edits
    ]
    return " ".join(sentences + rates + divergences(ran))


# The axes.


def span(lanes: Sequence[Lane]) -> int:
    """Steps of the axis: all that the lanes' runs shall take, halved while it holds those taken, and has a
    trend. So a long run fills its chart from its start, and the axis grows a few times."""
    runs = [run for lane in lanes for run in lane.recordings]
    steps = max((run.total for run in runs), default=1)
    taken = max((len(run.losses) for run in runs), default=0)
    while (half := ceil(steps / 2)) > LONG and half >= taken:
        steps = half
    return steps


LEAST = 1e-9  # a loss of zero is drawn here: it has no place on a log axis
UNKNOWN_CHANCE = 3.0  # nats, for the axis only, until a run has measured its own
TOPS = (10.0, 100.0, 1e4, 1e6, 1e9, 1e12)
BOTTOMS = (1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6, LEAST)
# A tier holds when at most this share of a lane's steps is above it: a few early spikes are marked
# at the edge instead of flattening the rest of the run. The count only grows, so tiers only rise.
SPIKES = 0.03


def y_domain(runs: Sequence[Recording]) -> tuple[float, float]:
    """(bottom, top) of the loss axis in nats, for all losses so far.

    It starts at 1.5 times chance, and just below the floor (a third of chance where there is none), and
    widens. A run that diverged does not widen it upwards beside one that did not.
    """
    chances = [run.chance for run in runs if isfinite(run.chance)] or [UNKNOWN_CHANCE]
    first_top = 1.5 * max(chances)
    tops = (first_top, *(t for t in TOPS if t > first_top))
    sound = [run for run in runs if run.bad is None]
    top = max((_top(run, tops) for run in sound or runs), default=first_top)
    floors = [run.floor for run in runs if run.floor is not None and run.floor > 0]
    third = min(chances) / 3
    first_bottom = min(0.8 * min(floors), third) if floors else third
    lowest = min((_lowest(run.losses) for run in runs), default=np.inf)
    bottoms = (first_bottom, *(b for b in BOTTOMS if b < first_bottom))
    return next((b for b in bottoms if b <= lowest), LEAST), top


def ticks(domain: tuple[float, float], most: int = 7) -> list[float]:
    """Values to label on a log axis: round ones, fewer to the decade where there are many."""
    low, high = domain
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        values = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
        if len(values) <= most:
            return values
    return values[:: ceil(len(values) / most)]


def _top(run: Recording, tops: tuple[float, ...]) -> float:
    allowed = SPIKES * run.total
    finite = run.losses[np.isfinite(run.losses)]
    return next((t for t in tops if np.count_nonzero(finite > t) <= allowed), tops[-1])


def _lowest(loss: Floats) -> float:
    return float(np.min(loss, initial=np.inf, where=np.isfinite(loss)))
