"""Whether runs trained in C++ or with PyTorch's own operations, in sentences."""

from __future__ import annotations

from collections.abc import Iterable

ENGINES = {
    "tape": "in NormViz's engine in C++",
    "eager": "with PyTorch's own operations",
}
"""How runs train, by the engine that computes their steps."""


def computed_by(engines: Iterable[str], what: str = "runs") -> str:
    """A sentence on the engines that trained these runs; empty without runs."""
    each = list(engines)
    if len(set(each)) < 2:
        return f"Trained {ENGINES[each[0]]}." if each else ""
    n = each.count("eager")
    others = "the other" if len(each) == n + 1 else "the others"
    return (
        f"{n} of these {len(each)} {what} trained {ENGINES['eager']}, {others} {ENGINES['tape']}."
    )
