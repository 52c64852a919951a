"""The batches of the tasks as functions of a generator, torch-free. An exported script quotes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..catalog.tasks import HOPS
from .corpora import STATES, SUCCESSOR_P, SUCCESSORS, Tokens, masked_count, stationary
from .draws import Floats, below, generator, uniform

Features = NDArray[np.float32]
IGNORED = -100
"""Target of a position that the loss does not count."""


def markov(rng: np.random.Generator, rows: int, length: int) -> tuple[Tokens, Tokens]:
    """States of the chain as inputs, and the next ones as targets [rows, length]."""
    states = np.empty((length + 1, rows), np.int64)
    states[0] = choices(stationary(), uniform(rng, rows))
    picks = choices(SUCCESSOR_P, uniform(rng, (length, rows)))
    for t in range(length):
        states[t + 1] = SUCCESSORS[states[t], picks[t]]
    sequences = np.ascontiguousarray(states.T)
    return sequences[:, :-1], sequences[:, 1:]


def choices(p: Floats, numbers: Floats) -> Tokens:
    """Indices with the probabilities p [n], from uniform numbers of any shape."""
    return np.searchsorted(p.cumsum()[:-1], numbers, side="right")


def masked(rng: np.random.Generator, rows: int, length: int) -> tuple[Tokens, Tokens]:
    """States of the chain [rows, length], some of them replaced by a mask symbol; those are the targets."""
    states, _ = markov(rng, rows, length)
    order = uniform(rng, states.shape).argsort(1)
    hidden = np.zeros(states.shape, bool)
    np.put_along_axis(hidden, order[:, : masked_count(length)], True, 1)
    return np.where(hidden, STATES, states), np.where(hidden, states, IGNORED)


def hops(rng: np.random.Generator, rows: int, length: int, entries: int) -> tuple[Tokens, Tokens]:
    """A random table, then starts [rows, length]. The target of a start is where the table leads from it in
    1 hop, of later ones in up to HOPS; the table is not counted."""
    starts = length - entries
    table = uniform(rng, (rows, entries)).argsort(1)
    at = start = below(rng, entries, (rows, starts))
    for hop in range(HOPS):
        goes_on = np.arange(starts) * HOPS // starts >= hop
        at = np.where(goes_on, np.take_along_axis(table, at, 1), at)
    targets = np.concatenate([np.full((rows, entries), IGNORED), at], axis=1)
    return np.concatenate([table, start], axis=1), targets


def copied(rng: np.random.Generator, rows: int, length: int, kinds: int) -> tuple[Tokens, Tokens]:
    """Random tokens, then the same once more [rows, length]; only the second half is counted."""
    half = length // 2
    first = below(rng, kinds, (rows, half))
    tokens = np.concatenate([first, first], axis=1)
    targets = np.roll(tokens, -1, axis=1)
    targets[:, : half - 1] = IGNORED
    targets[:, -1] = IGNORED  # what follows the copy is not determined
    return tokens, targets


def pieces(
    rng: np.random.Generator, codes: Tokens, rows: int, length: int
) -> tuple[Tokens, Tokens]:
    """Pieces of a text [n] from random offsets, and the next characters [rows, length]."""
    return cut(codes, below(rng, len(codes) - length, rows), length)


def cut(codes: Tokens, starts: Tokens, length: int) -> tuple[Tokens, Tokens]:
    """The pieces of a text [n] from these offsets [rows], and the next characters [rows, length]."""
    windows = codes[starts[:, None] + np.arange(length + 1)]
    return windows[:, :-1], windows[:, 1:]


def examples(
    rng: np.random.Generator, features: Features, labels: Tokens, trained: int, rows: int
) -> tuple[Features, Tokens]:
    """Features [rows, F] and labels [rows] of random examples among the first `trained`."""
    picked = below(rng, trained, rows)
    return features[picked], labels[picked]


def shown(labels: Tokens, seed: int, each: int) -> NDArray[np.bool_]:
    """Whether training counts each node [N]: as many of each class, chosen by the seed."""
    order = uniform(generator("shown", seed), len(labels)).argsort()
    first = [order[labels[order] == kind][:each] for kind in range(labels.max() + 1)]
    return np.isin(np.arange(len(labels)), np.concatenate(first))
