"""The tasks: what their batches are, and that chance and floor are what the sequences imply."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from task_kit import with_task

from normviz import RunConfig
from normviz.catalog import TASKS
from normviz.catalog.families import LANGUAGE
from normviz.model.batches import IGNORED
from normviz.model.corpora import SUCCESSORS
from normviz.model.data import Task, make_task

LARGE = RunConfig(depth=1, width=4, heads=1, seq_len=512, batch=256)
ALL_TASKS = pytest.mark.parametrize("key", LANGUAGE)


def task(key: str, **changes: int) -> Task:
    return make_task(with_task(LARGE, key).replace(**changes))


@ALL_TASKS
def test_batches_have_the_asked_shape(key: str) -> None:
    small = task(key, seq_len=6, batch=3)
    for x in small.batch(0):
        assert x.shape == (3, 6)
        assert x.dtype == np.int64
    inputs, targets = small.batch(1)
    assert inputs.min() >= 0
    assert max(inputs.max(), targets.max()) < small.vocabulary


@ALL_TASKS
def test_targets_are_the_next_tokens(key: str) -> None:
    """But where no input shows a target."""
    if TASKS[key].targets_hidden:
        return
    inputs, targets = task(key, seq_len=32, batch=8).batch(0)
    counted = targets[:, :-1] != IGNORED
    assert np.array_equal(targets[:, :-1][counted], inputs[:, 1:][counted])


@ALL_TASKS
def test_chance_is_above_the_floor(key: str) -> None:
    made = task(key)
    assert 0 < made.chance <= math.log(made.vocabulary) + 1e-12
    assert made.floor is None or 0 <= made.floor < made.chance


# Markov


def transition() -> np.ndarray:
    matrix = np.zeros((32, 32))
    for state, following in enumerate(SUCCESSORS):
        assert len(set(following)) == 4
        for successor, p in zip(following, (0.55, 0.25, 0.15, 0.05), strict=True):
            matrix[state, successor] = p
    return matrix


def stationary() -> np.ndarray:
    """pi P = pi with sum 1, by least squares."""
    equations = np.vstack([transition().T - np.eye(32), np.ones(32)])
    return np.linalg.lstsq(equations, np.append(np.zeros(32), 1.0), rcond=None)[0]


def test_markov_chance_and_floor_from_first_principles() -> None:
    made = task("markov")
    assert made.chance == pytest.approx(-sum(p * math.log(p) for p in stationary() if p > 0))
    assert made.floor == pytest.approx(-sum(p * math.log(p) for p in (0.55, 0.25, 0.15, 0.05)))
    assert made.chance == pytest.approx(3.319, abs=5e-4)


def test_markov_tokens_are_as_frequent_as_the_chain_says() -> None:
    inputs, targets = task("markov").batch(0)
    counts = np.bincount(inputs.ravel(), minlength=32) / inputs.size
    assert np.abs(counts - stationary()).max() < 0.005
    first = np.bincount(task("markov", seq_len=2).batch(0)[0][:, 0], minlength=32) / 256
    assert np.abs(first - stationary()).max() < 0.08  # sequences begin stationary
    pairs = np.zeros((32, 32))
    np.add.at(pairs, (inputs.ravel(), targets.ravel()), 1)
    assert (pairs[transition() == 0] == 0).all()
    rows = pairs.sum(1, keepdims=True)
    assert np.abs(pairs / rows - transition()).max() < 5 * 0.5 / math.sqrt(rows.min())


# Copy


def test_copy_repeats_and_counts_the_second_half_alone() -> None:
    made = task("copy", seq_len=16)
    inputs, targets = made.batch(0)
    assert np.array_equal(inputs[:, :8], inputs[:, 8:])
    counted = targets != IGNORED
    assert np.array_equal(np.flatnonzero(counted[0]), np.arange(7, 15))
    assert (counted == counted[0]).all()
    assert np.array_equal(targets[:, 7:15], inputs[:, :8])  # each is the first half once more
    assert made.chance == pytest.approx(math.log(32))
    assert made.floor == 0.0
    assert np.bincount(inputs.ravel(), minlength=32).min() > 0


# Prose


def text() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def test_prose_is_the_text_its_hash_names() -> None:
    made, whole = task("prose"), text()
    assert made.text == hashlib.sha256(whole.encode("utf-8")).hexdigest()
    assert made.vocabulary == len(set(whole))
    alphabet = sorted(set(whole))
    for row in task("prose", seq_len=64, batch=4).batch(3)[0]:
        assert "".join(alphabet[code] for code in row) in whole


def test_prose_chance_is_the_entropy_of_its_letters() -> None:
    whole = text()
    shares = [whole.count(letter) / len(whole) for letter in set(whole)]
    assert task("prose").chance == pytest.approx(-sum(p * math.log(p) for p in shares))


@pytest.mark.parametrize("key", ["markov", "copy"])
def test_synthetic_tasks_name_no_text(key: str) -> None:
    assert task(key).text is None
