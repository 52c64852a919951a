"""`normviz bench verdicts`: what counts as wrong, and that few words are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from normviz.bench.verdicts import (
    KINDS,
    Count,
    Cut,
    Noise,
    Simulated,
    cuts,
    leavers,
    shipped_runs,
    simulate,
)
from normviz.runs import Recording
from normviz.runs.statistics import wilson
from normviz.runs.verdict import Verdict, judge

CHANCE, FLOOR = 3.0, 1.0


@pytest.fixture(scope="module")
def runs() -> list[Recording]:
    return list(shipped_runs())


def said(word: str, step: int | None = None) -> Verdict:
    return Verdict(word, f"{word}: loss", step)


FLAT, FALLING = np.full(100, 3.0), np.linspace(3.3, 2.95, 100)
OFF = np.concatenate([np.full(70, 3.0), np.full(30, 2.5)])


WRONG = [
        (FLAT, "at chance", 0, False),
        (FLAT, "at chance", 100, True),
        (FLAT, "still falling", None, True),
        (FLAT, "above", None, True),
        (FLAT, "learned", None, True),
        (FLAT, "not settled", None, False),
        (FALLING, "at chance", 40, True),
        (FALLING, "still falling", None, False),
        (OFF, "at chance", 0, True),
        (OFF, "learned little", None, False),
        (OFF, "learned", None, True),
        (OFF, "learned in part", None, False),
        (np.full(100, 1.03), "solved", 0, False),
        (np.full(100, 1.07), "solved", 0, True),
        (np.concatenate([np.full(30, 2.0), np.full(70, 1.0)]), "solved", 0, True),
        (np.concatenate([np.full(30, 2.0), np.full(70, 1.0)]), "solved", 30, False),
]  # fmt: skip


def test_what_is_wrong_of_a_simulated_curve() -> None:
    for mu, word, step, wrong in WRONG:
        assert Simulated(mu, CHANCE, FLOOR, mu).is_wrong(said(word, step)) is wrong


def test_at_most_one_word_in_a_hundred_is_wrong_of_simulated_curves(
    runs: list[Recording],
) -> None:
    for kind in KINDS:
        count = Count()
        count.add(simulate(kind, Noise(runs), 150, seed=1), judge)
        low, _ = wilson(count.wrong.total(), count.said.total() - count.said["not settled"])
        assert low < 0.01, count.words()
        assert count.said["not settled"] < 0.45 * 150


def test_at_most_one_word_in_a_hundred_is_wrong_of_shipped_runs(runs: list[Recording]) -> None:
    assert len(runs) >= 300
    count = Count()
    for it in runs[::3]:
        count.add(cuts(it), judge)
    words = count.said.total() - count.said["not settled"]
    assert count.wrong.total() < 0.01 * words
    assert words > 0.85 * count.said.total()


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 100) == pytest.approx((0, 0.0370), abs=1e-4)
    assert wilson(5, 100) == pytest.approx((0.0215, 0.1118), abs=1e-4)
    assert wilson(0, 0) == (0, 1)


def test_runs_that_leave_chance_after_a_cut_are_counted() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, 300)
    stays, leaves = np.full(300, 3.0), np.concatenate([np.full(220, 3.0), np.linspace(3, 1, 80)])
    for mu, times, left in (
        (stays, 2, False),
        (leaves, 1, False),
        (leaves, 2, True),
        (leaves, 4, None),
    ):
        assert Cut(mu[:100], CHANCE, FLOOR, mu + noise).has_left(times) is left


def test_a_plateau_is_said_to_be_one_so_far(runs: list[Recording]) -> None:
    """A part of the runs that are at chance leave it: no word may say that they stay."""
    head, *lines = leavers(runs[::3])
    assert "at a cut" in head and len(lines) == 3
    at_chance = [it.verdict.sentence for it in runs if it.is_at_chance]
    assert len(at_chance) > 100
    assert all(
        it.startswith(("at chance so far, since", "back at chance since")) for it in at_chance
    )
    for line in lines:
        left, known = (
            int(x) for x in re.findall(r"([\d,]+) of ([\d,]+)", line.replace(",", ""))[0]
        )
        assert 0.05 * known < left < 0.5 * known
