"""The signal walk of each lane: its plan, and the numbers of the probes that the plan carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import charts
from ..anatomy.walk import CARRIED, walk
from ..catalog import PROBES
from ..config import RunConfig
from ..runs.frames import LaneFrame
from .packing import packed

__all__ = ["CARRIED", "Walk", "numbers", "plans"]


@dataclass(frozen=True)
class Walk:
    """One lane: what was trained, and its frame of each probe in CARRIED."""

    config: RunConfig
    frames: Mapping[str, LaneFrame]

    @property
    def records(self) -> list[int]:
        """Steps at which the layers were recorded."""
        return self.frames[CARRIED[0]].probe_steps.tolist()


def numbers(walks: Sequence[Walk], have: Sequence[int]) -> list[dict[str, Any]]:
    """Of each lane the records beyond those that the browser has, probe by probe."""
    return [
        {
            "from": start,
            "records": one.records[start:],
            "values": {key: packed(charts.scale.shown(one.frames[key])[start:]) for key in CARRIED},
        }
        for one, start in zip(walks, have, strict=True)
    ]


def plans(walks: Sequence[Walk], live: bool) -> dict[str, Any]:
    """What is constant: each lane's picture, and the scales that all lanes share."""
    domains = {}
    for key in CARRIED:
        domain = charts.quantised_domain(PROBES[key], [one.frames[key] for one in walks], live=live)
        domains[key] = {"lo": domain.lo, "hi": domain.hi}
    return {"plans": [walk(one.config) for one in walks], "domains": domains}
