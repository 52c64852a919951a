"""Compiles tape.cpp. `python -m normviz.native` puts the library beside it.

`hook.py` does the same at install. This module imports nothing but Python's own library.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("tape.cpp")
LIBRARY = Path(__file__).with_name("_tape.so")

FLAGS = (
    "-std=c++20", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    "-shared", "-fPIC",
)  # fmt: skip
"""No fast-math: NaN and inf stay what they are, and sums keep their order."""

COMPILERS = ("g++", "clang++", "c++")
SECONDS = 300.0
"""A compiler that takes longer is killed."""


class BuildError(RuntimeError):
    """One sentence: why the library was not compiled, and what to do about it."""


def is_x86() -> bool:
    """Whether this machine has an x86 processor of 64 bits."""
    return platform.machine() in ("x86_64", "AMD64")


def target_flags() -> tuple[str, ...]:
    """One build for all CPUs of a type: AVX2 on x86, the baseline elsewhere. Where the CPU has AVX-512 the
    library multiplies matrices by it, with the same bits."""
    return ("-march=x86-64-v3",) if is_x86() else ()


def compiler() -> list[str]:
    """The command of a C++ compiler: CXX, or the first of COMPILERS on the PATH; else []."""
    if words := shlex.split(os.environ.get("CXX", "")):
        return words
    return list(filter(None, map(shutil.which, COMPILERS)))[:1]


def build(target: Path = LIBRARY) -> None:
    """Compile the library to `target`. Raises BuildError."""
    words = compiler()
    if not words:
        raise BuildError("there is no C++ compiler: install g++ or clang++, or set CXX")
    made = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        done = subprocess.run(
            [*words, *FLAGS, *target_flags(), str(SOURCE), "-o", str(made)],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise BuildError(f"{words[0]} did not compile tape.cpp: {last}")
        made.replace(target)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{words[0]} took more than {SECONDS:g} seconds") from None
    except OSError as error:
        raise BuildError(f"{words[0]} did not compile tape.cpp: {error.strerror}") from error
    finally:
        made.unlink(missing_ok=True)
