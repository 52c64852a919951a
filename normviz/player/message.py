"""What travels to a browser: numbers that it does not have yet, and charts where they changed.

Numbers go as base64 of little-endian float32. The browser cuts curves at the cursor, colours the
heatmap and picks the bars itself: moving the cursor asks the server for nothing. Whatever depends
on the numbers but not on the cursor (axes, words, peaks) is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import charts
from ..catalog import PROBES
from ..charts.heatmap_data import COMPARING, PALETTE
from ..charts.palette import paper
from ..charts.scale import Domain, shown
from ..frames import LaneFrame
from .packing import coded, packed
from .specs import Look, specs
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
    look: Look,
    repeats: Sequence[Sequence[LaneFrame]] = (),
    walks: Sequence[Walk] = (),
) -> dict[str, Any]:
    """What a browser lacks to show `lanes`, as a JSON object; `sent` is brought up to date.

    `live` says that steps will follow: axes then keep room for them. All lanes hold one probe.
    `repeats` holds the runs of each lane from all seeds, its own among them; `walks` what the
    signal walk draws, where that is looked at.
    """
    record = PROBES[lanes[0].probe]
    domain = charts.quantised_domain(record, lanes, live=live, linear=look.linear)
    others = [frame for frames in repeats for frame in frames]
    loss_domain = charts.loss.y_domain([*lanes, *others])
    if look.linear:
        loss_domain = (0.0, loss_domain[1])
    if len(sent.have) != len(lanes):
        sent.have = [(0, 0)] * len(lanes)
    counts = [[len(frame.loss) for frame in frames] for frames in repeats]
    if [len(one) for one in sent.repeats] != [len(one) for one in counts]:
        sent.repeats = [[0] * len(one) for one in counts]
    out: dict[str, Any] = {
        "live": live,
        "view": look.view,
        "lanes": [_fresh(lane, have) for lane, have in zip(lanes, sent.have, strict=True)],
        "sets": {
            "loss": charts.loss.fixed(lanes, loss_domain),
            **{f"heat{i}": charts.heatmap.fixed(lane) for i, lane in enumerate(lanes)},
        },
    }
    if others:
        out["repeats"] = [
            [
                {"from": start, "loss": packed(frame.loss[start:])}
                for frame, start in zip(frames, starts, strict=True)
            ]
            for frames, starts in zip(repeats, sent.repeats, strict=True)
        ]
    if walks:
        if len(sent.walks) != len(walks):
            sent.walks = [0] * len(walks)
        out["carried"] = numbers(walks, sent.walks)
        sent.walks = [len(one.records) for one in walks]
        if (constant := plans(walks, live)) != sent.plans:
            out["walk"] = sent.plans = constant
    between = (
        charts.ratio.domain(charts.ratio.quotient(*lanes[:2])) if look.compares(lanes) else None
    )
    known = (
        record.key,
        domain,
        loss_domain,
        between,
        look,
        tuple(_identity(lane) for lane in lanes),
    )
    if known != sent.charts:
        out |= _about(lanes, domain, loss_domain, between, look)
        out["charts"] = specs(lanes, domain, loss_domain, between, look)
    if not live:
        out["findings"] = {
            "loss": charts.loss.finding(lanes),
            "bars": charts.bars.finding(lanes),
            "lines": charts.lines.finding(lanes),
            **{f"heat{i}": charts.heatmap.finding(lane) for i, lane in enumerate(lanes)},
        }
        if between is not None:
            out["findings"]["ratio"] = charts.ratio.finding(*lanes[:2])
    sent.have = [(len(lane.loss), len(lane.probe_steps)) for lane in lanes]
    sent.repeats = counts
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


def _about(
    lanes: Sequence[LaneFrame],
    domain: Domain,
    loss_domain: tuple[float, float],
    between: Domain | None,
    look: Look,
) -> dict[str, Any]:
    """What is constant about the lanes, and the axes."""
    styles = charts.styles_of(lanes, look.dark)
    probe = PROBES[lanes[0].probe]
    return {
        "probe": probe.key,
        "domain": {**asdict(domain), "loss": loss_domain},
        "between": asdict(between) if between else None,
        "paper": paper(look.dark),
        "about": [
            {
                "name": charts.words.name(lane),
                "short": charts.words.short(lane),
                "color": style.color,
                "earlier": bool(lane.earlier),
                "depth": lane.depth,
                "steps": lane.steps,
                "first": probe.first_layer,
            }
            for lane, style in zip(lanes, styles, strict=True)
        ],
        "probes": choices(PROBES.keys()),
        "palette": coded(PALETTE),
        "comparing": coded(COMPARING),
    }


def choices(keys: Sequence[str]) -> list[dict[str, str]]:
    """The probes that a browser may ask for, with their words."""
    records = [PROBES[key] for key in keys]
    return [
        {"key": r.key, "label": r.label, "definition": r.definition, "source": r.source}
        for r in records
    ]
