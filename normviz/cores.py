"""How many cores there are to train on."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores that this process may use: in a container those are often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
