"""All three norms on an example, before and after the experiment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .example import Example
from .norms import Array, Bools, Worked, batch_norm, batch_norm_eval, layer_norm, rms_norm
from .running import Running, running

KEYS = ("layernorm", "rmsnorm", "batchnorm")
"""Keys of the norms in the catalogue, in the order of the page."""
MOVED = 1e-3
"""Smaller changes, absolute or relative, are not marked: eps alone causes some."""


@dataclass(frozen=True)
class Batch:
    """The input of a norm, x [n, features], and the table row of each of its rows.

    rows     table rows from 1; 0 for padding
    counted  [n] the rows that BatchNorm averages over
    """

    x: Array
    rows: tuple[int, ...]
    counted: Bools

    def place(self, row: int) -> int:
        """Index in x of a table row (from 1). Raises ValueError if the batch lacks it."""
        return self.rows.index(row)


@dataclass(frozen=True)
class Work:
    """All values of an example.

    before, was  the batch as typed, and the norms (by key) of it
    after, now   the batch after the experiment, and the norms of it
    running      BatchNorm's statistics in eval, from training passes over the batch as typed. The
                 padding experiment trains on the padded batch; all others come after training.
    """

    example: Example
    before: Batch
    after: Batch
    was: dict[str, Worked]
    now: dict[str, Worked]
    running: Running

    @property
    def row(self) -> int:
        """Index of the selected row in the batch."""
        return self.after.place(self.example.row)

    @property
    def feature(self) -> int:
        """Index of the selected feature."""
        return self.example.feature - 1

    @property
    def refused(self) -> bool:
        """Whether PyTorch's BatchNorm refuses this batch: in training it needs two rows."""
        return self.example.mode == "train" and int(self.after.counted.sum()) < 2

    @property
    def edited(self) -> Bools:
        """[n, features] the inputs that the experiment changed."""
        return self._gone(self.after.x, self.before.x) > 0

    def change(self, key: str) -> Array:
        """[n, features] absolute change of each output of a norm."""
        return self._gone(self.now[key].y, self.was[key].y)

    def _gone(self, now: Array, was: Array) -> Array:
        """Absolute differences of the same rows; 0 for padding, which is only in one batch."""
        found = np.zeros_like(now)
        for i, row in enumerate(self.after.rows):
            if row:
                found[i] = np.abs(now[i] - was[self.before.place(row)])
        return found

    def moved(self, key: str) -> Bools:
        """[n, features] the outputs that change by more than eps can cause."""
        return self.change(key) > MOVED * np.maximum(1.0, np.abs(self.now[key].y))


def work(example: Example) -> Work:
    """Compute every value of the three norms."""
    before = _batch(np.array(example.x, dtype=np.float64), range(1, example.rows + 1))
    after = _tried(example, before)
    plain, padded = (
        running(one.x, one.counted, example.passes, example.momentum)
        for one in (before, after if example.experiment == "padding" else before)
    )
    was, now = _norms(example, before, plain), _norms(example, after, padded)
    return Work(example, before, after, was, now, padded)


def _batch(x: Array, rows: range | tuple[int, ...]) -> Batch:
    return Batch(x, tuple(rows), np.ones(len(x), bool))


def _tried(example: Example, plain: Batch) -> Batch:
    if example.experiment == "alone":
        return _batch(plain.x[[example.row - 1]], (example.row,))
    if example.experiment == "padding":
        n = example.padding
        x = np.vstack([plain.x, np.zeros((n, example.features))])
        counted = np.array([True] * len(plain.x) + [not example.masked] * n)
        return Batch(x, plain.rows + (0,) * n, counted)
    x = plain.x.copy()
    if example.experiment == "neighbour" and example.rows > 1:
        x[example.neighbour - 1, example.feature - 1] += example.amount
    elif example.experiment == "shift":
        x += example.amount
    elif example.experiment == "scale":
        x *= example.amount
    return _batch(x, plain.rows)


def _norms(example: Example, batch: Batch, stats: Running) -> dict[str, Worked]:
    gamma, beta, eps = np.array(example.gamma), np.array(example.beta), example.eps
    over_rows = (
        batch_norm(batch.x, batch.counted, gamma, beta, eps)
        if example.mode == "train"
        else batch_norm_eval(batch.x, stats.mean, stats.variance, gamma, beta, eps)
    )
    found = (layer_norm(batch.x, gamma, beta, eps), rms_norm(batch.x, gamma, eps), over_rows)
    return dict(zip(KEYS, found, strict=True))
