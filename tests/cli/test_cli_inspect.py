"""`normviz inspect`: one anatomy, its JSON, its exit codes, and sentences for what is no model."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from socketserver import TCPServer

import pytest
from cli_kit import normviz
from crossing_kit import case

from normviz import RunConfig, inspect
from normviz.catalog import SCHEMES
from normviz.export import script
from normviz.own_model import shipped
from normviz.own_model.report import NO_MISTAKE, parse_anatomy
from normviz.runs.lane import Lane

CODE = """
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = nn.RMSNorm(8, 1e-6), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return x + self.b(self.a(self.norm(x)))

def build():
    return nn.Sequential(nn.Embedding(5, 8), nn.Sequential(*[Block() for _ in range(3)]))
"""


HUB = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
BACKBONE = {"backbone": "evil/repo", "use_pretrained_backbone": True}


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor who lets their own code ask hubs. What the terminal sets ends with the test."""
    for name in HUB:
        monkeypatch.setenv(name, "0")


def test_an_exported_script_is_inspected_without_training_it(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(script(Lane("A", RunConfig(scheme="peri"))))
    done = normviz("inspect", f"{path}:build")
    assert done.exit_code == 0 and "Peri-LN" in done.output and "final loss" not in done.output


def test_a_function_in_a_file_is_inspected(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    done = normviz("inspect", f"{path}:build")
    assert done.exit_code == 0 and "3 blocks of Block" in done.output
    assert "Pre-LN" in done.output and "RMSNorm  eps 1e-06, gamma from 1, 3" in done.output
    done = normviz("inspect", f"{path}:build", "--json")
    assert json.loads(done.output)["stacks"][0]["placement"] == "pre"
    done = normviz("inspect", f"{path}:build", "--lint")
    assert (done.exit_code, "without a final norm" in done.output) == (1, True)


def test_the_known_trouble_of_the_placement_is_said_where_lint_finds_nothing() -> None:
    """The catalogue's sentence with the model's depth; in the terminal and in the JSON the same."""
    it = shipped.anatomies()["llama"]
    assert not isinstance(it, str) and it.lint == ()
    trouble = f"{SCHEMES['pre'].trouble} Here: {it.main.blocks} blocks."
    assert f"known trouble   {trouble}" in str(it) and f"lint            {NO_MISTAKE}" in str(it)
    given = json.loads(it.to_json())
    assert given["stacks"][0]["trouble"] == trouble and given["findings"] == []
    assert parse_anatomy(it.to_json()) == it
    about_width = replace(it.main, placement="sandwich")
    assert about_width.trouble == SCHEMES["sandwich"].trouble
    assert replace(it.main, placement=None).trouble == ""


@pytest.mark.slow
def test_what_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "bad.py").write_text("def build():\n    return 1\n")
    for named, said in (
        ("qwen33", "near are"),
        ("meta-llama/Llama-3", "NormViz uses no network"),
        (str(tmp_path / "config.json"), "model_type"),
        (f"{tmp_path / 'bad.py'}:build", "must return a torch.nn.Module"),
        (f"{tmp_path / 'bad.py'}:other", "it has build"),
        (f"{tmp_path / 'none.py'}:build", "there is no file"),
        ("", "name a model"),
    ):
        with case(named):
            done = normviz("inspect", *([named] if named else []))
            assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output


@pytest.mark.slow
def test_a_visitors_own_code_may_ask_a_hub(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    inspect(runpy.run_path(str(path))["build"]())  # as in a notebook
    assert {os.environ[name] for name in HUB} == {"0"}
    for named, offline in ((f"{path}:build", "0"), ("qwen33", "1")):
        normviz("inspect", named)
        assert {os.environ[name] for name in HUB} == {offline}, named


ALONE = """
import contextlib, json, resource, sys
with contextlib.suppress(SystemExit):
    from normviz.cli import main
    main(["inspect", sys.argv[1]])
import torch, transformers
from transformers import LlamaForCausalLM
from normviz.own_model.anatomy import inspect_config
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = used()
it = inspect_config(sys.argv[2])
print(it.parameters, it.main.blocks, it.main.placement, used() - before)
"""
LARGE = {
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 128256,
}  # fmt: skip


@pytest.mark.slow
def test_a_configuration_that_names_a_hub_asks_no_network_and_70_billion_parameters_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process of their own, as a visitor's terminal is."""
    said = "configuration of dpt names another model on a hub, and NormViz uses no network: write"
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "dpt", **BACKBONE}))
    calls: list[object] = []
    with TCPServer(("127.0.0.1", 0), lambda *call: calls.append(call)) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, "http://{}:{}".format(*proxy.server_address))
        command = [sys.executable, "-c", ALONE, str(path), json.dumps(LARGE)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        proxy.shutdown()
    assert calls == []
    assert said in done.stderr and done.stderr.count("\n") == 1
    parameters, blocks, placement, kilobytes = done.stdout.split()
    assert int(parameters) > 70e9 and (blocks, placement) == ("80", "pre")
    assert int(kilobytes) < 500_000
