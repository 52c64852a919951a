"""The tasks that a browser trains on: what their batches are made from, chance and floor."""

from __future__ import annotations

from typing import Any

from ..config import RunConfig
from ..model.corpora import SUCCESSOR_P, chain
from ..model.data import Copy, Markov


def browser_task(key: str) -> dict[str, Any]:
    """A task as JSON, for `assets/player/batches.js`; its numbers are compared with the bounds."""
    task = {"markov": Markov, "copy": Copy}[key](RunConfig(task=key))
    found = {
        "key": key, "vocabulary": task.vocabulary, "chance": task.chance, "floor": task.floor,
    }  # fmt: skip
    if key == "markov":
        successors, stationary = chain()
        found |= {
            "first": stationary.cumsum()[:-1].tolist(), "next": SUCCESSOR_P.cumsum()[:-1].tolist(),
            "successors": successors.tolist(),
        }  # fmt: skip
    return found
