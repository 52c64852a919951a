"""The masked chain and pointer chasing: what their batches are, and the floor by counting and by sampling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from normviz import RunConfig
from normviz.catalog import TASKS
from normviz.catalog.tasks import ENTRIES, HOPS
from normviz.model.batches import IGNORED
from normviz.model.characters import entropy
from normviz.model.corpora import STATES, SUCCESSORS, masked_count, masked_floor, stationary
from normviz.model.data import make_task

LARGE = RunConfig(depth=1, width=4, heads=1, seq_len=64, batch=256)


def transition() -> np.ndarray:
    matrix = np.zeros((STATES, STATES))
    for state, following in enumerate(SUCCESSORS):
        matrix[state, following] = (0.55, 0.25, 0.15, 0.05)
    return matrix


def test_masked_hides_15_percent_and_counts_them_alone() -> None:
    task = make_task(LARGE.replace(task="masked"))
    inputs, targets = task.batch(3)
    hidden = inputs == STATES
    assert (hidden.sum(1) == 10).all() and masked_count(64) == 10
    assert np.array_equal(targets != IGNORED, hidden)
    states = np.where(hidden, targets, inputs)
    assert set(np.unique(states)) <= set(range(STATES))
    assert (transition()[states[:, :-1], states[:, 1:]] > 0).all(), "the whole row is the chain's"
    assert np.abs(hidden.mean(0) - 10 / 64).max() < 0.1, "every position is hidden as often"
    assert masked_count(2) == 1


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_floor_of_masked_is_the_mean_over_all_masks(n: int, both: bool) -> None:
    """By summation over all masks and all rows of states."""
    step, often, total, count = transition(), stationary(), 0.0, 0
    for mask in itertools.combinations(range(n), masked_count(n)):
        for at in mask:
            before = [at - i for i in range(at) if i not in mask][-1:]
            after = [i - at for i in range(at + 1, n) if i not in mask][:1] if both else []
            # p[b, x, a]: the state, the shown one before it and the one after it; of size 1 if there is none.
            p = often[None, :, None]
            if before:
                p = (often[:, None] * np.linalg.matrix_power(step, before[0]))[:, :, None]
            if after:
                p = p * np.linalg.matrix_power(step, after[0])[None]
            total += entropy(p.ravel()) - entropy(p.sum(1).ravel())
            count += 1
    assert masked_floor(n, both) == pytest.approx(total / count, abs=1e-9)


def test_both_neighbours_help_and_long_sequences_have_a_lower_floor() -> None:
    assert 0 < masked_floor(32, True) < masked_floor(32, False) < entropy(stationary())
    assert masked_floor(64, True) < masked_floor(32, True)


@pytest.mark.parametrize("n", [4, 6, 16, 33, 64])
def test_hops_follow_the_table(n: int) -> None:
    task = make_task(LARGE.replace(task="hops", seq_len=n))
    inputs, targets = task.batch(5)
    entries = min(ENTRIES, n // 2)
    table, start, got = inputs[:, :entries], inputs[:, entries:], targets[:, entries:]
    assert (targets[:, :entries] == IGNORED).all()
    assert (np.sort(table, 1) == np.arange(entries)).all()
    asked = n - entries
    for row in range(8):
        for i in range(asked):
            at = start[row, i]
            for _ in range(1 + i * HOPS // asked):
                at = table[row, at]
            assert got[row, i] == at
    assert task.chance == pytest.approx(math.log(entries))
    shares = np.bincount(got.ravel(), minlength=entries) / got.size
    assert shares == pytest.approx(1 / entries, abs=0.02)


def test_hops_need_a_table() -> None:
    with pytest.raises(ValueError, match="seq_len is 3, but pointer chasing needs sequences of 4"):
        RunConfig(task="hops", seq_len=3)


def test_only_tasks_without_shown_targets_hide_them() -> None:
    assert [record.key for record in TASKS if record.targets_hidden] == ["masked", "hops"]


def test_prose_split_is_prose_without_its_last_tenth() -> None:
    whole, split = (make_task(LARGE.replace(task=key)) for key in ("prose", "prose_split"))
    joined = np.concatenate([split.codes, split.unread])
    assert np.array_equal(joined, whole.codes)
    assert len(split.unread) == len(joined) // 10
    assert (split.text, split.vocabulary) == (whole.text, whole.vocabulary)
