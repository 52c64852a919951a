"""NormViz: what does it do to a transformer where you put the norm?

from normviz import RunConfig, train

for event in train(RunConfig(scheme="post")):
    print(event)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import ConfigError, RunConfig, seeded

if TYPE_CHECKING:
    from .own_model.anatomy import inspect, inspect_model
    from .own_model.callbacks import Callback, LightningCallback
    from .own_model.diff import diff
    from .own_model.move import move
    from .own_model.watch import watch
    from .result import Duel, collect
    from .runs.outcome import outcome
    from .training.loop import train

_CHECKOUT = Path(__file__).resolve().parents[1]
if (_CHECKOUT / "app" / "main.py").is_file():
    # The pages are `normviz.app`: in the wheel inside of this package, in a checkout beside it.
    __path__.append(str(_CHECKOUT))

__all__ = [
    "Callback",
    "ConfigError",
    "Duel",
    "LightningCallback",
    "RunConfig",
    "collect",
    "diff",
    "inspect",
    "inspect_model",
    "move",
    "outcome",
    "seeded",
    "train",
    "watch",
]
LAZY = {
    "train": ".training.loop",
    "collect": ".result",
    "Duel": ".result",
    "outcome": ".runs.outcome",
    "watch": ".own_model.watch",
    "Callback": ".own_model.callbacks",
    "LightningCallback": ".own_model.callbacks",
    "move": ".own_model.move",
    "inspect": ".own_model.anatomy",
    "inspect_model": ".own_model.anatomy",
    "diff": ".own_model.diff",
}
"""What is imported on first use, and the module that has it: most of it needs torch."""

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import a name of `LAZY`: the page must not load torch."""
    if name in LAZY:
        return getattr(import_module(LAZY[name], __name__), name)
    raise AttributeError(f"module 'normviz' has no attribute {name!r}")
