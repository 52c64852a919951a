"""The verdict of a run, from its losses alone."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from crossing_kit import case

from normviz import RunConfig
from normviz.runs import Recording, Steps
from normviz.runs.recording import of_seeds
from normviz.runs.verdict import (
    STILL,
    Verdict,
    beside_held_out,
    diverged,
    final_loss,
    judge,
    still_falls,
    tail_of,
)
from normviz.training.events import Diverged, Started, Step

CHANCE, FLOOR = 3.0, 1.0


def losses(*parts: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(n, value) for value, n in parts])


KINDS = [
        ("measured", losses((5.0, 1)), None),
        ("short", losses((3.0, 19)), None),
        ("learned", losses((3.0, 50), (2.0, 50)), None),
        ("learned little", losses((3.0, 80), (2.9, 20)), None),
        ("at chance", losses((3.0, 100)), 0),
        ("at chance", losses((9.0, 30), (3.0, 70)), 35),
        ("at chance", losses((2.95, 100)), 0),
        ("above", losses((3.2, 100)), None),
        ("above", losses((2.0, 50), (500.0, 50)), None),
        ("solved", losses((3.0, 40), (1.0, 60)), 45),
        ("learned in part", losses((3.0, 40), (1.0, 40), (2.0, 20)), None),
]  # fmt: skip


def test_judge() -> None:
    for kind, series, step in KINDS:
        with case(kind, step):
            steps = 0 if kind == "measured" else len(series)
            verdict = judge(series, steps, CHANCE, FLOOR)
            assert (verdict.kind, verdict.step) == (kind, step)
            assert verdict.sentence


UNSETTLED = [
        (  # left chance in its last ten steps: there is no plateau, and no step 334
            losses((3.0, 324), (2.8, 10)),
            "not settled: loss 2.94, give or take 0.18, chance 3.00",
        ),
        (  # came to chance, from below, in its last eight
            losses((2.0, 20), (3.0, 8)),
            "not settled: loss 3.00, give or take 0.55, chance 3.00",
        ),
        (np.linspace(3.9, 3.0, 90), "still falling: loss 3.04, chance 3.00"),
        (np.linspace(3.9, 3.0, 20), "still falling: loss 3.02, chance 3.00"),
        (np.linspace(50.0, 9.0, 90), "still falling: loss 10.84, chance 3.00"),
        (
            np.linspace(3.9, 2.0, 90),
            "learned little: loss 2.09, 46% of the way to the floor, still falling",
        ),
        (np.linspace(3.9, 1.4, 90), "learned: loss 1.51, 74% of the way to the floor, still falling"),
        (np.linspace(1.7, 1.5, 90), "learned: loss 1.51, 75% of the way to the floor"),
]  # fmt: skip


def test_what_has_not_settled_is_not_at_chance() -> None:
    for series, said in UNSETTLED:
        assert judge(series, len(series), CHANCE, FLOOR).sentence == said


def test_a_fall_that_is_certain_is_not_flat_however_slow() -> None:
    """As SGD at 3e-3, and as the copy task before it is solved: 1.1 and 0.7 % of chance in a fifth."""
    for first, last in ((3.5, 3.35), (3.03, 2.93)):
        for seed in range(20):
            slow = noisy(np.linspace(first, last, 150), 0.03, seed)
            assert sentence(slow).startswith("still falling: ")
    words = [sentence(noisy(np.full(150, CHANCE), 0.03, seed)) for seed in range(200)]
    assert sum(word.startswith("still falling") for word in words) <= 3


def test_a_plateau_says_only_what_was_seen() -> None:
    fell = losses((3.0, 60), (2.4, 60), (3.0, 180))
    rose = losses((3.6, 60), (3.0, 240))
    assert sentence(noisy(rose, 0.03)).startswith("at chance since step 6")
    assert re.match(r"back at chance since step 12\d: loss ", sentence(noisy(fell, 0.03)))


HELD_OUT = [
        (3.1, False, "learned: loss 1.00, 100% of the way to the floor"),
        (3.1, True, "memorised: training 1.00, held-out 3.10, chance 3.00"),
        (np.inf, True, "memorised: training 1.00, held-out inf, chance 3.00"),
        (2.95, True, "memorised: training 1.00, held-out 2.95, chance 3.00"),
        (1.2, True, "learned: training 1.00, held-out 1.20, chance 3.00"),
        (None, True, "learned: loss 1.00, 100% of the way to the floor"),
]  # fmt: skip


def test_a_run_that_memorised_its_examples_has_not_learned() -> None:
    falls = beside_held_out(
        Verdict("learned", "learned", falls=True), 1.0, 3.0, 1.2, is_finite=True
    )
    assert falls.falls and falls.sentence.endswith("chance 3.00, training still falling")
    said = Verdict("learned", "learned: loss 1.00, 100% of the way to the floor")
    near = Verdict("at chance", "at chance since step 0: loss 3.00, chance 3.00", 0)
    for held_out, is_finite, word in HELD_OUT:
        with case(held_out, is_finite):
            assert beside_held_out(said, 1.0, CHANCE, held_out, is_finite).sentence == word
            if word.startswith("memorised"):
                larger = beside_held_out(said, 2.0, CHANCE, held_out, is_finite).sentence
                assert larger == word.replace(
                    "memorised: training 1.00", "learned in training only: training 2.00"
                )
            assert beside_held_out(near, 3.0, CHANCE, held_out, is_finite) is near


def test_a_plateau_begins_at_a_step_that_the_run_has() -> None:
    rng = np.random.default_rng(0)
    for steps in [*range(20, 400, 7)] * 20:
        at, height = rng.integers(steps), rng.uniform(0.5, 1.5)
        series = np.where(np.arange(steps) < at, 1, height) * CHANCE + rng.normal(0, 0.05, steps)
        verdict = judge(series, steps, CHANCE, None)
        assert verdict.step is None or verdict.step <= steps - 10


def test_a_noisy_run_that_is_flat_at_chance_is_not_called_falling() -> None:
    """Normal noise, as of small batches."""
    rng = np.random.default_rng(0)
    noise = rng.normal(CHANCE, 0.5, (1000, 150))
    assert sum(still_falls(run, CHANCE) for run in noise) <= 5


def test_a_fall_counts_only_above_a_share_of_chance() -> None:
    assert STILL == 0.02
    down = np.linspace(0, -1, 100)  # a fifth of the steps lowers it by 0.2
    assert still_falls(CHANCE + 0.35 * down, CHANCE)
    assert not still_falls(CHANCE + 0.25 * down, CHANCE)


def noisy(mean: np.ndarray, size: float, seed: int = 0) -> np.ndarray:
    return mean + np.random.default_rng(seed).normal(0, size, len(mean))


def test_the_errors_of_the_tail_are_those_of_repeats() -> None:
    """Of 400 repeats with normal noise, the true level, mean and fall are within two errors in about 95 %."""
    mean = np.linspace(3.3, 2.7, 200)
    tails = [tail_of(noisy(mean, 0.1, seed)) for seed in range(400)]
    for name, truth in (("level", mean[-20:].mean()), ("fall", mean[0] - mean[40])):
        found = [getattr(tail, name) for tail in tails]
        within = np.mean([abs(value - truth) < 2 * error for value, error in found])
        assert 0.92 < within <= 0.99, name


def test_a_bend_shortens_the_tail() -> None:
    flat, bent = np.full(300, 3.0), 1 + 5 * np.exp(-np.arange(300) / 60)
    assert tail_of(noisy(flat, 0.05)).start == 100
    assert tail_of(noisy(bent, 0.05)).start > 100
    assert tail_of(noisy(bent, 0.05)).level[0] == pytest.approx(bent[-30:].mean(), abs=0.03)


def test_correlated_noise_makes_the_errors_larger() -> None:
    white = np.random.default_rng(0).normal(0, 0.1, 300)
    drifting = np.convolve(white, np.full(8, 8**-0.5), "same")
    assert tail_of(3 + drifting).mean[1] > 1.5 * tail_of(3 + white).mean[1]


def test_a_run_above_the_floor_is_not_solved_by_the_luck_of_a_window() -> None:
    """The true loss is 3.5 % of the way above the floor; the lowest mean of ten is below 2 %."""
    above = np.full(1000, FLOOR + 0.035 * (CHANCE - FLOOR))
    kinds = [judge(noisy(above, 0.055, seed), 1000, CHANCE, FLOOR).kind for seed in range(100)]
    assert kinds == ["learned"] * 100


def test_a_fall_through_chance_is_not_at_chance() -> None:
    """As Pre-LN with 2 blocks at a rate of 1e-4: from 3.9 to chance in 90 steps, and on."""
    for seed in range(50):
        through = noisy(np.linspace(3.92, 3.28, 90), 0.04, seed)
        assert judge(through, 90, 3.32, 1.11).sentence.startswith("still falling")


def test_noise_that_hides_the_word_leaves_it_open() -> None:
    """A loss at the very edge of the band at chance, with the noise of prose, is never called by its side."""
    for steps in (60, 100, 200, 400):
        edge = np.full(steps, CHANCE * 0.97)
        kinds = [judge(noisy(edge, 0.18, seed), steps, CHANCE, None).kind for seed in range(200)]
        assert kinds.count("not settled") >= 195


def test_half_of_the_way_is_said_only_where_it_is_sure() -> None:
    for level, word in ((1.8, "learned"), (2.2, "learned little"), (2.0, "learned in part")):
        assert sentence(noisy(np.full(100, level), 0.05)).startswith(f"{word}: ")


def test_without_a_floor_nothing_is_solved() -> None:
    assert judge(losses((0.0, 100)), 100, CHANCE, None).kind == "learned"


WHERE = [
    (4, "activation", "diverged at step 7, first in layer 4 (activation not finite)"),
    (None, "loss", "diverged at step 7, in the output head (loss not finite)"),
    (
        2,
        "blow-up",
        "diverged at step 7, loss above 100 times chance; stream blew up first in layer 2",
    ),
    (None, "blow-up", "diverged at step 7, loss above 100 times chance"),
]


def test_diverged_says_where() -> None:
    for layer, where, words in WHERE:
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


def ended(series: np.ndarray, held_out: float | None = None) -> Recording:
    """A run with these losses, which diverged if the last one is not finite."""
    config, n = RunConfig(depth=1, steps=len(series)), len(series)
    started = Started(config, "cpu", 1, 1, CHANCE, FLOOR, None)
    steps = [Step(i, loss, 0.1, 1.0, None) for i, loss in enumerate(series)]
    steps[-1] = replace(steps[-1], held_out=held_out)
    bad = None if np.isfinite(series[-1]) else Diverged(n - 1, 1, "blow-up")
    status = "diverged" if bad else "finished"
    return Recording(config, started, status, bad, steps=Steps.of(steps, 1))


def test_what_all_seeds_came_to() -> None:
    good, better = losses((3.0, 50), (1.24, 50)), losses((3.0, 50), (1.19, 50))
    two = [ended(good), ended(better)]
    assert of_seeds(two, 2) == "learned in 2 of 2 seeds: loss 1.19 to 1.24"
    assert of_seeds(two[:1], 1) == "learned in 1 of 1 seeds: loss 1.24"
    assert (
        of_seeds(two, 5) == "learned in 2 of 5 seeds: loss 1.19 to 1.24; 3 without a result so far"
    )
    assert of_seeds([], 5) == "none of 5 seeds has a result yet"
    lost = ended(losses((3.0, 9), (np.inf, 1)))
    mixed = [*two, ended(losses((3.0, 100)), held_out=3.02), lost]
    assert of_seeds(mixed, 4) == (
        "learned in 2 of 4 seeds, at chance in 1, diverged in 1: loss 1.19 to 3.00; held-out 3.02"
    )
    assert of_seeds([lost, lost], 2) == "diverged in 2 of 2 seeds"
