"""The compiled tape.cpp, loaded once by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

from .build import LIBRARY, is_x86

VERSION = 3
"""The version of the interface; tape.cpp has the same number."""

_int, _float, _any = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p

FUNCTIONS: dict[str, Sequence[type[ctypes._SimpleCData]]] = {
    "tape_forward": [_any],
    "tape_backward": [_any],
    "tape_adamw": [_int] * 3 + [_any] * 4 + [_float] * 5 + [_int, _any],
    "tape_lengths": [_int, _any, _any, _int, _any],
    "tape_stream": [_int, _any, _any] + [_int] * 3 + [_any] * 4,
    "tape_branches": [_int] + [_any] * 4 + [_int, _int, _any],
}


class Unavailable(RuntimeError):
    """One sentence: why the tape does not run on this machine or installation."""


@cache
def load() -> ctypes.CDLL:
    """The library with its functions typed. Raises Unavailable."""
    if not LIBRARY.exists():
        raise Unavailable(
            "the tape is not compiled in this installation: install g++ or clang++, then "
            "run `python -m normviz.native`"
        )
    if is_x86() and not has_avx2():
        raise Unavailable("the tape needs a CPU with AVX2, and this one has none")
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.tape_version.restype = _int
        version = library.tape_version()
    except (OSError, AttributeError) as error:
        raise Unavailable(f"the tape does not load: {error}") from error
    if version != VERSION:
        raise Unavailable(f"the tape has version {version}, not {VERSION}: install NormViz again")
    for name, types in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, None
    return library


def has_avx2() -> bool:
    """Whether CPU and operating system have the instructions of x86-64-v3, as NumPy found."""
    from numpy._core import _multiarray_umath as numpys  # pyrefly: ignore[missing-module-attribute]

    features: dict[str, bool] = getattr(numpys, "__cpu_features__", {})
    older = all(features.get(name, False) for name in ("AVX2", "FMA3", "F16C"))
    return features.get("X86_V3", older)


@cache
def unavailable() -> str:
    """Why the library does not load here, as a sentence, or ""."""
    try:
        load()
    except Unavailable as error:
        return str(error)
    return ""
