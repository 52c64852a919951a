"""The script of a model that is no decoder gives the losses of its run."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import pytest
import torch
from crossing_kit import case

from normviz import RunConfig, train
from normviz.export.script import script
from normviz.home import shipped
from normviz.result import collect
from normviz.runs.lane import Lane

SMALL = {"depth": 2, "width": 8, "steps": 6}
SOME: list[dict[str, Any]] = [
    {"family": "mlp", "scheme": "deepnorm", "batch": 4},
    {"family": "mlp", "norm": "batchnorm", "init": "gpt2", "activation": "swiglu"},
    {"family": "mlp", "task": "karate", "optimizer": "muon", "scheme": "mixln"},
    {"family": "vit", "batch": 4, "patch_norm": "dual", "init": "torch"},
    {"family": "vit", "batch": 2, "seq_len": 4, "scheme": "post", "positions": "sinusoidal"},
    {"family": "gnn", "weight_gain": 0.5, "init": "torch"},
    {"family": "gnn", "task": "digits_graph", "scheme": "subln", "norm": "rmsnorm", "steps": 2},
    {"family": "rnn", "seq_len": 8, "batch": 3},
    {"family": "rnn", "scheme": "between_layers", "init": "torch", "task": "markov", "seq_len": 4},
    {"family": "lstm", "seq_len": 8, "batch": 3, "scheme": "cell_and_layers", "dropout": 0.2},
    {"family": "lstm", "scheme": "cell_none", "seq_len": 4, "clip": 0.1, "weight_gain": 0.5},
]


def test_it_repeats_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for change in SOME:
        with case(change):
            repeated(RunConfig(**{**SMALL, **change}), monkeypatch)


def repeated(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    result = collect(train(config))
    source = script(Lane("A", config, (result,)))
    file = shipped("assets") / "data" / "digits.csv.gz"
    monkeypatch.setattr(sys, "argv", ["script.py", str(file)])
    threads = torch.get_num_threads()
    space: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, "script.py", "exec"), space)
    finally:
        torch.set_num_threads(threads)
    assert space["losses"] == pytest.approx(result.losses.tolist(), rel=1e-5)
