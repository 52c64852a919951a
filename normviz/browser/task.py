"""The tasks that a browser trains on: what their batches are made from, chance and floor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..config import RunConfig
from ..model.corpora import SUCCESSOR_P, SUCCESSORS, prose, stationary
from ..model.data import Copy, Markov, Prose


def browser_task(key: str) -> dict[str, Any]:
    """A task as JSON, for `assets/player/batches.js`; its numbers are compared with the bounds. A page loads
    the text of prose, `codes`, from a file of its own."""
    task = {"markov": Markov, "copy": Copy, "prose": Prose}[key](RunConfig(task=key))
    fields: dict[str, Any] = {
        "key": key, "vocabulary": task.vocabulary, "chance": task.chance, "floor": task.floor,
    }  # fmt: skip
    if key == "markov":
        fields |= {
            "first": stationary().cumsum()[:-1].tolist(), "next": SUCCESSOR_P.cumsum()[:-1].tolist(),
            "successors": SUCCESSORS.tolist(),
        }  # fmt: skip
    return fields


def prose_codes() -> bytes:
    """The text of the task prose, a byte a character."""
    return prose()[0].astype(np.uint8).tobytes()
