"""What a story reads from a finished run: numbers at a step and a layer, as words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..store import Run, Steps
from ..verdict import Verdict, final_loss


@dataclass(frozen=True)
class Told:
    """A lane's finished run. `verdict` is what came of it."""

    run: Run
    steps: Steps
    verdict: Verdict

    @property
    def depth(self) -> int:
        return self.run.config.depth

    @property
    def last(self) -> int:
        """The last step whose layers are recorded."""
        return int(self.steps.layer_steps[-1])

    @property
    def final(self) -> float:
        """Mean loss of the last tenth of the steps, in nats."""
        return final_loss(self.steps.loss)

    @property
    def chance(self) -> float:
        """Loss of the best guess that ignores the context, in nats."""
        return self.run.chance or math.nan

    @property
    def floor(self) -> float:
        """Lowest reachable loss in nats, NaN where unknown."""
        return math.nan if self.run.floor is None else self.run.floor

    @property
    def is_stuck(self) -> bool:
        return self.verdict.kind == "stuck"

    @property
    def has_learned(self) -> bool:
        return self.verdict.kind in ("learned", "solved")

    def at(self, probe: str, step: int, layer: int) -> float:
        """A probe's value; layer 0 is the embedding, -1 the last block. NaN where not recorded."""
        rows = np.flatnonzero(self.steps.layer_steps == step)
        if not len(rows):
            return math.nan
        return float(self.steps.layers[rows[0], self.run.probes.index(probe), layer])

    def last_over_first(self, step: int) -> float:
        """Parameter gradient of the last block over that of the first, at a step."""
        first = self.at("grad_block", step, 1)
        return self.at("grad_block", step, -1) / first if first else math.inf


def loss(value: float) -> str:
    """A loss as the lanes print it: 1.19."""
    return f"{value:.2f}"


def short(value: float) -> str:
    """Two significant digits without an exponent where people can read it: 3.7, 0.012, 2e-8."""
    if not math.isfinite(value):
        return "not finite"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    if not value:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f}"


def ratio(value: float) -> str:
    """How many times larger, or smaller: "3,500 times", "1/2.5 times"."""
    if 0 < value < 1:
        return f"1/{short(1 / value)} times"
    return f"{short(value)} times"
