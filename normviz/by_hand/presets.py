"""Example tables."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.registry import Registry
from .example import Example
from .numbers import Matrix


@dataclass(frozen=True)
class Preset:
    """A table and the cell that is selected at first."""

    key: str
    label: str
    x: Matrix
    row: int = 1
    feature: int = 1

    def example(self) -> Example:
        """The table with gamma 1, beta 0 and no experiment."""
        features = len(self.x[0])
        return Example(
            self.x, (1.0,) * features, (0.0,) * features, row=self.row, feature=self.feature
        )


USUAL: Matrix = ((1, 2, 3, 6), (2, 0, -1, 3), (4, 4, 2, -2), (1, -2, 0, 5))

PRESETS = Registry(
    "preset",
    (
        Preset("usual", "Four rows", USUAL, 1, 4),
        Preset("outlier", "One outlier", (USUAL[0], (2, 0, 60, 3), *USUAL[2:]), 2, 3),
        Preset("constant", "Constant row", (USUAL[0], (5, 5, 5, 5), *USUAL[2:]), 2, 1),
        Preset("sample", "One sample", USUAL[:1], 1, 4),
        Preset(
            "shifted", "Rows shifted by 10", tuple(tuple(v + 10 for v in r) for r in USUAL), 1, 4
        ),
        Preset(
            "scaled", "Rows scaled by 100", tuple(tuple(v * 100 for v in r) for r in USUAL), 1, 4
        ),
        Preset(
            "large",
            "Six by eight",
            (
                (1, 2, 3, 6, 0, -1, 4, 1),
                (2, 0, -1, 3, 5, 2, -3, 0),
                (4, 4, 2, -2, 1, 0, 1, 6),
                (1, -2, 0, 5, 2, 3, -4, 3),
                (0, 1, -5, 2, 7, 1, 2, 0),
                (3, 3, 1, 0, -1, -2, 6, 2),
            ),
            3,
            4,
        ),
    ),
)
