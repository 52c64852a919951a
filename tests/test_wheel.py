"""The wheel: what a user installs has every file, and runs without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from normviz.native.build import LIBRARY

ROOT = Path(__file__).parent.parent
MOVED = ("app/", "assets/")
"""Folders that the wheel has in `normviz`."""
RUNS = """
import sys
from importlib.metadata import entry_points
from pathlib import Path
import normviz
from normviz.app import visit
from normviz.execution.client import SupervisorClient
from streamlit.testing.v1 import AppTest

assert all(Path(file).is_relative_to(sys.argv[1]) for file in (normviz.__file__, visit.__file__))
SupervisorClient.ensure = lambda self: None
page = AppTest.from_file(Path(visit.__file__).with_name("page.py"), default_timeout=120).run()
assert not page.exception and any("at chance" in it.value for it in page.markdown)
assert page.get("bidi_component") and "torch" not in sys.modules, "the page"
(main,) = [it.load() for it in entry_points(group="console_scripts", name="normviz")][:1]
for words in (["list"], ["run", "family=mlp", "steps=2"], ["run", "family=gnn", "steps=2"]):
    sys.argv = ["normviz", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""
"""Opens the page, and runs the command: lists placements, and trains on data that ship too."""


@pytest.mark.slow
def test_the_wheel_has_every_file_and_runs_without_the_checkout(tmp_path: Path) -> None:
    compiler = tmp_path / "c++"  # it gives what was compiled already: this takes 8 s of a core
    compiler.write_text(f'#!/bin/sh\nfor target; do :; done\nexec cp {LIBRARY} "$target"\n')
    compiler.chmod(0o755)
    build = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {**os.environ, "CXX": str(compiler)}
    subprocess.run(
        [sys.executable, *build], cwd=ROOT, check=True, capture_output=True, env=environment
    )
    (wheel,) = tmp_path.glob("normviz-*.whl")
    with ZipFile(wheel) as files:
        names = set(files.namelist())
        files.extractall(tmp_path / "site")
    shipped = (
        "normviz",
        "app",
        *(f"assets/{it}" for it in ("runs", "maps", "claims", "data", "player")),
    )
    listed = subprocess.run(
        ["git", "ls-files", *shipped], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    listed.append(LIBRARY.relative_to(ROOT).as_posix())
    assert {f"normviz/{it}" if it.startswith(MOVED) else it for it in listed} <= names
    environment = {
        **os.environ, "PYTHONPATH": str(tmp_path / "site"), "NORMVIZ_HOME": str(tmp_path / "data"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", RUNS, str(tmp_path / "site")], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert "Pre-LN" in done.stdout and done.stdout.count("loss") >= 2
