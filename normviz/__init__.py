"""NormViz: what does it do to a transformer where you put the norm?

from normviz import RunConfig, train

for event in train(RunConfig(scheme="post")):
    print(event)
"""

from __future__ import annotations

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
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imported on first use: these need torch, and the page must not load torch."""
    if name == "train":
        from .training.loop import train

        return train
    if name == "move":
        from .own_model.move import move

        return move
    if name == "inspect_model":
        from .own_model.anatomy import inspect_model

        return inspect_model
    raise AttributeError(f"module 'normviz' has no attribute {name!r}")
