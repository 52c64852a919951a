"""A visitor's own PyTorch model: its stack of blocks, its norms, and where they stand.

    stack -> norms -> placement (symbols, judge) -> scheme_of -> anatomy (with lint) -> watch, move -> lanes

Norms are told by what they compute and placements by the flow of data, neither by names. The doctor alone
reads one: a norm with "fork" in its name, as exported code has it, is meant to be read by the skip path too.
`report`, `shipped`, `census` and `client` are without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

FROM = {"inspect": "anatomy", "movable": "move", "MoveError": "move", "duel": "lanes"}
"""What this package offers, with the module that has it; imported on first use, since it needs torch."""


def __getattr__(name: str) -> Any:
    if name in FROM:
        return getattr(import_module(f".{FROM[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
