"""All three norms on an example, before and after what is tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .example import Example
from .norms import Array, Bools, Worked, batch_norm, batch_norm_eval, layer_norm, rms_norm
from .running import Running, running

KEYS = ("layernorm", "rmsnorm", "batchnorm")
"""The norms side by side, by their keys in the catalogue."""
MOVED = 1e-3
"""A smaller change, of a number or as a share of it, is not marked: eps makes some."""


@dataclass(frozen=True)
class Batch:
    """What a norm is given: x [n, features], and of which row of the table each row is.

    rows     numbers from 1, and 0 for padding
    counted  [n] the rows that BatchNorm averages over
    """

    x: Array
    rows: tuple[int, ...]
    counted: Bools

    def place(self, row: int) -> int:
        """Where a row of the table (from 1) stands in x. Raises ValueError if it is not there."""
        return self.rows.index(row)


@dataclass(frozen=True)
class Work:
    """An example worked through.

    before, was  the batch as typed, and what the norms (by key) make of it
    after, now   the same with what is tried
    running      BatchNorm's statistics in eval, from training passes over the batch as typed, or
                 over the padded one where that is tried: what is tried otherwise comes after training
    """

    example: Example
    before: Batch
    after: Batch
    was: dict[str, Worked]
    now: dict[str, Worked]
    running: Running

    @property
    def row(self) -> int:
        """Where the row that is looked at stands in the batch, from 0."""
        return self.after.place(self.example.row)

    @property
    def feature(self) -> int:
        """The feature that is looked at, from 0."""
        return self.example.feature - 1

    @property
    def refused(self) -> bool:
        """Whether PyTorch's BatchNorm refuses this batch: in training it needs two rows."""
        return self.example.mode == "train" and int(self.after.counted.sum()) < 2

    @property
    def edited(self) -> Bools:
        """[n, features] the numbers of x that what is tried changed."""
        return self._gone(self.after.x, self.before.x) > 0

    def change(self, key: str) -> Array:
        """[n, features] how far each number of a norm's output went from where it was."""
        return self._gone(self.now[key].y, self.was[key].y)

    def _gone(self, now: Array, was: Array) -> Array:
        """Distances between the same rows; 0 for padding, which was not there."""
        found = np.zeros_like(now)
        for i, row in enumerate(self.after.rows):
            if row:
                found[i] = np.abs(now[i] - was[self.before.place(row)])
        return found

    def moved(self, key: str) -> Bools:
        """[n, features] the outputs that went further than eps takes them."""
        return self.change(key) > MOVED * np.maximum(1.0, np.abs(self.now[key].y))


def work(example: Example) -> Work:
    """Every value of the three norms."""
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
