"""The tape's library: compiled at install where there is a compiler, loaded where the CPU can run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from normviz import RunConfig
from normviz.cli import main
from normviz.native import build, library
from normviz.native.hook import FOLDER, TapeHook
from normviz.training.events import Started
from normviz.training.loop import train

ROOT = Path(__file__).parent.parent.parent
SMALL = RunConfig(depth=1, steps=1)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A PATH without any program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def not_loaded() -> Any:
    """`load` looks again, now and after the test."""
    for cached in (library.load, library.unavailable):
        cached.cache_clear()
    yield
    for cached in (library.load, library.unavailable):
        cached.cache_clear()


def checkout(root: Path) -> Path:
    """A tree that has what the hook reads, with a source that compiles in no time."""
    folder = root / FOLDER
    folder.mkdir(parents=True)
    shutil.copy(build.__file__, folder / "build.py")
    (folder / "tape.cpp").write_text('extern "C" long tape_version() { return 7; }\n')
    return folder


def hooked(root: Path, version: str, said: list[str]) -> tuple[TapeHook, dict[str, Any]]:
    """The hook after it has begun a build."""
    hook = object.__new__(TapeHook)
    hook.__dict__.update({
        "_BuildHookInterface__root": str(root),
        "_BuildHookInterface__app": SimpleNamespace(display_warning=said.append),
    })  # fmt: skip
    data: dict[str, Any] = {"force_include": {}, "pure_python": True}
    hook.initialize(version, data)
    return hook, data


def test_a_wheel_has_the_library_and_the_tag_of_its_platform(tmp_path: Path) -> None:
    checkout(tmp_path)
    hook, data = hooked(tmp_path, "standard", [])
    ((made, there),) = data["force_include"].items()
    assert there == f"{FOLDER}/_tape.so"
    assert not data["pure_python"]
    assert data["tag"].startswith("py3-none-") and not data["tag"].endswith("-any")
    assert not data["tag"].startswith("py3-none-manylinux")
    assert Path(made).stat().st_size
    hook.finalize("standard", data, "")
    assert not Path(made).exists()


def test_an_editable_install_has_the_library_beside_its_source(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    _, data = hooked(tmp_path, "editable", [])
    assert {file.name for file in folder.iterdir()} >= {"build.py", "tape.cpp", "_tape.so"}
    assert data == {"force_include": {}, "pure_python": True}


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("version", ["standard", "editable"])
def test_an_install_without_a_compiler_succeeds_and_says_why(tmp_path: Path, version: str) -> None:
    checkout(tmp_path)
    said: list[str] = []
    _, data = hooked(tmp_path, version, said)
    assert data == {"force_include": {}, "pure_python": True}
    assert len(said) == 1 and "there is no C++ compiler: install g++" in said[0]


def test_a_source_that_does_not_compile_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.cpp"
    bad.write_text("this is not C++")
    monkeypatch.setattr(build, "SOURCE", bad)
    with pytest.raises(build.BuildError, match=r"did not compile tape\.cpp: "):
        build.build(tmp_path / "out.so")
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    with pytest.raises(build.BuildError, match="No such file"):
        build.build(tmp_path / "out.so")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.cpp"]


@pytest.mark.usefixtures("not_loaded")
def test_without_the_library_runs_train_eager_and_status_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "_tape.so")
    monkeypatch.setenv("NORMVIZ_HOME", str(tmp_path))
    started = next(train(SMALL))
    assert isinstance(started, Started)
    assert started.engine == "eager" and "not compiled" in started.why
    said = CliRunner().invoke(main, ["status"]).stdout
    assert "engine      eager: the tape is not compiled" in said
    assert "python -m normviz.native" in said
    found = json.loads(CliRunner().invoke(main, ["status", "--json"]).stdout)
    assert found["engine"] == "eager" and "g++" in found["engine_why"]


CODE = """
import sys
from pathlib import Path
from normviz.config import engine_here
from normviz.native import build, library
library.LIBRARY = Path(sys.argv[1])
build.is_x86 = library.is_x86 = lambda: True
print(*engine_here(), "torch" in sys.modules)
"""


@pytest.mark.slow
def test_a_cpu_without_avx2_is_seen_before_the_library_is_loaded(tmp_path: Path) -> None:
    broken = tmp_path / "_tape.so"
    broken.write_bytes(b"loading this is an error of its own")

    def said(**more: str) -> str:
        words = (sys.executable, "-c", CODE, str(broken))
        return subprocess.run(
            words, capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ, **more}
        ).stdout

    without = said(NPY_DISABLE_CPU_FEATURES="AVX2 FMA3 F16C X86_V3")
    assert without == "eager the tape needs a CPU with AVX2, and this one has none False\n"
    if library.has_avx2():
        assert "does not load" in said()
