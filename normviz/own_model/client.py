"""The server's end of an inspection: a configuration in, an anatomy or a sentence out. Without torch."""

from __future__ import annotations

import json
import threading
import time
from functools import lru_cache
from pathlib import Path

from ..execution import Ended, Local
from .report import NESTED, Anatomy, parse_anatomy
from .task import CPU_SECONDS, MEMORY, NEXT, inspected

MAX_CHARACTERS = 65_536
"""Of a pasted configuration."""
PATIENCE_SECONDS = 120.0
"""How long an inspection may take, with the start of its process; and how long another one waits for it."""
MAX_BLOCKS = 1000
MAX_NUMBER = 1 << 24
"""Of any number in a configuration: a width, a vocabulary, a length."""

_one = threading.Lock()


class NotInspected(ValueError):
    """A configuration that was not inspected; the message is one sentence."""


@lru_cache(maxsize=64)
def inspect_pasted(text: str, folder: Path) -> Anatomy:
    """The anatomy of a pasted config.json, from a process of its own; one at a time on a server.

    No code that a configuration names is run. Raises NotInspected.
    """
    check(text)
    if not _one.acquire(timeout=PATIENCE_SECONDS):
        raise NotInspected("this server inspects another configuration: try again in a minute")
    try:
        return parse_anatomy(_result(text, folder))
    finally:
        _one.release()


def check(text: str) -> None:
    """Refuse what is too large or no configuration. Raises NotInspected."""
    if len(text) > MAX_CHARACTERS:
        raise NotInspected(
            f"the text has {len(text):,} characters: a config.json of at most {MAX_CHARACTERS:,} is taken"
        )
    try:
        given = json.loads(text)
        numbers = _numbers(given)
    except ValueError as error:
        raise NotInspected(f"this is no JSON: {error}") from None
    except RecursionError:
        raise NotInspected(NESTED) from None
    if not isinstance(given, dict) or not isinstance(given.get("model_type"), str):
        raise NotInspected('a config.json is a JSON object with a "model_type", such as "qwen3"')
    for name, value in numbers:
        most = MAX_BLOCKS if name in BLOCKS else MAX_NUMBER
        if value > most:
            raise NotInspected(f"{name} is {value:,}: at most {most:,} is taken")


BLOCKS = {
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "num_experts", "num_local_experts", "n_routed_experts",
}  # fmt: skip
"""Settings that multiply modules."""


def _numbers(value: object, name: str = "") -> list[tuple[str, float]]:
    """All numbers in a configuration, by the name of the setting."""
    if isinstance(value, dict):
        return [number for key, each in value.items() for number in _numbers(each, str(key))]
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each, name)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [(name, value)]
    return []


def _result(text: str, folder: Path) -> str:
    """What the process gives back. Raises NotInspected."""
    end = time.monotonic() + PATIENCE_SECONDS
    with Local(inspected, {"pasted": (text,)}, folder, urgent=True) as executor:
        for event in executor.events(lambda: time.monotonic() > end):
            if isinstance(event, Ended):
                if event.problem is None:
                    return event.result
                if event.problem.startswith("its process was killed"):
                    limits = f"{CPU_SECONDS} s of CPU time and {MEMORY >> 30} GB of memory"
                    raise NotInspected(f"{event.problem}; it may take {limits}: {NEXT}")
                raise NotInspected(event.problem)
    raise NotInspected(f"it took longer than {PATIENCE_SECONDS:.0f} s and was stopped: {NEXT}")
