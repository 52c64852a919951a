"""What was measured against implementations by others: the largest relative difference of streams,
logits and gradients between a scheme and each of its oracles, in float64."""

from __future__ import annotations

import json
from pathlib import Path

TABLE = Path(__file__).with_name("parity.json")
TOLERANCE = 1e-10
"""Of every comparison, and of every scheme with its independent twin in the tests."""


def differences() -> dict[str, dict[str, float]]:
    """By scheme and oracle."""
    return json.loads(TABLE.read_text(encoding="utf-8"))
