"""How far apart two colours are for usual and for colour-blind eyes, and how legible one is."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Usual, protanopia, deuteranopia, tritanopia: Machado et al. 2009, severity 1, on linear RGB.
EYES = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    ]
)
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def distance(one: str, other: str) -> float:
    """CIE76 difference of two #rrggbb colours for the eyes that tell them apart least."""
    return float(np.linalg.norm(_lab(one) - _lab(other), axis=1).min())


def contrast(one: str, other: str) -> float:
    """WCAG contrast of two #rrggbb colours, 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ _linear(color)) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def _linear(color: str) -> Floats:
    c = np.array(list(bytes.fromhex(color[1:]))) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


@lru_cache(maxsize=1024)
def _lab(color: str) -> Floats:
    """[eyes, 3] L*a*b* under D65."""
    light = np.clip(EYES @ _linear(color), 0.01, 1)
    x, y, z = np.cbrt(light @ TO_XYZ.T / WHITE).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
