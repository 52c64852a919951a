"""Labs of claims: their end, what can't be measured, and the one that times."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from backend_kit import wait_for
from claims_kit import COUNTED
from cost_kit import made

from normviz.config import RunConfig
from normviz.execution import local, process
from normviz.model.families import build
from normviz.model.transformer import Transformer
from normviz.runs.store import Store
from normviz.studies.claims import Claim
from normviz.studies.claims.drive import run
from normviz.studies.claims.lab_process import measure_all
from normviz.studies.claims.rule import Between, Part
from normviz.studies.labs import speed
from normviz.studies.labs.model import trained
from normviz.studies.norm_cost.result import Ratio
from normviz.training import loop
from normviz.training.events import Started

SMALL = {"width": 32, "heads": 1, "seq_len": 64, "batch": 1, "device": "cpu"}


@pytest.mark.slow
def test_stop_ends_a_lab_in_the_middle_of_a_reading(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here one that times, and waits for a run that trains: without the stop it would wait a minute."""
    config, begun = RunConfig(**SMALL, steps=20), list[subprocess.Popen[bytes]]()
    training = Started(config, "cpu", 1, 9, 3.3, None, None)
    store.started(store.enqueue(config), training, os.getpid(), paused=False)
    arm = {name: str(value) for name, value in SMALL.items()} | {"scheme": "pre", "steps": "0"}
    claim = replace(COUNTED, arms={"post": {"label": "Pre-LN", **arm}}, lab="speed")

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words, **named) -> None:
            super().__init__(*words, **named)
            begun.append(self)

    monkeypatch.setattr(process.subprocess, "Popen", Noted)
    asked = [False]
    ended = Thread(target=lambda: list(run(store, claim, stop=lambda: asked[0])), daemon=True)
    ended.start()
    wait_for(lambda: begun, "its process")
    time.sleep(0.5)  # it was given its config: a reading goes on
    asked[0] = True
    ended.join(60)
    assert not ended.is_alive() and begun[0].poll() is not None


def test_the_death_of_a_lab_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = local.start

    def killed(*words, **named) -> subprocess.Popen[bytes]:
        begun = start(*words, **named)
        begun.kill()
        return begun

    monkeypatch.setattr(local, "start", killed)
    with pytest.raises(RuntimeError, match=r"its process was killed by signal 9$"):
        list(measure_all("norms", COUNTED.cells(1), tmp_path))


@pytest.mark.parametrize(("lab", "expected"), [("norms", 2), ("speed", 1)])
def test_a_lab_measures_in_all_processes_and_one_that_times_in_one(
    store: Store, monkeypatch: pytest.MonkeyPatch, lab: str, expected: int
) -> None:
    start, begun = local.start, list[subprocess.Popen[bytes]]()

    def counted(*words, **named) -> subprocess.Popen[bytes]:
        begun.append(start(*words, **named))
        return begun[-1]

    monkeypatch.setattr(local, "start", counted)
    claim = replace(COUNTED, lab=lab)
    assert not list(run(store, claim, seeds=3, processes=2, stop=lambda: bool(begun)))
    assert len(begun) == expected


def test_what_a_lab_cannot_measure_is_a_sentence(store: Store) -> None:
    arm = {"scheme": "pre", "norm": "rmsnorm", "width": "48", "seq_len": "64", "batch": "8",
           "steps": "0", "device": "cpu"}  # fmt: skip
    broken = Claim("T4", "", "", "", {"a": arm}, COUNTED.numbers, (Part("", Between("norms")),), "",
                   COUNTED.figure, lab="speed")  # fmt: skip
    with pytest.raises(RuntimeError, match="width is 48, allowed is a multiple of 32"):
        list(run(store, broken))


def test_both_norms_of_a_repeat_come_from_one_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "home", lambda: tmp_path)
    less, more = Ratio(0.9, 0.8, 1.0), Ratio(1.1, 1.0, 1.2)
    asked, one = [], made({("rmsnorm", "step"): less, ("again", "alone"): more})
    monkeypatch.setattr(speed, "timed", lambda setting, _: asked.append(setting) or iter([one]))
    rms = speed.measure(RunConfig(norm="rmsnorm", **SMALL))
    control = speed.measure(RunConfig(norm="layernorm", **SMALL))
    assert len(asked) == 1
    for context in ("step", "alone"):
        assert rms[context] == 100 * (1 - one.row("rmsnorm", context).ratio.median)
        assert control[context] == 100 * (1 - one.row("again", context).ratio.median)
    speed.measure(RunConfig(norm="rmsnorm", init_seed=1, **SMALL))
    assert len(asked) == 2, "a seed is a repeat"


@pytest.mark.parametrize("scheme", ["pre", "prores"])
def test_the_lab_that_leaves_out_blocks_trains_as_train_does(
    scheme: str, tiny: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a scheme whose branches fade in over the run."""
    config, built = tiny.replace(scheme=scheme), list[Transformer]()

    def kept(*given: Any) -> Transformer:
        built.append(build(*given))
        return built[-1]

    monkeypatch.setattr(loop, "build", kept)
    for _ in loop.train(config):
        pass
    ended = dict(built[0].named_parameters())
    model, _ = trained(config)
    assert all(torch.equal(p, ended[name]) for name, p in model.named_parameters())
    assert model.clock.share == built[0].clock.share
