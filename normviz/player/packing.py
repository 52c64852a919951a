"""Numbers as text that a browser reads without loss of what single precision holds."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray


def packed(values: NDArray[np.float64]) -> str:
    """Base64 of the numbers as little-endian float32, row by row; NaN and infinity survive."""
    with np.errstate(over="ignore"):
        return coded(values.astype("<f4"))


def coded(values: NDArray[np.float32] | NDArray[np.uint8]) -> str:
    """Base64 of the bytes as they are."""
    return b64encode(values.tobytes()).decode("ascii")
