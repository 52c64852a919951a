"""The verdict of a run, from its losses alone."""

from __future__ import annotations

import numpy as np
import pytest

from normviz.runs.verdict import ERRORS, STILL, diverged, final_loss, judge, of_seeds, still_falls

CHANCE, FLOOR = 3.0, 1.0


def losses(*parts: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(n, value) for value, n in parts])


@pytest.mark.parametrize(
    ("kind", "series", "step"),
    [
        ("measured", losses((5.0, 1)), None),
        ("short", losses((3.0, 19)), None),
        ("learned", losses((3.0, 50), (2.0, 50)), None),
        ("learned", losses((3.0, 80), (2.9, 20)), None),
        ("stuck", losses((3.0, 100)), 0),
        ("stuck", losses((9.0, 30), (3.0, 70)), 39),
        ("stuck", losses((2.95, 100)), 0),
        ("above", losses((3.2, 100)), None),
        ("above", losses((2.0, 50), (500.0, 50)), None),
        ("solved", losses((3.0, 40), (1.0, 60)), 49),
        ("learned", losses((3.0, 40), (1.0, 40), (2.0, 20)), None),
    ],
)  # fmt: skip
def test_judge(kind: str, series: np.ndarray, step: int | None) -> None:
    steps = 0 if kind == "measured" else len(series)
    verdict = judge(series, steps, CHANCE, FLOOR)
    assert (verdict.kind, verdict.step) == (kind, step)
    assert verdict.sentence


@pytest.mark.parametrize(
    ("series", "sentence"),
    [
        (  # left chance in its last ten steps: there is no plateau, and no step 334
            losses((3.0, 324), (2.8, 10)),
            "not settled near chance: loss 2.94, of the last 10 steps 2.80, chance 3.00",
        ),
        (  # came to chance, from below, in its last eight
            losses((2.0, 20), (3.0, 8)),
            "not settled near chance: loss 3.00, of the last 10 steps 2.80, chance 3.00",
        ),
        (np.linspace(3.9, 3.0, 90), "still falling: loss 3.04, chance 3.00"),
        (np.linspace(3.9, 3.0, 20), "still falling: loss 3.02, chance 3.00"),
        (np.linspace(50.0, 9.0, 90), "still falling: loss 10.84, chance 3.00"),
        (np.linspace(3.9, 2.0, 90), "learned little: loss 2.09, 46% of the way to the floor"),
    ],
)  # fmt: skip
def test_what_has_not_settled_is_not_stuck(series: np.ndarray, sentence: str) -> None:
    verdict = judge(series, len(series), CHANCE, FLOOR)
    assert verdict.sentence == sentence


@pytest.mark.parametrize("steps", range(20, 400, 7))
def test_a_plateau_begins_at_a_step_that_the_run_has(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for _ in range(50):
        at, height = rng.integers(steps), rng.uniform(0.5, 1.5)
        series = np.where(np.arange(steps) < at, 1, height) * CHANCE + rng.normal(0, 0.05, steps)
        verdict = judge(series, steps, CHANCE, None)
        assert verdict.step is None or verdict.step <= steps - 10


def test_a_noisy_run_that_is_flat_at_chance_is_not_called_falling() -> None:
    """Normal noise, as of small batches. At two standard errors 30 of these 1000 counted as falling."""
    rng = np.random.default_rng(0)
    noise = rng.normal(CHANCE, 0.5, (1000, 150))
    assert sum(still_falls(run, CHANCE) for run in noise) <= 5


def test_a_fall_counts_only_above_a_share_of_chance() -> None:
    assert STILL == 0.02 and ERRORS == 3
    down = np.linspace(0, -1, 100)  # the last fifth lies 0.2 lower than the one before
    assert still_falls(CHANCE + 0.35 * down, CHANCE)
    assert not still_falls(CHANCE + 0.25 * down, CHANCE)


def test_without_a_floor_nothing_is_solved() -> None:
    assert judge(losses((0.0, 100)), 100, CHANCE, None).kind == "learned"


def test_progress_is_told_as_a_share_of_the_way() -> None:
    assert "50% of the way" in judge(losses((2.0, 100)), 100, CHANCE, FLOOR).sentence


@pytest.mark.parametrize(
    ("layer", "where", "words"),
    [
        (4, "activation", "diverged at step 7, first in layer 4 (activation not finite)"),
        (None, "loss", "diverged at step 7, in the output head (loss not finite)"),
        (2, "blow-up", "diverged at step 7, first in layer 2 (loss above 100 times chance)"),
    ],
)
def test_diverged_says_where(layer: int | None, where: str, words: str) -> None:
    verdict = diverged(7, layer, where)
    assert verdict.sentence == words
    assert (verdict.step, verdict.layer) == (7, layer)


def test_final_loss_is_the_mean_of_the_last_tenth() -> None:
    assert final_loss(np.arange(200.0)) == np.arange(180, 200).mean()
    assert final_loss(np.array([4.0, 5.0])) == 5.0
    assert np.isnan(final_loss(np.array([])))
    assert np.isinf(final_loss(np.array([1.0, np.inf])))


def sentence(series: np.ndarray) -> str:
    return judge(series, len(series), CHANCE, FLOOR).sentence


def test_what_all_seeds_came_to() -> None:
    good, better = losses((3.0, 50), (1.24, 50)), losses((3.0, 50), (1.19, 50))
    stuck, bad = losses((3.0, 100)), losses((3.0, 9), (1e9, 1))
    ended = [(sentence(series), series) for series in (good, better)]
    assert of_seeds(ended, 2) == "learned in 2 of 2 seeds: loss 1.19 to 1.24"
    assert of_seeds(ended[:1], 1) == "learned in 1 of 1 seeds: loss 1.24"
    assert of_seeds(ended, 5) == "learned in 2 of 5 seeds: loss 1.19 to 1.24; 3 without a result"
    assert of_seeds([], 5) == "none of 5 seeds has a result yet"
    lost = (diverged(9, 3, "blow-up").sentence, bad)
    mixed = [*ended, (sentence(stuck), stuck), lost]
    assert of_seeds(mixed, 4) == (
        "learned in 2 of 4 seeds, stuck at chance in 1, diverged in 1: loss 1.19 to 3.00"
    )
    assert of_seeds([lost, lost], 2) == "diverged in 2 of 2 seeds"
