"""`normviz export` and `normviz run --config`: files, what is found where, and sentences."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from cli_kit import normviz
from crossing_kit import case

from normviz import RunConfig, train
from normviz.config import seeded
from normviz.lessons.presets import PRESETS
from normviz.links import encode
from normviz.result import collect
from normviz.runs.store import Store

TINY = ("depth=2", "width=16", "heads=2", "seq_len=8", "batch=4", "steps=20")
PRE, POST = PRESETS["hero"].lanes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files go; runs are kept beside it."""
    (tmp_path / "out").mkdir()
    (tmp_path / "data").mkdir()
    return tmp_path / "out"


def export(folder: Path, *words: str) -> list[str]:
    """Names of the files that were written."""
    data = str(folder.parent / "data")
    result = normviz("export", *words, "--out", str(folder), "--data", data)
    assert result.exit_code == 0, result.stderr
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert all(path.is_file() for path in paths)
    return [path.name for path in paths]


def steps(path: Path) -> pd.DataFrame:
    with zipfile.ZipFile(path) as files:
        return pd.read_csv(io.BytesIO(files.read("steps.csv")))


@pytest.mark.slow
def test_a_replay_is_one_file(folder: Path) -> None:
    assert export(folder, "hero", "--as", "html") == ["normviz-hero.html"]
    text = (folder / "normviz-hero.html").read_text("utf-8")
    assert "Pre-LN against Post-LN" in text and "at chance" in text


@pytest.mark.slow
def test_a_preset_that_ships_needs_no_training(folder: Path) -> None:
    assert export(folder, "hero") == ["normviz-hero-csv.zip"]
    table = steps(folder / "normviz-hero-csv.zip")
    assert table.groupby("lane").size().to_dict() == {"A": 200, "B": 200}
    assert export(folder, "hero", "--as", "parquet") == ["normviz-hero-parquet.zip"]
    names = ["normviz-hero-A-pre.py", "normviz-hero-B-post.py"]
    assert export(folder, "hero", "--as", "py") == names
    for name in names:
        compile((folder / name).read_text(), name, "exec")
        assert "The run that it repeats had" in (folder / name).read_text()


@pytest.mark.slow
def test_a_run_is_found_by_its_key_and_by_its_link(folder: Path) -> None:
    assert export(folder, POST.key) == [f"normviz-{POST.key}-csv.zip"]
    link = f"http://localhost:8501/?{encode([PRE, POST])}"
    assert export(folder, link, "--lane", "2", "--as", "json") == [f"normviz-{POST.key}.json"]


@pytest.mark.slow
def test_what_nobody_ran_is_trained_first(folder: Path, tiny: RunConfig) -> None:
    (name,) = export(folder, "hero", *TINY, "--lane", "1")
    expected = collect(train(tiny)).losses.tolist()
    assert steps(folder / name).loss.tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.slow
def test_scripts_and_configs_of_what_nobody_ran_need_no_training(folder: Path) -> None:
    words = ("depth", "depth=1000", "width=8", "steps=100")
    assert len(export(folder, *words, "--as", "json")) == 1
    names = export(folder, *words, "--as", "py")
    assert len(names) == 3
    assert "The run that it repeats" not in (folder / names[0]).read_text()


def test_lanes_that_a_change_makes_alike_are_one(folder: Path) -> None:
    (name,) = export(folder, "scheme=peri", "--as", "py")
    assert name.endswith("-A-peri.py")


def test_a_run_that_is_not_finished_is_taken_as_it_is(folder: Path, tiny: RunConfig) -> None:
    store = Store(folder.parent / "data")
    result = collect(train(tiny))
    run = store.enqueue(tiny)
    store.append(run, list(result.steps)[:7])
    store.end(run, "stopped")
    words = ("export", "hero", *TINY, "--lane", "1", "--data", str(store.folder))
    done = normviz(*words, "--out", str(folder / "a.zip"))
    assert done.exit_code == 0
    assert done.stderr == "normviz: lane A is not finished: stopped, 7 of 20 steps\n"
    assert len(steps(folder / "a.zip")) == 7


def test_several_seeds_are_stored_ones_and_what_is_missing(folder: Path, tiny: RunConfig) -> None:
    store = Store(folder.parent / "data")
    stored = collect(train(seeded(tiny, 2)[1]))
    run = store.enqueue(seeded(tiny, 2)[1])
    store.append(run, list(stored.steps)[:7])
    store.end(run, "stopped")
    words = ("export", "hero", *TINY, "--lane", "1", "--seeds", "2", "--data", str(store.folder))
    done = normviz(*words, "--out", str(folder))
    assert done.stderr == "normviz: lane A (seed 1) is not finished: stopped, 7 of 20 steps\n"
    path = Path(done.stdout.strip())
    assert path.name == f"normviz-{tiny.key}-2-seeds-csv.zip"
    table = steps(path)
    assert table.groupby(["lane", "init_seed", "data_seed"]).size().to_dict() == {
        ("A", 0, 0): 20, ("A", 1, 1): 7
    }  # fmt: skip


@pytest.mark.slow
def test_the_name_of_a_file_says_what_it_holds(folder: Path) -> None:
    data = str(folder.parent / "data")
    for name, word in (("a.json", '"engine": 2'), ("a.py", "import torch")):
        out = folder / name
        done = normviz("export", "hero", "--lane", "1", "--out", str(out), "--data", data)
        assert done.stdout == f"{out}\n"
        assert word in out.read_text()


@pytest.mark.slow
def test_configs_go_round(folder: Path) -> None:
    duel = ("hero", *TINY)
    (name,) = export(folder, *duel, "--as", "json")
    asked = ("--config", str(folder / name), "--json")
    for lane, scheme in (("1", "pre"), ("2", "post")):
        done = normviz("run", *asked, "--lane", lane)
        assert done.stderr == ""
        got = json.loads(done.stdout)
        assert (got["config"]["scheme"], got["config"]["depth"]) == (scheme, 2)
    assert json.loads(normviz("run", *asked, "depth=1", "steps=1").stdout)["config"]["depth"] == 1


BAD = [
        (["herro"], "unknown preset 'herro': allowed are"),
        (["e1-0123456789abcdef"], "has no run e1-0123456789abcdef: name a link or a preset"),
        (["hero", "prose"], "'prose' is one name too many"),
        (["hero", "depth=0"], "depth is '0', allowed"),
        (["hero", "--as", "xlsx"], "--as is 'xlsx', allowed is one of csv, parquet, json, py"),
        (["hero", "--as", "py", "--seeds", "2"], "--seeds is 2, but a script repeats one run"),
        (["hero", "--lane", "3"], "lane is 3, allowed is a whole number from 1 to 2"),
        (["hero", "--out", "a.csv"], "--out is 'a.csv', allowed for csv is a folder that exists"),
        (["hero", "--as", "py", "--out", "a.zip"], "allowed for py is a folder that exists or a name"),
        (["hero", "--out", "/nowhere/a.zip"], "--out names the folder '/nowhere', which does not"),
        (["hero", "--out", "a.py"], "a script holds one lane and there are 2: give a folder"),
        (["hero", "--out", "/dev/full/a.zip"], "'/dev/full', which does not exist"),
        (["http://x/?v=7"], "the link has version '7', allowed is 1"),
]  # fmt: skip
CONFIGS = [
    (["--config", "/nowhere/a.json"], "--config '/nowhere/a.json' can't be read: No such file"),
    (["hero", "--config", "a.json"], "'hero' is one name too many: the settings come from"),
]


@pytest.mark.slow
def test_bad_input_gets_one_sentence_and_exit_code_two(folder: Path) -> None:
    data = ["--data", str(folder.parent / "data")]
    exports = [(["export", *words, *data], said) for words, said in BAD]
    for words, sentence in [*exports, *((["run", *words], said) for words, said in CONFIGS)]:
        with case(*words):
            result = normviz(*words)
            assert result.exit_code == 2, result.exception
            assert result.stdout == ""
            assert result.stderr.startswith("normviz: ")
            assert result.stderr.count("\n") == 1
            assert sentence in result.stderr
