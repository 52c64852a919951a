"""Compiles tape.cpp. `python -m normviz.native` puts the library beside it.

`hook.py` does the same at install. `python -m normviz.native --wasm` compiles the same source for browsers,
to assets/player/tape.wasm. This module imports nothing but Python's own library.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
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


# WebAssembly.

BROWSER = Path(__file__).with_name("browser.cpp")
SOURCES = (SOURCE, Path(__file__).with_name("draws.cpp"), BROWSER)
EXPORTS = (
    "room", "set_model", "forward", "backward", "adamw", "scale", "lengths", "stream", "branches",
    "draw_uniform", "draw_mask", "draw_values",
)  # fmt: skip
WASM_FLAGS = (
    "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c++20", "-O3", "-msimd128", "-fopenmp-simd",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
    "-Wno-pass-failed", "-s", "-Wl,-z,stack-size=1048576", *(f"-Wl,--export={name}" for name in EXPORTS),
)  # fmt: skip
"""SIMD of 128 bits has no fused multiply-add, so that equal inputs give equal bits in every browser."""
ZIG = "ziglang==0.17.1"
"""Clang for every platform, as a package of PyPI. It is needed to compile the module anew and only then."""


def has_zig() -> bool:
    """Whether this Python has the compiler for WebAssembly."""
    return importlib.util.find_spec("ziglang") is not None


def sources_hash() -> str:
    """Names what the module is compiled from: its sources, its flags and the compiler."""
    text = "\n".join((*(path.read_text("utf-8") for path in SOURCES), *WASM_FLAGS, ZIG))
    return hashlib.sha256(text.encode()).hexdigest()


def build_wasm(target: Path) -> None:
    """Compile the module to `target`, and write `sources_hash` beside it. Raises BuildError."""
    if not has_zig():
        raise BuildError(f"the compiler for WebAssembly is not installed: `pip install {ZIG}`")
    words = [sys.executable, "-m", "ziglang", "c++", *WASM_FLAGS, BROWSER.name, "-o", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=BROWSER.parent)
    if done.returncode:
        raise BuildError(f"ziglang did not compile browser.cpp: {done.stderr.strip()[-500:]}")
    target.chmod(0o644)
    target.with_suffix(".sha256").write_text(f"{sources_hash()}\n")
