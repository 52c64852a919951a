"""The terminal: one JSON object, exit codes, and one sentence for bad input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_kit import TINY, normviz, run_json
from crossing_kit import case

from normviz import RunConfig, train
from normviz.catalog import PROBES, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.config import RANGES, seeded
from normviz.lessons.presets import PRESETS
from normviz.links import encode
from normviz.result import collect
from normviz.training.events import Step

KEYS = [
    "id", "config", "status", "verdict", "first_bad", "chance", "floor", "first_loss", "final_loss",
    "held_out_loss", "steps", "clipped", "seconds", "steps_per_second", "losses", "held_out_losses",
    "logit_rms", "writings", "layers",
]  # fmt: skip


# JSON


def test_json_is_one_object_with_exactly_these_keys(tiny: RunConfig) -> None:
    got = run_json(*TINY)
    assert list(got) == KEYS
    assert (got["id"], RunConfig(**got["config"])) == (tiny.key, tiny)
    assert (got["status"], got["first_bad"], got["steps"]) == ("finished", None, 20)
    losses = [event.loss for event in train(tiny) if isinstance(event, Step)]
    assert got["losses"] == losses
    assert got["first_loss"] == losses[0]
    assert got["final_loss"] == pytest.approx(sum(losses[-2:]) / 2)
    assert got["steps_per_second"] == pytest.approx(20 / got["seconds"])
    assert 0 < got["floor"] < got["chance"]
    assert got["layers"] == []


def test_layers_at_the_asked_steps() -> None:
    """Also at one that no run records by itself."""
    layers = run_json(*TINY[:-1], "steps=60", "--at", "0,7,58")["layers"]
    assert {row["step"] for row in layers} == {0, 7, 58}
    assert all(set(row) == {"step", "layer", "probe", "value"} for row in layers)
    seen = {(row["probe"], row["layer"]) for row in layers if row["step"] == 7}
    assert seen == {
        (p.key, b)
        for p in map(PROBES.__getitem__, recorded_by("one"))
        for b in range(p.first_layer, 3)
    }


def test_steps_zero_measures_at_initialisation() -> None:
    got = run_json(*TINY[:-1], "steps=0")
    assert (got["status"], got["steps"], len(got["losses"])) == ("finished", 0, 1)
    assert {row["step"] for row in got["layers"]} == {0}
    unmeasured = {row["probe"] for row in got["layers"] if row["value"] is None}
    assert unmeasured == {"update_ratio"}


def test_a_diverged_run_is_a_result_with_nulls() -> None:
    spoilt = ("scheme=none", "optimizer=sgd", "lr=10", "momentum=0.99")
    got = run_json(*TINY, *spoilt, "--at", "0,1,2,3,4,5,6,7,8,9")
    assert got["status"] == "diverged"
    assert got["first_bad"]["step"] == got["steps"] - 1
    assert got["verdict"].startswith(f"diverged at step {got['first_bad']['step']}")
    assert got["losses"][-1] is None or got["final_loss"] is not None
    assert None in [*got["losses"], *(row["value"] for row in got["layers"])]


# What can be named


def test_a_preset_can_be_named() -> None:
    for preset in list(PRESETS)[::4]:
        with case(preset.key):
            config = run_json(preset.key, "depth=1", "steps=0", "warmup=0")["config"]
            assert RunConfig(**config) == preset.lanes()[0].replace(depth=1, steps=0, warmup=0)


def test_a_link_can_be_named(tiny: RunConfig) -> None:
    duel = (tiny, tiny.replace(scheme="post", steps=3))
    link = f"http://localhost:8501/?{encode(duel)}"
    for lane, config in enumerate(duel, start=1):
        assert run_json(link, "--lane", str(lane))["id"] == config.key
    assert run_json(link, "scheme=none", "steps=1")["config"]["scheme"] == "none"


def test_a_link_without_a_version_is_run_as_version_1() -> None:
    result = normviz("run", "http://x/?depth=1&steps=1", "--json")
    assert RunConfig(**json.loads(result.stdout)["config"]) == RunConfig(depth=1, steps=1)
    assert result.stderr == ""


def test_people_read_the_verdict_the_numbers_and_a_link(tiny: RunConfig) -> None:
    result = normviz("run", *TINY)
    assert result.exit_code == 0
    for words in ("1 seed", "chance 3.319, floor 1.1", "20 steps in ", tiny.key, encode([tiny])):
        assert words in result.stdout


# Several seeds


def test_several_seeds_move_both_seeds_and_end_with_their_range(tiny: RunConfig) -> None:
    result = normviz("run", *TINY, "--seeds", "3")
    assert result.exit_code == 0
    each, [said, *_] = result.stdout.splitlines()[:3], result.stdout.splitlines()[4:]
    finals = [collect(train(config)).losses[-2:].mean() for config in seeded(tiny, 3)]
    assert [line.split(":")[0] for line in each] == ["seed 0", "seed 1", "seed 2"]
    assert all(f"loss {x:.2f}" in line for x, line in zip(finals, each, strict=True))
    assert said.startswith("A Pre-LN: ") and " of 3 seeds" in said
    assert f": loss {min(finals):.2f} to {max(finals):.2f}; held-out " in said


def test_all_lanes_are_trained_and_compared_by_seed(tiny: RunConfig) -> None:
    lanes = (tiny, tiny.replace(scheme="post", lr=0.1))
    link = f"?{encode(lanes)}"
    result = normviz("run", link, "--lane", "all", "--seeds", "2")
    assert result.exit_code == 0
    runs = [[collect(train(one)) for one in seeded(lane, 2)] for lane in lanes]
    held_out, final = (
        np.mean([getattr(b, loss) - getattr(a, loss) for a, b in zip(*runs, strict=True)])
        for loss in ("held_out", "final")
    )
    assert f"by {abs(held_out):.2f} nats on average" in result.stdout
    assert f" Its mean training loss ends {abs(final):.2f} " in result.stdout
    assert "At least 3 seeds are needed to tell them apart." in result.stdout
    told = [json.loads(one)["id"] for one in
            normviz("run", link, "--lane", "all", "--json").stdout.splitlines()]  # fmt: skip
    assert told == [lane.key for lane in lanes]
    assert "--lane all asks" in normviz("run", link, "--lane", "all", "--out", "a.csv").stderr


def test_json_of_several_seeds_is_an_object_a_seed() -> None:
    result = normviz("run", *TINY, "--seeds", "2", "--json")
    told = [json.loads(line)["config"] for line in result.stdout.splitlines()]
    assert [(one["init_seed"], one["data_seed"]) for one in told] == [(0, 0), (1, 1)]


# Files


def test_csv_and_parquet_hold_the_tidy_table(tmp_path: Path, tiny: RunConfig) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    for out in (csv, parquet):
        assert normviz("run", *TINY, "--out", str(out)).exit_code == 0
    table, other = pd.read_csv(csv), pd.read_parquet(parquet)
    assert list(table.columns) == list(other.columns) == ["step", "layer", "probe", "value"]
    assert len(table) == len(other)
    assert set(table.probe) == {
        "loss",
        "lr",
        "grad_norm",
        "held_out",
        "logit_rms",
        *recorded_by("one"),
    }
    losses = [event.loss for event in train(tiny) if isinstance(event, Step)]
    assert table[table.probe == "loss"].value.tolist() == pytest.approx(losses, rel=1e-12)
    assert other[other.probe == "loss"].value.tolist() == losses
    assert other[other.probe == "loss"].layer.isna().all()
    assert other[other.probe == "grad_block"].layer.unique().tolist() == [1, 2]


def test_json_file_holds_the_object(tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    printed = run_json(*TINY, "--out", str(out), "--at", "3")
    written = json.loads(out.read_text())
    assert written["losses"] == printed["losses"]
    assert written["layers"] == printed["layers"]
    assert list(written) == KEYS


# Bad input


BAD = [
    (["depth=0"], "depth is '0', allowed is a whole number from 1 to 1000"),
    (["depth=1001"], "depth is '1001', allowed"),
    (["lr=nan"], "lr is 'nan', allowed"),
    (["scheme=psot"], "scheme is 'psot', allowed is one of .* Did you mean 'post'?"),
    (["depht=3"], "unknown setting 'depht': known settings are"),
    (["depth=3", "depth=4"], "depth is given twice: give it once"),
    (["=3"], "unknown setting ''"),
    (["heads=5"], "width is 32 and heads is 5, but the heads must divide the width"),
    (["steps=20000", "depth=1000"], "this run would take about"),
    (["herro"], "unknown preset 'herro': allowed are .* Did you mean 'hero'?"),
    (["hero", "prose"], "'prose' is one name too many: give one link or preset"),
    (["hero", "--lane", "3"], "lane is 3, allowed is a whole number from 1 to 2"),
    (["http://x/?depth=0"], "depth is '0', allowed"),
    (["http://x/?v=7"], "the link has version '7', allowed is 1"),
    (["http://[?v=1"], "the link"),
    (["self=1"], "unknown setting 'self'"),
    (["lr=?"], "lr is '?', allowed"),
    (["steps=9", "lr_edits=9:0.1"], "lr_edits names step 9, but the last of 9 steps is 8"),
    (
        ["task=text"],
        "task is text, but no text is named: paste one on the page, or give --text",
    ),
    (["--text", "/nowhere.txt"], "the file '/nowhere.txt' can't be read: No such file"),
    (["--text", "/dev/null"], "the text is empty"),
    (["task=text", f"text={'a' * 32}"], "this run trains on a text (hash aaaaaaaa…) that this"),
    (["--at", "x"], "--at is 'x', allowed are steps such as 0,10,199"),
    (["--at", "200"], "--at names step 200, this run has steps 0 to 199"),
    (["--at", "-1"], "--at names step -1"),
    (["--seeds", "2", "--out", "a.csv"], "--out writes one run and --seeds asks for several"),
    (["--seeds", "2", "init_seed=2147483647"], "init_seed is 2147483648, allowed"),
    (["--out", "a.xlsx"], "--out is 'a.xlsx', allowed is a name ending in .parquet, .csv"),
    (["--out", "/nowhere/a.csv"], "--out names the folder '/nowhere', which does not exist"),
]


@pytest.mark.slow
def test_bad_input_gets_one_sentence_and_exit_code_two() -> None:
    cuda = (["device=cuda"], "device is 'cuda', but this machine has no CUDA GPU")
    for words, sentence in [*BAD, *([] if sys.modules["torch"].cuda.is_available() else [cuda])]:
        with case(*words):
            result = normviz("run", *words, "--json")
            assert result.exit_code == 2, result.exception
            assert result.stdout == ""
            assert result.stderr.startswith("normviz: ")
            assert result.stderr.count("\n") == 1
            assert "Traceback" not in result.stderr
            for part in sentence.split(" .* "):
                assert part in result.stderr


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    result = normviz("run", *TINY, "--out", str(tmp_path / "a.csv"))
    assert result.exit_code == 2
    assert "can't be written" in result.stderr


# Ctrl-C


TELLING = """
import sys
from normviz.training import loop

def train(*words, original=loop.train, **more):
    for event in original(*words, **more):
        print(type(event).__name__, file=sys.stderr, flush=True)
        yield event

loop.train = train
from normviz.cli import main
main()
"""
"""The command itself, but it says on standard error when it is training."""


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_there() -> None:
    command = [sys.executable, "-c", TELLING, "run", "steps=2000", "--json"]
    # A shell starts background jobs with SIGINT ignored, and children inherit that.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, handler)
    with process:
        assert process.stderr is not None
        told = [process.stderr.readline().strip() for _ in range(4)]
        assert told == ["Started", "Step", "Step", "Step"]  # so at least two are in the result
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    got = json.loads(out)
    assert list(got) == KEYS
    assert got["status"] == "stopped"
    assert got["verdict"] == f"stopped after {got['steps']} steps"
    assert 2 <= got["steps"] == len(got["losses"]) < 2000
    assert set(err.split()) <= {"Step"}
    assert process.returncode == 130


# The rest


def test_list_names_every_record() -> None:
    told = normviz("list").stdout
    for key in (*SCHEMES.keys(), *PROBES.keys(), *PRESETS.keys()):
        assert f"  {key} " in told
    assert "(tested against torch.optim.Muon on each matrix)" in told
    assert "(tested against its formula, written a second time)" in told
    for name, allowed in RANGES.items():
        assert any(x.startswith(f"  {name} ") and allowed.text() in x for x in told.splitlines())
    assert "Limits: depth 1 to 1000" in told


def test_version() -> None:
    assert normviz("--version").stdout == "normviz 0.1.0\n"
