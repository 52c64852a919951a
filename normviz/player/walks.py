"""The signal walk of each lane: its plan, and the numbers of the probes that the plan carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import charts
from ..anatomy.walk import CARRIED, walk
from ..catalog import PROBES
from ..observed import configured
from ..runs import Recording
from .packing import packed

__all__ = ["CARRIED", "numbers", "plans"]


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
