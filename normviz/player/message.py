"""What travels to a browser: numbers that it does not have yet, and charts where they changed.

Numbers go as base64 of little-endian float32. The browser cuts curves at the cursor, colours the
heatmap and picks the bars itself: moving the cursor asks the server for nothing. Whatever depends
on the numbers but not on the cursor (axes, words, peaks) is made here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .. import charts
from ..catalog import FAMILIES, PROBES
from ..charts.base import Spec, unchecked
from ..charts.palette import COMPARING, PALETTE
from ..charts.scale import Domain
from ..model import texts
from ..model.characters import one_line
from ..observed import configured
from ..runs import Recording
from ..runs.lane import Lane, lacking, units
from ..training.events import Writing
from .walk import CARRIED, walk

View = Literal["heat", "ratio", "lines", "walk"]
"""The chart below loss and bars: a heatmap per lane, the first lane's values divided by the
second's, lines of the first, middle and last layer, or the signal's walk through each stack."""
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True)
class ChartOptions:
    """A visitor's view of a duel: dark page, linear axes, and the chart below loss and bars."""

    dark: bool = False
    linear: bool = False
    view: View = "heat"

    def compares(self, lanes: Sequence[Lane]) -> bool:
        """Whether a quotient of two lanes is to be shown, and there is one."""
        return self.view == "ratio" and len(lanes) > 1 and charts.ratio.comparable(*lanes[:2])


@dataclass(frozen=True)
class Axes:
    """The axes of all charts; they depend on the numbers of all lanes.

    values   of the probe
    loss     lower and upper end, in nats
    steps    of the loss curves and lines
    between  of one lane's values divided by another's; None where that is not shown
    """

    values: Domain
    loss: tuple[float, float]
    steps: int
    between: Domain | None


def axes(lanes: Sequence[Lane], probe: str, options: ChartOptions, live: bool) -> Axes:
    """The axes for everything so far; `live` keeps room for steps that will follow."""
    layers = [lane.recording.layers(probe) for lane in lanes]
    values = charts.quantised_domain(PROBES[probe], layers, live=live, linear=options.linear)
    low, high = charts.loss.y_domain([run for lane in lanes for run in lane.recordings])
    between = None
    if options.compares(lanes):
        between = charts.ratio.domain(charts.ratio.quotient(lanes[0], lanes[1], probe))
    return Axes(values, (0.0 if options.linear else low, high), charts.loss.span(lanes), between)


def walkable(lanes: Sequence[Lane]) -> bool:
    """Whether the signal walk can be drawn: its picture is of blocks that have a record, with attention and
    an FFN."""
    runs = (lane.recording for lane in lanes)
    return all(
        not run.is_observed and FAMILIES[run.config.family].first == "attention" for run in runs
    )


Have = tuple[int, int]
"""Of one lane: losses and layer records that the browser has."""


@dataclass
class Sent:
    """What one browser was sent: so much of each lane, of its repeats, and which charts."""

    have: list[Have] = field(default_factory=list)
    repeats: list[list[int]] = field(default_factory=list)
    walks: list[int] = field(default_factory=list)
    writings: list[int] = field(default_factory=list)
    plans: object = None
    charts: object = None


def message(
    lanes: Sequence[Lane],
    probe: str,
    sent: Sent,
    *,
    live: bool,
    options: ChartOptions,
    walk: bool = True,
) -> dict[str, Any]:
    """What a browser lacks to show a probe of `lanes`, as a JSON object; `sent` is brought up to date.

    `live` says that steps will follow: axes then keep room for them. Without `walk` the numbers of the
    signal walk are left out where it is looked at: they do not depend on the probe.
    """
    if not walkable(lanes) and options.view == "walk":
        options = replace(options, view="heat")
    runs = [lane.recording for lane in lanes]
    drawn = axes(lanes, probe, options, live)
    out: dict[str, Any] = {"live": live, "view": options.view}
    out |= _numbers(runs, probe, sent)
    out |= _repeats([lane.repeats for lane in lanes], sent)
    out |= _writings(runs, sent)
    if walk and options.view == "walk":
        out |= _walks(runs, sent, live)
    out |= _charts(lanes, probe, drawn, options, sent)
    if not live:
        out["findings"] = _findings(lanes, probe, drawn)
    return out


def _numbers(runs: Sequence[Recording], probe: str, sent: Sent) -> dict[str, Any]:
    """The numbers of the lanes' own runs beyond those that the browser has."""
    if len(sent.have) != len(runs):
        sent.have = [(0, 0)] * len(runs)
    fresh = [_fresh(run, probe, have) for run, have in zip(runs, sent.have, strict=True)]
    sent.have = [(len(run.losses), len(run.layers(probe).step)) for run in runs]
    return {"lanes": fresh}


def _repeats(repeats: Sequence[Sequence[Recording]], sent: Sent) -> dict[str, Any]:
    """The losses of the lanes' runs from all seeds beyond those that the browser has."""
    out: dict[str, Any] = {}
    counts = [[len(run.losses) for run in runs] for runs in repeats]
    if [len(lane) for lane in sent.repeats] != [len(lane) for lane in counts]:
        sent.repeats = [[0] * len(lane) for lane in counts]
    if any(repeats):
        out["repeats"] = [
            [
                {"from": start, "loss": packed(run.losses[start:])}
                for run, start in zip(runs, starts, strict=True)
            ]
            for runs, starts in zip(repeats, sent.repeats, strict=True)
        ]
    sent.repeats = counts
    return out


def _writings(runs: Sequence[Recording], sent: Sent) -> dict[str, Any]:
    """What the models write, and where they look, beyond what the browser has. A model can repeat the text
    that it was trained on: once a text is deleted, nobody sees what was learned from it."""
    own = [getattr(run.config, "text", "") for run in runs]
    every = [
        run.writings if not text or texts.is_here(text) else []
        for run, text in zip(runs, own, strict=True)
    ]
    starts = sent.writings if len(sent.writings) == len(runs) else [0] * len(runs)
    sent.writings = [len(some) for some in every]
    if not any(every):
        return {}
    return {
        "writings": [
            {"from": start, "fresh": [_written(step, w) for step, w in some[start:]]}
            for start, some in zip(starts, every, strict=True)
        ]
    }


def _written(step: int, writing: Writing) -> dict[str, Any]:
    looks = coded(np.frombuffer(writing.looks, np.uint8))
    prompt, text = one_line(writing.prompt), one_line(writing.text)
    return {"step": step, "prompt": prompt, "text": text, "looks": looks}


def _walks(runs: Sequence[Recording], sent: Sent, live: bool) -> dict[str, Any]:
    """The numbers of the signal walks, and their plans where those changed."""
    if len(sent.walks) != len(runs):
        sent.walks = [0] * len(runs)
    out: dict[str, Any] = {"carried": numbers(runs, sent.walks)}
    sent.walks = [len(run.layers(CARRIED[0]).step) for run in runs]
    if (constant := plans(runs, live)) != sent.plans:
        out["walk"] = sent.plans = constant
    return out


def _charts(
    lanes: Sequence[Lane], probe: str, drawn: Axes, options: ChartOptions, sent: Sent
) -> dict[str, Any]:
    """The rows that no cursor changes; and the charts, where they changed: of a dark page also the light
    ones, which are those that are saved."""
    sets = {f"heat{i}": charts.heatmap.fixed(lane) for i, lane in enumerate(lanes)}
    out: dict[str, Any] = {"sets": {"loss": charts.loss.fixed(lanes, drawn.loss), **sets}}
    known = (probe, drawn, options, tuple(_identity(lane, probe) for lane in lanes))
    if known != sent.charts:
        out |= _about(lanes, probe, drawn, options)
        out["charts"] = specs(lanes, probe, drawn, options)
        if options.dark:
            out["saved"] = specs(lanes, probe, drawn, replace(options, dark=False))
    sent.charts = known
    return out


@unchecked
def specs(lanes: Sequence[Lane], probe: str, axes: Axes, options: ChartOptions) -> dict[str, Spec]:
    """Every chart by the name that the player knows it by."""
    styles, dark = charts.styles_of(lanes, options.dark), options.dark
    labels, runs = tuple(lane.label for lane in lanes), [lane.recording for lane in lanes]
    steps, depth = axes.steps, max(run.depth for run in runs)
    by_name = {
        "loss": charts.loss.spec(
            styles, labels, steps, axes.loss, dark, options.linear, units(lanes)
        ),
        "bars": charts.layers.spec(styles, labels, probe, depth, axes.values, dark, runs[0].row),
    }
    if axes.between is not None:
        divided = charts.ratio.quotient(lanes[0], lanes[1], probe)
        label = charts.ratio.label(lanes[0], lanes[1])
        by_name["ratio"] = charts.heatmap.spec(
            charts.ratio.style(dark), label, probe, depth, divided.total, axes.between, dark,
            comparing=True, has_gaps=divided.has_gaps,
        )  # fmt: skip
    elif options.view == "lines":
        by_name["lines"] = charts.lines.spec(styles, labels, probe, steps, axes.values)
    elif options.view != "walk":
        for i, (label, run, style) in enumerate(zip(labels, runs, styles, strict=True)):
            by_name[f"heat{i}"] = charts.heatmap.spec(
                style, label, probe, run.depth, run.total, axes.values, dark, row=run.row,
                has_gaps=run.layers(probe).has_gaps,
            )  # fmt: skip
    config = charts.theme(dark)
    return {
        name: {**spec, "config": {**spec["config"], **config}} for name, spec in by_name.items()
    }


def _findings(lanes: Sequence[Lane], probe: str, drawn: Axes) -> dict[str, str]:
    """What each chart shows, in words."""
    have, lack = [x for x in lanes if not x.recording.lacks(probe)], lacking(lanes, probe)
    sentences = {
        f"heat{i}": " ".join(lacking([lane], probe) or [charts.heatmap.finding(lane, probe)])
        for i, lane in enumerate(lanes)
    }
    if drawn.between is not None:
        sentences["ratio"] = charts.ratio.finding(lanes[0], lanes[1], probe)
    return {
        "loss": charts.loss.finding(lanes),
        "bars": " ".join([charts.layers.finding(have, probe), *lack] if have else lack),
        "lines": " ".join([charts.lines.finding(have, probe), *lack] if have else lack),
        **sentences,
    }


def _identity(lane: Lane, probe: str) -> tuple[object, ...]:
    run = lane.recording
    return lane.label, run.config.scheme, run.depth, run.total, run.layers(probe).has_gaps


def _fresh(run: Recording, probe: str, have: Have) -> dict[str, Any]:
    """The numbers of a run beyond those that the browser has."""
    (losses, records), layers = have, run.layers(probe)
    return {
        "from": [losses, records],
        "loss": packed(run.losses[losses:]),
        "records": layers.step[records:].tolist(),
        "values": packed(layers.drawn[records:]),
        "bad": run.bad,
    }


def _about(lanes: Sequence[Lane], probe: str, drawn: Axes, options: ChartOptions) -> dict[str, Any]:
    """What is constant about the lanes, and the axes."""
    styles = charts.styles_of(lanes, options.dark)
    elsewhere = any(lane.recording.config.family != "decoder" for lane in lanes)
    return {
        "probe": probe,
        "domain": {**asdict(drawn.values), "loss": drawn.loss},
        "between": asdict(drawn.between) if drawn.between else None,
        "about": [
            {
                "name": lane.title,
                "short": lane.letter,
                "color": style.color,
                "earlier": bool(lane.earlier),
                "depth": lane.recording.depth,
                "row": lane.recording.row,
                "unit": lane.recording.unit,
                "walks": walkable([lane]),
                "steps": lane.recording.total,
                "span": drawn.steps,
                "first": PROBES[probe].first_layer,
            }
            for lane, style in zip(lanes, styles, strict=True)
        ],
        "probes": choices(offered(lanes, probe), elsewhere),
        "lacking": " ".join(lacking(lanes, probe)),
        "palette": coded(PALETTE),
        "comparing": coded(COMPARING),
    }


def offered(lanes: Sequence[Lane], shown: str = "") -> list[str]:
    """The probes that one of the lanes has at least, and the one that is shown, in the order of the list."""
    there = {shown, *(key for lane in lanes for key in lane.recording.probes)}
    return [key for key in PROBES.keys() if key in there]  # noqa: SIM118 (a registry)


def choices(keys: Sequence[str], elsewhere: bool = False) -> list[dict[str, str]]:
    """The probes that a browser may ask for, with their words; `elsewhere` adds those about other families
    than the decoder."""
    records = [PROBES[key] for key in keys]
    return [
        {
            "key": r.key,
            "label": r.label,
            "title": r.title,
            "group": r.group or "",
            "definition": r.whole if elsewhere else r.definition,
            "source": r.source,
        }
        for r in records
    ]


def numbers(runs: Sequence[Recording], have: Sequence[int]) -> list[dict[str, Any]]:
    """Of each lane's run the records beyond those that the browser has, probe by probe."""
    return [
        {
            "from": start,
            "records": run.layers(CARRIED[0]).step[start:].tolist(),
            "values": {key: packed(run.layers(key).drawn[start:]) for key in CARRIED},
        }
        for run, start in zip(runs, have, strict=True)
    ]


def plans(runs: Sequence[Recording], live: bool) -> dict[str, Any]:
    """What is constant: each lane's picture, and the scales that all lanes share."""
    domains = {}
    for key in CARRIED:
        layers = [run.layers(key) for run in runs]
        domain = charts.quantised_domain(PROBES[key], layers, live=live)
        domains[key] = {"lo": domain.lo, "hi": domain.hi}
    return {"plans": [walk(configured(run.config)) for run in runs], "domains": domains}


def packed(values: NDArray[np.float64]) -> str:
    """Base64 of the numbers as little-endian float32, row by row; NaN and infinity survive."""
    with np.errstate(over="ignore"):
        return coded(values.astype("<f4"))


def coded(values: NDArray[np.float32] | NDArray[np.uint8]) -> str:
    """Base64 of the bytes as they are."""
    return b64encode(values.tobytes()).decode("ascii")
