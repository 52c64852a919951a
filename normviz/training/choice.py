"""Which engine runs a config, and why the tape does not where it was wanted."""

from __future__ import annotations

from ..config import RunConfig
from ..model.flat import Flat
from ..model.transformer import Transformer
from ..native.library import Unavailable
from .eager import Eager
from .engine import Choice, Engine
from .tape.compile import Unsupported
from .tape.engine import Tape


def choose(choice: Choice, config: RunConfig, model: Transformer, flat: Flat) -> tuple[Engine, str]:
    """The engine of a run, and a sentence why it is not the tape, or "" where eager was asked for."""
    if choice == "eager":
        return Eager(config, model, flat), ""
    try:
        return Tape(config, model, flat), ""
    except (Unsupported, Unavailable) as error:
        return Eager(config, model, flat), str(error)
