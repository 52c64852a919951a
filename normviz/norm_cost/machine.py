"""The machine in generic words that do not identify its owner."""

from __future__ import annotations

import os
import platform

from ..cores import cores


def describe(gpu: str = "") -> str:
    """For example "2 cores, x86_64, Linux", preceded by the GPU's name if one was used."""
    n = cores()
    parts = [f"{n} core{'s' * (n > 1)}", platform.machine() or "unknown", platform.system()]
    return ", ".join(filter(None, (gpu, *parts)))


def load() -> float | None:
    """Average load of the last minute, in processes; None if the system does not report it."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
