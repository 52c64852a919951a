"""The machine in generic words: what a reader needs, and nothing that tells whose it is."""

from __future__ import annotations

import os
import platform

from ..cores import cores


def describe(gpu: str = "") -> str:
    """ "2 cores, x86_64, Linux", with the GPU's name where one was used."""
    n = cores()
    parts = [f"{n} core{'s' * (n > 1)}", platform.machine() or "unknown", platform.system()]
    return ", ".join(filter(None, (gpu, *parts)))


def load() -> float | None:
    """Processes that wanted a core in the last minute, on average; None where the system can't say."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
