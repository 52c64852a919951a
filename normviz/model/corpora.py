"""The data of the tasks, torch-free: the Markov chain, and the prose that ships with Python."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]

STATES = 32
SUCCESSOR_P = np.array([0.55, 0.25, 0.15, 0.05])
CHAIN_SEED = 242
"""The chain is part of the task, not of the run: chance and floor are the same in every run.
With this seed every state is visited and the unigram entropy is 3.319 nats."""


@lru_cache
def chain() -> tuple[Tokens, NDArray[np.float64]]:
    """The chain's successors [32, 4] and its stationary distribution [32]."""
    rng = np.random.default_rng(CHAIN_SEED)
    successors = np.stack([rng.permutation(STATES)[: len(SUCCESSOR_P)] for _ in range(STATES)])
    transition = np.zeros((STATES, STATES))
    np.put_along_axis(transition, successors, SUCCESSOR_P[None, :], axis=1)
    return successors, np.linalg.matrix_power(transition, 4096)[0]


@lru_cache
def prose() -> tuple[Tokens, str, str]:
    """The text as codes [n], its alphabet, and the SHA-256 of its UTF-8 bytes."""
    from pydoc_data.topics import topics  # 0.7 MB of source: imported only where it is needed

    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = "".join(sorted(set(text)))
    codes = np.searchsorted(np.array(list(alphabet)), np.array(list(text))).astype(np.int64)
    return codes, alphabet, hashlib.sha256(text.encode()).hexdigest()
