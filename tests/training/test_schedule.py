"""The learning rate of each step, and the steps at which layers are recorded."""

from __future__ import annotations

import itertools
import math

import pytest

from normviz import RunConfig
from normviz.training.schedule import DENSE, MOST_RECORDS, lr_at, recorded

PEAK = RunConfig(lr=0.5, steps=10, warmup=4)


@pytest.mark.parametrize(
    ("config", "rates"),
    [
        (PEAK, [0.125, 0.25, 0.375, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
        (PEAK.replace(warmup=0), [0.5] * 10),
        (
            PEAK.replace(schedule="linear"),
            [0.125, 0.25, 0.375, 0.5, *(0.5 * (6 - k) / 6 for k in range(6))],
        ),
        (
            PEAK.replace(schedule="cosine"),
            [0.125, 0.25, 0.375, 0.5, *(0.25 * (1 + math.cos(math.pi * k / 6)) for k in range(6))],
        ),
        (
            PEAK.replace(lr_edits=((2, 0.1), (7, 0.2))),
            [0.125, 0.25, 0.075, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2],
        ),
        (PEAK.replace(warmup=20, steps=10), [0.5 * (s + 1) / 20 for s in range(10)]),
    ],
    ids=["warm-up", "constant", "linear", "cosine", "edits", "longer warm-up than run"],
)
def test_learning_rate(config: RunConfig, rates: list[float]) -> None:
    assert [lr_at(config, step) for step in range(10)] == pytest.approx(rates)


@pytest.mark.parametrize("steps", [0, 1, 31, 32, 33, 200, 1000, 1137, 19_999, 20_000])
def test_layers_are_recorded_densely_first_evenly_later_and_last(steps: int) -> None:
    at, last = list(recorded(RunConfig(steps=steps, depth=1))), max(1, steps) - 1
    assert at[: DENSE + 1] == list(range(min(DENSE, last + 1))) + at[DENSE : DENSE + 1]
    assert (at[-1], len(at) <= MOST_RECORDS) == (last, True)
    gaps = [b - a for a, b in itertools.pairwise(at[DENSE - 1 :])]
    assert len(set(gaps[1:-1])) <= 1
    assert min(gaps, default=1) > 0
