"""`normviz sweep`: what it says before, after, and of bad input; its files; starting again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from cli_kit import normviz
from click.testing import Result
from crossing_kit import case

from normviz.runs.engines import computed_by
from normviz.runs.store import Store

TINY = ("width=16", "heads=2", "seq_len=8", "batch=4", "steps=30")
AXES = ("scheme=pre,post", "depth=1,2", "lr=1e-3,1e-2")


def sweep(*words: str) -> Result:
    return normviz("sweep", *words)


@pytest.mark.slow
def test_a_sweep_says_what_it_does_and_what_came_out(tmp_path: Path) -> None:
    data, csv, svg = tmp_path / "data", tmp_path / "map.csv", tmp_path / "map.svg"
    files = ("--data", str(data), "--out", str(csv), "--plot", str(svg))
    result = sweep(*AXES, *TINY, *files, "--processes", "1")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("8 runs: 2 scheme x 2 depth x 2 lr (Xavier, Markov chain")
    assert "; about " in result.stderr
    assert "8 of 8  " in result.stderr
    for words in ("Pre-LN", "Post-LN", "learning-rate sensitivity", "best loss", "(1 seed)"):
        assert words in result.stdout
    drawn = svg.read_text()
    assert drawn.startswith("<svg")
    assert (
        "steps 30" in drawn and "1 seed a cell" in drawn and "/maps?v=1&amp;across=depth" in drawn
    )
    rows = pd.read_csv(csv)
    assert len(rows) == 8
    assert rows[["scheme", "depth", "lr"]].values.tolist() == [
        [s, d, lr] for s in ("pre", "post") for d in (1, 2) for lr in (1e-3, 1e-2)
    ]
    by = computed_by(rows.engine, "cells")
    assert f"{by}\n" in result.stdout and by in drawn
    store = Store(data)
    assert all(store.latest(key) is not None for key in rows.run)

    parquet, more = tmp_path / "map.parquet", tmp_path / "map.png"
    again = sweep(*AXES, *TINY, "--data", str(data), "--out", str(parquet), "--plot", str(more))
    assert again.exit_code == 0
    assert "8 of them stored" in again.stderr and "about" not in again.stderr
    assert again.stdout == result.stdout
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), rows, check_dtype=False)
    assert more.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_cell_that_fails_is_said_and_tried_again(tmp_path: Path) -> None:
    words = (*TINY, "task=text", f"text={'a' * 32}", "depth=1,2", "--data", str(tmp_path))
    result = sweep(*words, "--processes", "1")
    assert result.exit_code == 1
    assert result.stdout == "no cell has ended\n"
    assert result.stderr.count("that this server does not have") == 2
    assert "normviz: depth=1 failed: " in result.stderr


BAD = [
    (["depth=0,2"], "depth is '0', allowed is a whole number from 1 to 1000"),
    (["depht=2,3"], "unknown setting 'depht': known settings are seeds, scheme"),
    (["depth=2,2"], "depth names 2 twice"),
    (["seeds=99"], "seeds is 99, allowed is a whole number from 1 to 50"),
    (["herro", "depth=2,4"], "unknown preset 'herro'"),
    (
        ["depth=2,3", "--out", "a.xlsx"],
        "--out is 'a.xlsx', allowed is a name ending in .parquet",
    ),
    (["depth=2,3", "--plot", "a.pdf"], "--plot is 'a.pdf', allowed is a name ending in .svg"),
    (["depth=2,3", "--out", "/nowhere/a.csv"], "--out names the folder '/nowhere', which does"),
    (
        ["depth=2,3", "--on", "slurm"],
        "--on is 'slurm', allowed is local (this machine), ray (a",
    ),
    (["depth=2,3", "--on", "ray:ray://head:10001"], "--on is 'ray:ray://head:10001', allowed"),
    (
        ["scheme=pre,post", "norm=rmsnorm,layernorm", "--plot", "a.svg"],
        "a map needs a setting with several values, and of several such",
    ),
]


@pytest.mark.slow
def test_bad_input_gets_one_sentence_before_anything_runs(tmp_path: Path) -> None:
    for words, sentence in BAD:
        with case(*words):
            result = sweep(*words, "--data", str(tmp_path))
            assert result.exit_code == 2, result.exception
            assert result.stdout == ""
            assert result.stderr.startswith(f"normviz: {sentence}")
            assert result.stderr.count("\n") == 1
