"""Whether runs were computed in C++ or with PyTorch's own operations, in sentences."""

from __future__ import annotations

from collections.abc import Iterable

IN_CPP, BY_TORCH = "in NormViz's engine in C++", "with PyTorch's own operations"
ENGINES = {"tape": IN_CPP, "eager": BY_TORCH, "captured": BY_TORCH, "stacked": BY_TORCH}
"""How runs are computed, by the engine that computes their steps."""


def plain(why: str) -> str:
    """Why a run was not computed in C++ (`Started.why`), for readers who do not know that engine's name."""
    return why.replace("the tape", "NormViz's engine in C++")


def computed_by(engines: Iterable[str], what: str = "runs") -> str:
    """A sentence on the engines that computed these runs; empty without runs."""
    each = [ENGINES[engine] for engine in engines]
    if len(set(each)) < 2:
        return f"Computed {each[0]}." if each else ""
    n = each.count(BY_TORCH)
    others = "the other" if len(each) == n + 1 else "the others"
    were = "was" if n == 1 else "were"
    return f"{n} of these {len(each)} {what} {were} computed {BY_TORCH}, {others} {IN_CPP}."
