"""Start-up: a command imports what it needs, and no more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from normviz import RunConfig
from normviz.cli import COMMANDS, main
from normviz.model.families import build
from normviz.model.flat import Flat
from normviz.model.init import initialise
from normviz.training.eager import Optimizer

HEAVY = {
    "altair", "numpy", "pandas", "pyarrow", "rich", "sqlite3", "streamlit", "torch", "vl_convert",
}  # fmt: skip
DRAWING = {"altair", "pandas", "pyarrow", "streamlit", "vl_convert"}


def imported(tmp_path: Path, *words: str) -> tuple[set[str], str, str]:
    """What a command imports in a process of its own, as Python itself says, and what it prints."""
    command = [sys.executable, "-X", "importtime", "-m", "normviz", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={"NORMVIZ_HOME": str(tmp_path)}
    )
    assert done.returncode == (0 if words else 2), done.stderr[-500:]
    found = set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.M))
    assert "normviz.config" in found
    said = re.sub(r"^import time:.*\n", "", done.stderr, flags=re.M)
    return found, done.stdout, said


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("bench", "--help"), ("list", "--parity")], ids=" ".join)
def test_help_and_lists_import_nothing_heavy(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert not imported(tmp_path, *words)[0] & HEAVY


@pytest.mark.slow
def test_a_run_prints_an_object_and_imports_no_compiler_and_nothing_that_draws(
    tmp_path: Path,
) -> None:
    found, out, said = imported(tmp_path, "run", "steps=1", "depth=1", "--json")
    assert "torch" in found
    assert not found & (DRAWING | {"torch._dynamo"})
    assert json.loads(out)["steps"] == 1 and out.count("\n") == 1 and said == ""


# Help


@pytest.mark.slow
def test_help_shows_every_command_as_the_command_describes_itself() -> None:
    shown = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    for name, (_, sentence) in COMMANDS.items():
        assert f" {name} {sentence}" in shown
        CliRunner().invoke(main, [name, "--help"])  # imports it
        command = typer.main.get_group(main).commands[name]
        assert command.help
        first = " ".join(command.help.split("\n\n")[0].split())
        assert first.startswith(sentence)
    assert set(typer.main.get_group(main).commands) == set(COMMANDS)  # it hides none


def test_a_mistyped_command_is_told_of_its_neighbour() -> None:
    done = CliRunner().invoke(main, ["swep"])
    assert done.exit_code == 2
    assert "Did you mean 'sweep'?" in done.stderr


# The optimizer


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "adamw"},
        {"optimizer": "adamw", "beta1": 0.5, "beta2": 0.9, "weight_decay": 0.1},
        {"optimizer": "sgd"},
        {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1},
    ],
    ids=str,
)
def test_the_optimizer_takes_the_steps_of_pytorchs_class_bit_by_bit(
    tiny: RunConfig, settings: dict[str, float | str]
) -> None:
    c = tiny.replace(**settings)
    model = build(c, 32)
    initialise(model, c)
    flat = Flat(model, torch.device("cpu"))
    ours = Optimizer(c, model, flat)
    values = torch.nn.Parameter(flat.values.clone())
    theirs = (
        torch.optim.SGD([values], c.lr, c.momentum, weight_decay=c.weight_decay)
        if c.optimizer == "sgd"
        else torch.optim.AdamW(
            [values], c.lr, (c.beta1, c.beta2), weight_decay=c.weight_decay, fused=True
        )
    )
    random = torch.Generator().manual_seed(0)
    for step in range(20):
        flat.grads.normal_(generator=random)
        values.grad = flat.grads.clone()
        theirs.param_groups[0]["lr"] = lr = c.lr / (step + 1)
        theirs.step()
        ours.step(lr)
        assert torch.equal(flat.values, values.detach())
