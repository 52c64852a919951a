"""Which version of the engine trained what is shown, and whether it ran in C++, in sentences."""

from __future__ import annotations

from collections.abc import Iterable

from ..config import ENGINE

ENGINES = {
    "tape": "in NormViz's engine in C++",
    "eager": "with PyTorch's own operations",
}
"""How runs train, by the engine that computes their steps."""


def made_by(versions: Iterable[int], what: str = "runs") -> str:
    """A sentence if some of these versions of the engine are older than this release's; else empty."""
    each = list(versions)
    older = sorted({version for version in each if version < ENGINE})
    if not older:
        return ""
    named = " and ".join(map(str, older))
    n = sum(version < ENGINE for version in each)
    some = "Made" if n == len(each) else f"{n} of these {len(each)} {what} were made"
    return (
        f"{some} by version {named} of the engine. Training again uses version {ENGINE}, which draws other "
        "numbers from the same distributions."
    )


def computed_by(engines: Iterable[str], what: str = "runs") -> str:
    """A sentence on the engines that trained these runs; empty without runs. An unknown engine is that
    of an earlier release, PyTorch's own operations."""
    each = [engine if engine in ENGINES else "eager" for engine in engines]
    if len(set(each)) < 2:
        return f"Trained {ENGINES[each[0]]}." if each else ""
    n = each.count("eager")
    others = "the other" if len(each) == n + 1 else "the others"
    return (
        f"{n} of these {len(each)} {what} trained {ENGINES['eager']}, {others} {ENGINES['tape']}."
    )
