"""What a trained model writes: greedily, kept with the run, and deleted with its text."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from task_kit import WORDS, with_task

from normviz import RunConfig, train
from normviz.execution.worker import StoredRun
from normviz.export import archive, script, write_configs
from normviz.export.replay import replay
from normviz.home import VARIABLE
from normviz.model import texts
from normviz.model.characters import MAX_SYMBOLS, OTHER, one_line, write
from normviz.result import collect
from normviz.runs import archive as files
from normviz.runs.lane import Lane
from normviz.runs.store import Store
from normviz.training.events import Finished
from normviz.training.loop import SAMPLE, begin

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=30, lr=0.01)


def wrote(config: RunConfig, **more: object) -> str:
    *_, last = train(config, **more)
    assert isinstance(last, Finished)
    return last.wrote


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "change"),
    [
        ("prose", {}),
        ("prose_split", {"scheme": "hyper"}),
        ("text", {"norm": "batchnorm", "dropout": 0.1}),
    ],
    ids=str,
)
def test_it_is_the_most_likely_character_each_time(task: str, change: dict[str, object]) -> None:
    config = with_task(TINY, task).replace(**change)
    begun = begin(config)
    got = wrote(config, begun=begun)
    model, made = begun
    model.eval()
    codes = made.codes if task == "prose" else made.unread
    window = codes[: config.seq_len].tolist()
    said = ""
    for _ in range(SAMPLE):
        with torch.no_grad():
            best = int(model(torch.tensor([window]))[0, -1].argmax())
        said += made.alphabet[best]
        window = [*window[1:], best]
    assert len(got) == SAMPLE and got == said


@pytest.mark.parametrize("change", [{"task": "markov"}, {"task": "prose", "steps": 0}], ids=str)
def test_other_tasks_and_models_without_training_write_nothing(change: dict[str, object]) -> None:
    assert wrote(TINY.replace(**change)) == ""


def test_a_run_that_diverged_writes_nothing() -> None:
    lost = {"scheme": "none", "optimizer": "sgd", "lr": 10.0, "momentum": 0.99}
    assert wrote(with_task(TINY.replace(**lost), "text")) == ""


def test_the_alphabet_names_the_symbols() -> None:
    text = "".join(chr(0x4E00 + i) * (2 + i % 3) for i in range(MAX_SYMBOLS + 9))
    for one in (WORDS, text):
        found = write(one)
        assert len(found.alphabet) == found.symbols
        again = "".join(found.alphabet[i] for i in found.codes)
        assert all(a in (b, OTHER) for a, b in zip(again, one, strict=True))
        assert (again == one) == (found.other == 0)


def test_it_fits_into_one_line() -> None:
    assert one_line("a b\n\n  c\u202e\x1b[2J") == "a b⏎⏎␣␣c\ufffd\ufffd[2J"


@pytest.mark.slow
def test_it_is_kept_with_the_run_and_in_no_file_to_take_away(store: Store, tmp_path: Path) -> None:
    config = with_task(TINY, "text")
    it = replace(collect(train(config)), wrote="a line of the secret text")
    (number,) = store.keep_all([it], "here")
    run = store.run(number)
    assert run is not None and run.wrote == store.recording(run).wrote == it.wrote
    files.save(it, tmp_path / "run.npz")
    assert [one.wrote for one in files.load(tmp_path / "run.npz")] == [it.wrote]
    lane = Lane("A", config, (it,))
    for kind in ("csv", "parquet"):
        with zipfile.ZipFile(io.BytesIO(archive([lane], kind))) as all_files:
            for name in all_files.namelist():
                assert b"secret text" not in all_files.read(name), name
    assert all(
        "secret text" not in one for one in (script(lane), write_configs([lane]), replay([lane]))
    )
    assert json.loads(json.dumps(it.as_json(())))["wrote"] == it.wrote


def test_it_is_deleted_with_its_text(store: Store) -> None:
    config, other, prose = (with_task(TINY, task) for task in ("text", "text", "prose"))
    gone, kept = config.text, texts.add(f"other {WORDS}")
    runs = store.keep_all(
        [
            replace(collect(train(one)), wrote="a line")
            for one in (config, other.replace(text=kept), prose)
        ],
        "here",
    )
    texts.delete(gone)
    store.drop_writing(texts.listed())
    assert [run and run.wrote for run in map(store.run, runs)] == ["", "a line", "a line"]


def test_a_run_whose_text_is_deleted_meanwhile_keeps_no_writing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_task(TINY, "text")
    monkeypatch.setenv(VARIABLE, str(store.folder))
    key = texts.add(WORDS)
    written = []
    for is_deleted in (False, True):
        run = store.enqueue(config.replace(init_seed=int(is_deleted), text=key))
        began = Store.started

        def started(*words: Any, delete: bool = is_deleted, began: Any = began) -> None:
            began(*words)
            if delete:
                texts.delete(key)

        monkeypatch.setattr(Store, "started", started)
        StoredRun(store, run).go()
        ended = store.run(run)
        assert ended is not None and ended.status == "finished", ended
        written.append(len(ended.wrote))
    assert written == [SAMPLE, 0]
