"""The module for browsers: it is what its sources give, and small."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from normviz.native import build
from normviz.player import folder

MODULE = folder() / "tape.wasm"


def test_the_module_is_of_these_sources() -> None:
    """After a change of the C++: `python -m normviz.native --wasm`."""
    assert MODULE.with_suffix(".sha256").read_text().strip() == build.sources_hash()
    assert len(gzip.compress(MODULE.read_bytes(), 9)) < 45_000


@pytest.mark.slow
@pytest.mark.skipif(not build.has_zig(), reason="the compiler for WebAssembly is not installed")
def test_the_compiler_makes_the_same_module_again(tmp_path: Path) -> None:
    build.build_wasm(tmp_path / "tape.wasm")
    assert (tmp_path / "tape.wasm").read_bytes() == MODULE.read_bytes()


def test_without_the_compiler_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "has_zig", lambda: False)
    with pytest.raises(build.BuildError, match=r"`pip install ziglang=="):
        build.build_wasm(tmp_path / "tape.wasm")


def test_another_word_is_a_sentence() -> None:
    words = [sys.executable, "-m", "normviz.native", "--web"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "got '--web', allowed is --wasm or nothing\n")
