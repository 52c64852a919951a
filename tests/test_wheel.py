"""The wheel: what a user installs runs without the checkout, in the terminal and in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser_kit import opened, server
from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and its dependencies, and no checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, ROOT)
    run(sys.executable, "-m", *build)
    (wheel,) = folder.glob("normviz-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    new = folder / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", new, "install", "--no-deps", "--no-index", wheel)
    # Folders that a .pth names are searched, but a .pth inside of them is not read: an editable
    # install of the checkout is not found there.
    (site,) = folder.glob("venv/lib/python3*/site-packages")
    there = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "dependencies.pth").write_text("\n".join(there))
    return new


def run(*words: str | Path) -> str:
    """What a command prints, in a folder that has nothing to do with the checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, capture_output=True, text=True, cwd="/", env=environment, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_the_commands_run_from_the_wheel(python: Path) -> None:
    code = "import normviz, normviz.app.visit; print(normviz.__file__, normviz.app.visit.__file__)"
    for file in run(python, "-c", code).split():
        assert Path(file).is_relative_to(python.parent.parent)
    assert "sweep" in run(python.with_name("normviz"), "--help")
    assert "Pre-LN" in run(python, "-m", "normviz", "list")
    for words in (("family=mlp",), ("family=gnn",), ("family=vit", "depth=2")):
        told = run(python, "-m", "normviz", "run", *words, "steps=2")
        assert "loss" in told  # the data ships too


@pytest.mark.browser
def test_the_page_of_the_wheel_draws_the_hero_duel(
    python: Path, browser: Browser, tmp_path: Path
) -> None:
    with server(tmp_path / "data", program=(str(python), "-m", "normviz"), cwd=tmp_path) as (
        url,
        _,
    ):
        page = opened(browser.new_page(), url)
        page.get_by_text("learned: loss").first.wait_for()
        assert page.locator(".st-key-card_1").get_by_text("at chance so far").count()
        page.close()
