"""Every comparison of a scheme with an implementation that nobody here wrote.

`python tests/parity/parity_peers.py` measures them all and writes the table that ships.
"""

from __future__ import annotations

import json
from pathlib import Path

import parity_decoders
import parity_older
import parity_sphere
import parity_streams
import parity_x
from parity_kit import Comparison, measure

from normviz.catalog import models

COMPARISONS: tuple[Comparison, ...] = (
    *parity_older.COMPARISONS,
    *parity_decoders.COMPARISONS,
    *parity_x.COMPARISONS,
    *parity_streams.COMPARISONS,
    *parity_sphere.COMPARISONS,
)

if __name__ == "__main__":
    table: dict[str, dict[str, float]] = {}
    for comparison in COMPARISONS:
        # Two digits: the last bits differ between machines.
        difference = float(f"{measure(comparison):.1e}")
        table.setdefault(comparison.scheme, {})[comparison.oracle] = difference
    Path(models.PARITY_TABLE).write_text(json.dumps(table, indent=1) + "\n")
