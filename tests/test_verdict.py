"""The verdict of a run, from its losses alone."""

from __future__ import annotations

import numpy as np
import pytest

from normviz.verdict import diverged, final_loss, judge, of_seeds

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
    assert of_seeds(ended, 2) == "learned in 2 of 2: 1.19 to 1.24"
    assert of_seeds(ended[:1], 1) == "learned in 1 of 1: 1.24"
    assert of_seeds(ended, 5) == "learned in 2 of 5: 1.19 to 1.24; 3 without a result"
    assert of_seeds([], 5) == "none of 5 seeds has a result yet"
    lost = (diverged(9, 3, "blow-up").sentence, bad)
    mixed = [*ended, (sentence(stuck), stuck), lost]
    assert of_seeds(mixed, 4) == (
        "learned in 2 of 4, stuck at chance in 1, diverged in 1: 1.19 to 3.00"
    )
    assert of_seeds([lost, lost], 2) == "diverged in 2 of 2"
