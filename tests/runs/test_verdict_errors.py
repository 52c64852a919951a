"""`normviz bench verdicts`: what counts as wrong, and that few words are."""

from __future__ import annotations

import pytest

from normviz.cli.bench_verdicts import KINDS, Count, Noise, cuts, shipped_runs, simulate
from normviz.runs import Recording
from normviz.runs.statistics import wilson
from normviz.runs.verdict import Verdict, judge


@pytest.fixture(scope="module")
def runs() -> list[Recording]:
    return list(shipped_runs())


@pytest.mark.slow
def test_at_most_one_word_in_a_hundred_is_wrong_of_simulated_curves(
    runs: list[Recording],
) -> None:
    """Of all kinds together; of one kind no more than chance gives to three in a hundred."""
    wrong, words, noise = 0, 0, Noise(runs)
    for kind in KINDS:
        count = Count()
        count.add(simulate(kind, noise, 150, seed=1), judge)
        said = count.uses.total() - count.uses["not settled"]
        wrong, words = wrong + count.wrong.total(), words + said
        low, _ = wilson(count.wrong.total(), said)
        assert low < 0.03, count.words()
        assert count.uses["not settled"] < 0.45 * 150
    assert wrong < 0.01 * words


@pytest.mark.slow
def test_at_most_one_word_in_a_hundred_is_wrong_of_shipped_runs(runs: list[Recording]) -> None:
    assert len(runs) >= 300
    count = Count()
    for it in runs[::9]:
        count.add(cuts(it), judge)
    words = count.uses.total() - count.uses["not settled"]
    assert count.wrong.total() < 0.01 * words
    assert words > 0.85 * count.uses.total()


@pytest.mark.slow
def test_a_rule_that_says_one_word_of_all_is_often_wrong(runs: list[Recording]) -> None:
    count, noise = Count(), Noise(runs)
    for kind in KINDS:
        count.add(simulate(kind, noise, 8), lambda *_: Verdict("at chance", "at chance", 0))
    assert count.wrong["at chance"] > 0.8 * count.uses["at chance"]


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 100) == pytest.approx((0, 0.0370), abs=1e-4)
    assert wilson(5, 100) == pytest.approx((0.0215, 0.1118), abs=1e-4)
    assert wilson(0, 0) == (0, 1)
