"""The data of the tasks, torch-free: the Markov chain with its entropies, and the prose that ships with
Python."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from .characters import entropy

Tokens = NDArray[np.int64]

STATES = 32
SUCCESSOR_P = np.array([0.55, 0.25, 0.15, 0.05])
SUCCESSORS = np.array([
    [2, 0, 29, 16], [2, 9, 19, 28], [19, 8, 11, 20], [27, 17, 25, 7],
    [17, 25, 9, 29], [7, 27, 8, 2], [4, 28, 13, 30], [18, 11, 8, 14],
    [22, 16, 5, 29], [20, 3, 31, 1], [29, 20, 15, 27], [22, 24, 30, 14],
    [3, 23, 8, 22], [17, 30, 2, 9], [10, 13, 20, 25], [31, 20, 4, 27],
    [12, 20, 8, 17], [26, 9, 28, 27], [27, 20, 29, 26], [22, 28, 24, 31],
    [23, 30, 28, 17], [31, 0, 3, 7], [25, 14, 27, 29], [31, 13, 4, 15],
    [20, 12, 11, 1], [6, 1, 23, 18], [0, 28, 31, 11], [30, 14, 8, 23],
    [24, 20, 21, 1], [27, 22, 4, 8], [10, 7, 31, 15], [1, 8, 9, 27],
])  # fmt: skip
"""The four states that may follow each state [32, 4], a part of the task and not of the run: chance and floor
are the same in every run. A random table in which every state is visited, with a unigram entropy of 3.319
nats."""


def transition() -> NDArray[np.float64]:
    """[32, 32]: the probability of each state after each state."""
    p = np.zeros((STATES, STATES))
    np.put_along_axis(p, SUCCESSORS, SUCCESSOR_P[None, :], axis=1)
    return p


@lru_cache
def stationary() -> NDArray[np.float64]:
    """The stationary distribution of the chain [32]."""
    return np.linalg.matrix_power(transition(), 4096)[0]


def masked_count(seq_len: int) -> int:
    """How many positions of a sequence are hidden: 15 % of them, at least one."""
    return max(1, (3 * seq_len + 10) // 20)


@lru_cache
def masked_floor(seq_len: int, both_sides: bool) -> float:
    """Mean entropy in nats of a hidden state of the chain, given the nearest shown state before it, and with
    `both_sides` also the nearest one after it. Other shown states add nothing, as the chain is Markov.

    The hidden positions are `masked_count` of `seq_len`, all sets of them equally likely.
    """
    m, last, total = masked_count(seq_len), seq_len - 1, 0.0
    for i in range(m):  # hidden states right before the state, and right after it
        for j in range(m - i if both_sides else 1):
            # Of how many positions is there a shown state before the gap, and after it?
            if both_sides:
                cases = {
                    (True, True): max(0, last - 1 - i - j), (True, False): int(i + j < last),
                    (False, True): int(i + j < last), (False, False): int(i + j == last),
                }  # fmt: skip
            else:
                cases = {(True, False): last - i, (False, False): 1}
            for (left, right), positions in cases.items():
                free = last - i - j - left - right
                if positions and free >= 0:
                    p = comb(free, m - 1 - i - j) / comb(last, m - 1)
                    gap = _gap_entropy(i + 1 if left else None, j + 1 if right else None)
                    total += positions * p * gap
    return total / seq_len


@lru_cache(maxsize=4096)
def _gap_entropy(before: int | None, after: int | None) -> float:
    """Entropy of a state, given the state so many steps before it and the one so many after it; None where
    that one is not known."""
    p, unigram = transition(), stationary()
    powers = [np.linalg.matrix_power(p, n or 0) for n in (before or 0, after or 0)]
    prior = unigram[None] if before is None else unigram[:, None] * powers[0]  # [earlier, state]
    later = 1.0 if after is None else powers[1][None]
    joint = prior[..., None] * later  # [earlier, state, later]
    return entropy(joint.ravel()) - entropy(joint.sum(1).ravel())


@lru_cache
def prose() -> tuple[Tokens, str, str]:
    """The text as codes [n], its alphabet, and the SHA-256 of its UTF-8 bytes."""
    from pydoc_data.topics import topics  # 0.7 MB of source: imported only where it is needed

    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = "".join(sorted(set(text)))
    codes = np.searchsorted(np.array(list(alphabet)), np.array(list(text))).astype(np.int64)
    return codes, alphabet, hashlib.sha256(text.encode()).hexdigest()
