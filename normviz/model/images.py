"""The handwritten digits of scikit-learn, torch-free: 8 x 8 pixels of 0 to 16, and the digit of each."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..home import shipped

SIDE = 8
PIXELS = SIDE * SIDE
HELD_OUT = 5
"""One of so many images, at the end, is held out. The file is in the order of the writers."""


@lru_cache
def digits() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixels [1797, 64], row by row from the top left, and labels [1797].

    The file is scikit-learn's copy of the test set of the UCI data set "Optical Recognition of Handwritten
    Digits" (Alpaydin and Kaynak 1998); `assets/data/README.md` has its licence.
    """
    table = np.loadtxt(shipped("assets") / "data" / "digits.csv.gz", delimiter=",")
    table = table.astype(np.int64)
    return table[:, :PIXELS], table[:, PIXELS]


@lru_cache
def standardised() -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
    """Pixels [1797, 64] less the mean of all trained pixels, over their standard deviation; the labels; and
    how many images are trained on."""
    pixels, labels = digits()
    trained = len(labels) - len(labels) // HELD_OUT
    seen = pixels[:trained].astype(np.float64)
    mean, deviation = float(seen.mean()), float(seen.std())
    return ((pixels - mean) / deviation).astype(np.float32), labels, trained
