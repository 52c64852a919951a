"""What travels to a browser: numbers that it does not have yet, and charts where they changed.

Numbers go as base64 of little-endian float32. The browser cuts curves at the cursor, colours the
heatmap and picks the bars itself: moving the cursor asks the server for nothing. Whatever depends
on the numbers but not on the cursor (axes, words, peaks) is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .. import charts
from ..catalog import PROBES
from ..charts.palette import COMPARING, PALETTE, paper
from ..charts.scale import shown
from ..runs.frames import LaneFrame
from .packing import coded, packed
from .specs import Axes, ChartOptions, axes, specs, walkable
from .walks import Walk, numbers, plans

Have = tuple[int, int]
"""Of one lane: losses and layer records that the browser has."""


@dataclass
class Sent:
    """What one browser was sent: so much of each lane, of its repeats, and which charts."""

    have: list[Have] = field(default_factory=list)
    repeats: list[list[int]] = field(default_factory=list)
    walks: list[int] = field(default_factory=list)
    plans: object = None
    charts: object = None


def message(
    lanes: Sequence[LaneFrame],
    sent: Sent,
    *,
    live: bool,
    options: ChartOptions,
    repeats: Sequence[Sequence[LaneFrame]] = (),
    walks: Sequence[Walk] = (),
) -> dict[str, Any]:
    """What a browser lacks to show `lanes`, as a JSON object; `sent` is brought up to date.

    `live` says that steps will follow: axes then keep room for them. All lanes hold one probe.
    `repeats` holds the runs of each lane from all seeds, its own among them; `walks` what the
    signal walk draws, where that is looked at.
    """
    if not walkable(lanes) and options.view == "walk":
        options, walks = replace(options, view="heat"), ()
    drawn = axes(lanes, repeats, options, live)
    out: dict[str, Any] = {"live": live, "view": options.view}
    out |= _numbers(lanes, repeats, sent)
    out |= _walks(walks, sent, live)
    out |= _charts(lanes, drawn, options, sent)
    if not live:
        out["findings"] = _findings(lanes, drawn)
    return out


def _numbers(
    lanes: Sequence[LaneFrame], repeats: Sequence[Sequence[LaneFrame]], sent: Sent
) -> dict[str, Any]:
    """The numbers of the lanes and of their repeats beyond those that the browser has."""
    if len(sent.have) != len(lanes):
        sent.have = [(0, 0)] * len(lanes)
    out: dict[str, Any] = {"lanes": list(map(_fresh, lanes, sent.have))}
    sent.have = [(len(lane.loss), len(lane.probe_steps)) for lane in lanes]
    counts = [[len(frame.loss) for frame in frames] for frames in repeats]
    if [len(one) for one in sent.repeats] != [len(one) for one in counts]:
        sent.repeats = [[0] * len(one) for one in counts]
    if any(repeats):
        out["repeats"] = [
            [
                {"from": start, "loss": packed(frame.loss[start:])}
                for frame, start in zip(frames, starts, strict=True)
            ]
            for frames, starts in zip(repeats, sent.repeats, strict=True)
        ]
    sent.repeats = counts
    return out


def _walks(walks: Sequence[Walk], sent: Sent, live: bool) -> dict[str, Any]:
    """The numbers of the signal walks, and their plans where those changed."""
    if not walks:
        return {}
    if len(sent.walks) != len(walks):
        sent.walks = [0] * len(walks)
    out: dict[str, Any] = {"carried": numbers(walks, sent.walks)}
    sent.walks = [len(one.records) for one in walks]
    if (constant := plans(walks, live)) != sent.plans:
        out["walk"] = sent.plans = constant
    return out


def _charts(
    lanes: Sequence[LaneFrame], drawn: Axes, options: ChartOptions, sent: Sent
) -> dict[str, Any]:
    """The rows that no cursor changes; and the charts, where they changed."""
    sets = {f"heat{i}": charts.heatmap.fixed(lane) for i, lane in enumerate(lanes)}
    out: dict[str, Any] = {"sets": {"loss": charts.loss.fixed(lanes, drawn.loss), **sets}}
    known = (lanes[0].probe, drawn, options, tuple(map(_identity, lanes)))
    if known != sent.charts:
        out |= _about(lanes, drawn, options)
        out["charts"] = specs(lanes, drawn, options)
    sent.charts = known
    return out


def _findings(lanes: Sequence[LaneFrame], drawn: Axes) -> dict[str, str]:
    """What each chart shows, in words."""
    have, lack = [lane for lane in lanes if not lane.lacks], charts.sentences.lacking(lanes)
    found = {
        f"heat{i}": " ".join(charts.sentences.lacking([lane]) or [charts.heatmap.finding(lane)])
        for i, lane in enumerate(lanes)
    }
    if drawn.between is not None:
        found["ratio"] = charts.ratio.finding(*lanes[:2])
    return {
        "loss": charts.loss.finding(lanes),
        "bars": " ".join([charts.bars.finding(have), *lack] if have else lack),
        "lines": " ".join([charts.lines.finding(have), *lack] if have else lack),
        **found,
    }


def _identity(lane: LaneFrame) -> tuple[object, ...]:
    return lane.label, lane.scheme, lane.depth, lane.steps, lane.has_gaps


def _fresh(lane: LaneFrame, have: Have) -> dict[str, Any]:
    """The numbers of a lane beyond those that the browser has."""
    losses, records = have
    return {
        "from": [losses, records],
        "loss": packed(lane.loss[losses:]),
        "records": lane.probe_steps[records:].tolist(),
        "values": packed(shown(lane)[records:]),
        "bad": charts.sentences.first_bad(lane),
    }


def _about(lanes: Sequence[LaneFrame], drawn: Axes, options: ChartOptions) -> dict[str, Any]:
    """What is constant about the lanes, and the axes."""
    styles = charts.styles_of(lanes, options.dark)
    probe = PROBES[lanes[0].probe]
    return {
        "probe": probe.key,
        "domain": {**asdict(drawn.values), "loss": drawn.loss},
        "between": asdict(drawn.between) if drawn.between else None,
        "paper": paper(options.dark),
        "about": [
            {
                "name": charts.sentences.name(lane),
                "short": charts.sentences.short(lane),
                "color": style.color,
                "earlier": bool(lane.earlier),
                "depth": lane.depth,
                "row": lane.row,
                "unit": lane.unit,
                "walks": walkable([lane]),
                "steps": lane.steps,
                "first": probe.first_layer,
            }
            for lane, style in zip(lanes, styles, strict=True)
        ],
        "probes": choices(offered(lanes), any(lane.family != "decoder" for lane in lanes)),
        "lacking": " ".join(charts.sentences.lacking(lanes)),
        "palette": coded(PALETTE),
        "comparing": coded(COMPARING),
    }


def offered(lanes: Sequence[LaneFrame]) -> list[str]:
    """The probes that one of the lanes has at least, and the one that is shown, in the order of the list."""
    there = {key for lane in lanes for key in (lane.probe, *(lane.recorded or PROBES.keys()))}
    return [key for key in PROBES.keys() if key in there]  # noqa: SIM118 (a registry)


def choices(keys: Sequence[str], elsewhere: bool = False) -> list[dict[str, str]]:
    """The probes that a browser may ask for, with their words; `elsewhere` adds those about other families
    than the decoder."""
    records = [PROBES[key] for key in keys]
    return [
        {
            "key": r.key,
            "label": r.label,
            "group": r.group or "",
            "definition": r.whole if elsewhere else r.definition,
            "source": r.source,
        }
        for r in records
    ]
