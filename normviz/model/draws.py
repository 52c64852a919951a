"""Every random number of a run: initial values, batches and dropout. Torch-free.

The numbers are a function of three things, a name, a seed and a step, and not of what was drawn before. So
every engine and every machine starts from the same bits, and two lanes with the same name have the same draw.
The names are those of the parameters, "batch", "held out", "shown" (the labelled nodes of a graph), and
"dropout:0", "dropout:1", ... (see `model.branches`).

**Words.** Philox4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", SC'11). It maps a
counter of four 64-bit words and a key of two to four output words:

    key      (the first 8 bytes of SHA-256 of the name in UTF-8, as a little-endian integer; the seed)
    counter  (i, 0, step, 0) with i = 1, 2, 3, ...; each i gives the words 4 (i - 1) to 4 i - 1

    repeat 10 times, all modulo 2**64; hi and lo are the halves of a 128-bit product:
        p, q = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = hi(q) ^ c[1] ^ k[0], lo(q), hi(p) ^ c[3] ^ k[1], lo(p)
        k = k[0] + 0x9E3779B97F4A7C15, k[1] + 0xBB67AE8584CAA73B

This is NumPy's `Philox(key=key, counter=[0, 0, step, 0])`, which counts before its first output. An array
takes one word a number, in row-major order, and the next array from the same generator takes the words after.

**Numbers**, in float64:

    uniform  (word >> 11) / 2**53, in [0, 1)
    below n  floor(uniform * n); its bias is below n / 2**53
    normal   the inverse normal CDF at u = (2 (word >> 12) + 1) / 2**53, in (0, 1), by AS241 (PPND16 of
             Wichura 1988)

The inverse CDF needs one word a number and no table, unlike NumPy's ziggurat. Box-Muller would need log, sin
and cos for each number, and their last bits differ between machines. Here 15 % of the numbers need a
logarithm: `_log` computes it with +, -, * and / alone. IEEE 754 rounds those and the square root in one way,
so the bits are the same everywhere. A port must not fuse a * b + c to one operation (-ffp-contract=off).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CHUNK = 2**15
"""Normals computed at once, so that the arrays between the operations stay in the cache."""

# AS241: numerators and denominators, highest power first.
CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
     1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
     1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
     0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187,
     1.0),
)  # fmt: skip
TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
     0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
     6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
     7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
     0.59983220655588793769, 1.0),
)  # fmt: skip
LN2, ROOT_HALF = 0.6931471805599453, 0.7071067811865476
ODD = tuple(1.0 / n for n in range(23, 0, -2))
"""The series of artanh, highest power first; its remainder is below 1e-18 here."""


@cache
def name_word(name: str) -> int:
    """The first word of the key of a name's generators."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def generator(name: str, seed: int, step: int = 0) -> np.random.Generator:
    """The generator of a name, a seed and a step, before its first word."""
    key = np.array([name_word(name), seed], np.uint64)
    counter = np.array([0, 0, step, 0], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def uniform(rng: np.random.Generator, shape: int | Sequence[int]) -> Floats:
    """The next numbers in [0, 1)."""
    return rng.random(shape)  # which is (word >> 11) / 2**53


def below(rng: np.random.Generator, n: int, shape: int | Sequence[int]) -> NDArray[np.int64]:
    """The next whole numbers from 0 to n - 1."""
    return (uniform(rng, shape) * n).astype(np.int64)


def normal(rng: np.random.Generator, shape: int | Sequence[int]) -> Floats:
    """The next standard normal numbers."""
    numbers = np.empty(shape)
    flat = numbers.reshape(-1)
    for at in range(0, flat.size, CHUNK):
        part = flat[at : at + CHUNK]
        words = rng.bit_generator.random_raw(part.size)
        whole: Floats = (words >> np.uint64(12)).astype(np.float64)
        part[:] = inverse_normal((whole * 2.0 + 1.0) * 2.0**-53)
    return numbers


def inverse_normal(u: Floats) -> Floats:
    """The normal number [n] below which a share u [n] of all lies, for u in (0, 1)."""
    q = u - 0.5
    numbers = _ratio(CENTRE, 0.180625 - q * q) * q
    if (far := np.flatnonzero(np.abs(q) > 0.425)).size:
        q, u = q[far], u[far]
        r = np.sqrt(-_log(np.where(q < 0, u, 1.0 - u)))
        size = np.where(r <= 5.0, _ratio(MIDDLE, r - 1.6), _ratio(TAIL, r - 5.0))
        numbers[far] = np.where(q < 0, -size, size)
    return numbers


def _ratio(of: tuple[tuple[float, ...], tuple[float, ...]], r: Floats) -> Floats:
    return _polynomial(of[0], r) / _polynomial(of[1], r)


def _polynomial(coefficients: tuple[float, ...], r: Floats) -> Floats:
    """By Horner's rule, the highest power first."""
    values = coefficients[0] * r + coefficients[1]
    for coefficient in coefficients[2:]:
        values *= r
        values += coefficient
    return values


def _log(x: Floats) -> Floats:
    """Natural logarithm: x = m 2**e with m from sqrt(1/2) to sqrt(2), log m = 2 artanh((m - 1) / (m + 1))."""
    m, e = np.frexp(x)
    low = m < ROOT_HALF
    m, e = np.where(low, 2.0 * m, m), e - low
    s = (m - 1.0) / (m + 1.0)
    return e * LN2 + 2.0 * s * _polynomial(ODD, s * s)
