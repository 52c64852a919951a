"""Learning rates that are chosen for each seed on the other seeds, and how far a choice on others moves what
is measured at them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .record import Apart, ChosenRate, Claim, Combined, Tuned, read_name
from .rule import Drawn, Numbers

DRAWS = 400
"""How often seeds are drawn again."""
NEVER = 1e9
"""What a number counts as that is not finite: steps to a loss that was not reached."""

Floats = NDArray[Any]


def filled(claim: Claim, read: Numbers) -> dict[str, list[float]]:
    """The numbers that were read off runs, one value a seed, and those that follow from them: a rate is the
    one with the lowest mean over all other seeds, a distance that from the median of all seeds."""
    derived = {
        **_derived(claim, read, _chosen),
        **{
            name: distances(np.array(read[number.of.name]))
            for name, number in claim.numbers.items()
            if isinstance(number.of, Apart)
        },
    }
    return {
        **{
            name: derived[name].tolist() if name in derived else list(read[name])
            for name in claim.numbers
        },
        **{name: list(read[name]) for name in claim.read if name not in claim.numbers},
    }


def distances(values: Floats) -> Floats:
    """How far each number [..., seeds] is from the median of all seeds. NaN where that is not finite."""
    with np.errstate(invalid="ignore"):
        return np.abs(values - np.median(values, axis=-1, keepdims=True))


def redrawn(claim: Claim, numbers: Numbers) -> Drawn | None:
    """The numbers at chosen rates of seeds that are drawn again 400 times; None of a claim that chooses no
    rate."""
    if not claim.tuned:
        return None
    seeds = _seeds(len(next(iter(numbers.values()))))
    derived = _derived(claim, numbers, _chosen_again)
    return Drawn({n: np.take_along_axis(values, seeds, 1) for n, values in derived.items()}, seeds)


def _derived(
    claim: Claim, read: Numbers, choose: Callable[[Floats], NDArray[np.intp]]
) -> dict[str, Floats]:
    rows, rates, derived = dict[str, Any](), dict[str, Floats](), dict[str, Floats]()
    for name, number in claim.numbers.items():
        if isinstance(number.of, Tuned):
            rates[name] = np.array(claim.rates[name])
            tried = np.array([read[read_name(name, rate)] for rate in rates[name]])
            rows[name] = rows[number.of.like] if number.of.like else choose(tried)
            derived[name] = tried[rows[name], np.arange(tried.shape[1])]
    for name, number in claim.numbers.items():
        if isinstance(number.of, ChosenRate):
            derived[name] = rates[number.of.name][rows[number.of.name]]
        elif isinstance(number.of, Combined):
            with np.errstate(all="ignore"):
                derived[name] = number.of.combine(
                    derived[number.of.first], derived[number.of.second]
                )
    return derived


def _chosen(tried: Floats) -> NDArray[np.intp]:
    n = tried.shape[1]
    return _lowest(tried, 1 - np.eye(n))


def _chosen_again(tried: Floats) -> NDArray[np.intp]:
    return _lowest(tried, _weights(tried.shape[1]))


def _lowest(tried: Floats, weights: Floats) -> NDArray[np.intp]:
    """Of each row of weights over the seeds the first rate with the lowest weighted sum."""
    finite = np.where(np.isfinite(tried), tried, NEVER)
    return np.argmin(weights @ finite.T, axis=-1)


@cache
def _seeds(n: int) -> NDArray[np.intp]:
    """The indices of the seeds of each draw, of n: the same for all arms, which share their seeds."""
    return np.random.default_rng(0).integers(0, n, (DRAWS, n))


@cache
def _weights(n: int) -> Floats:
    """For each draw and seed how often every other seed was drawn; all of them once where none was."""
    counts = np.stack([np.bincount(row, minlength=n) for row in _seeds(n)]).astype(float)
    others = 1 - np.eye(n)
    weights = counts[:, None, :] * others
    return np.where(weights.any(axis=-1, keepdims=True), weights, others)
