"""NormViz: what does it do to a transformer where you put the norm?

from normviz import RunConfig, train

for event in train(RunConfig(scheme="post")):
    print(event)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import ConfigError, RunConfig

if TYPE_CHECKING:
    from .own_model.anatomy import inspect_model
    from .own_model.move import move
    from .training.loop import train

_CHECKOUT = Path(__file__).resolve().parents[1]
if (_CHECKOUT / "app" / "main.py").is_file():
    # The pages are `normviz.app`: in the wheel inside of this package, in a checkout beside it.
    __path__.append(str(_CHECKOUT))

__all__ = ["ConfigError", "RunConfig", "inspect_model", "move", "train"]
LAZY = {
    "train": ".training.loop",
    "inspect_model": ".own_model.anatomy",
    "move": ".own_model.move",
}
"""What needs torch, and the module that has it."""

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What needs torch is imported on first use: the page must not load torch."""
    if name in LAZY:
        return getattr(import_module(LAZY[name], __name__), name)
    raise AttributeError(f"module 'normviz' has no attribute {name!r}")
