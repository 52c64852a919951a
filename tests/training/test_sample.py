"""What a model of a text writes while it trains: kept with the run, and deleted with its text."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from task_kit import WORDS, with_task

from normviz import RunConfig, train
from normviz.execution.worker import StoredRun
from normviz.export import archive, script, write_configs
from normviz.export.replay import replay
from normviz.home import VARIABLE
from normviz.model import draws, texts
from normviz.model.characters import MAX_SYMBOLS, OTHER, one_line, write
from normviz.result import Result, collect
from normviz.runs import archive as files
from normviz.runs.lane import Lane
from normviz.runs.store import Store
from normviz.training import loop
from normviz.training.engine import Choice
from normviz.training.events import Step, Writing
from normviz.training.loop import WRITTEN, begin
from normviz.training.schedule import MOST_WRITTEN, written

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=4, lr=0.01)


def steps_of(config: RunConfig, **more: Any) -> list[Step]:
    return [event for event in train(config, **more) if isinstance(event, Step)]


@pytest.mark.parametrize("engine", ["tape", "eager"])
def test_all_lanes_write_at_the_same_steps_after_one_prompt_by_the_same_numbers(
    engine: Choice,
) -> None:
    """At step 0 what a plain forward pass and the numbers of the data seed give."""
    config = with_task(TINY, "prose")
    lanes = [config, config.replace(scheme="post"), config.replace(lr=0.1, init_seed=0)]
    runs = [collect(train(lane, engine=engine)).writings for lane in lanes]
    assert [[step for step, _ in run] for run in runs] == [[0, 3]] * 3
    assert len({w.prompt for run in runs for _, w in run}) == 1
    assert runs[0][0] == runs[2][0] and runs[0][1] != runs[2][1] and runs[0][0] != runs[1][0]
    (model, task), first = begin(config), runs[0][0][1]
    tokens, weights = task.opening.tolist(), list[np.ndarray]()

    def tap(site: str, _: int, x: torch.Tensor) -> torch.Tensor:
        if site == "attn_weights" and len(tokens) == TINY.seq_len:
            weights.append(x[:, -1].mean(0).numpy())
        return x

    for u in draws.uniform(draws.generator("writing", config.data_seed), WRITTEN):
        with torch.no_grad():
            p = torch.softmax(model(torch.tensor([tokens[-8:]]), tap)[0, -1].double(), 0)
        tokens.append(int((p.cumsum(0) <= u).sum()))
    assert first.prompt + first.text == "".join(task.alphabet[i] for i in tokens)
    np.testing.assert_allclose(first.weights(), weights, atol=0.005)


@pytest.mark.parametrize("engine", ["tape", "eager"])
@pytest.mark.parametrize(
    "change",
    [
        {"clip": 0.5},
        {"dropout": 0.1, "v_norm": "on"},
        {"norm": "batchnorm"},
        {"norm": "powernorm"},
        {"scheme": "prores"},
        {"scheme": "hyper"},
        {"family": "rnn", "scheme": "between_layers", "task": "prose", "seq_len": 8},
    ],
    ids=str,
)
def test_it_changes_no_bit_of_the_run(
    change: dict[str, Any], engine: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, runs = with_task(TINY, "prose").replace(**change), list[list[Step]]()
    for at in ((0, 1, 2, 3), ()):
        monkeypatch.setattr(loop, "written", lambda _, at=at: at)
        runs.append(steps_of(config, engine=engine))
    assert [bool(step.writing) for step in runs[0]] == [True] * 4
    for one, other in zip(*runs, strict=True):
        assert str(replace(one, layers=None, writing=None)) == str(replace(other, layers=None))
        np.testing.assert_array_equal(one.layers, other.layers)


def test_steps_are_closer_at_first_and_few() -> None:
    assert written(TINY.replace(steps=200)) == (0, 22, 88, 199)
    assert [written(TINY.replace(steps=n)) for n in (0, 1, 2)] == [(), (0,), (0, 1)]
    assert len(written(TINY.replace(steps=20_000))) == MOST_WRITTEN + 1


@pytest.mark.parametrize("change", [{"task": "markov"}, {"task": "prose", "steps": 0}], ids=str)
def test_other_tasks_and_models_without_training_write_nothing(change: dict[str, object]) -> None:
    assert not any(step.writing for step in steps_of(TINY.replace(**change)))


def test_cells_write_nothing_and_neither_does_a_run_where_it_diverged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = with_task(TINY, "prose")
    assert not any(step.writing for step in steps_of(config, record=(0, 3)))
    monkeypatch.setattr(loop, "written", lambda config: range(config.steps))
    lost = {"scheme": "none", "optimizer": "sgd", "lr": 10.0, "momentum": 0.99, "steps": 30}
    *steps, last = steps_of(config.replace(**lost))
    assert last.step < 29 and last.writing is None and steps[0].writing is not None


def test_a_logit_that_is_not_finite_draws_nothing() -> None:
    assert loop.drawn(np.array([0.0, np.nan], np.float32), 0.5) is None
    assert loop.drawn(np.array([0.0, 0.0, -90.0], np.float32), 0.999999) == 1


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


def with_writing(config: RunConfig, text: str) -> Result:
    it = collect(train(config))
    at = np.array([*it.steps.writing[:-1], Writing("a prompt", text, bytes(16))], object)
    return replace(it, steps=replace(it.steps, writing=at))


@pytest.mark.parametrize("task", ["text", "prose"])
def test_it_is_kept_with_the_run_and_of_an_own_text_in_no_file_to_take_away(
    task: str, store: Store, tmp_path: Path
) -> None:
    config = with_task(TINY, task)
    it = with_writing(config, "a line of the secret text")
    (number,) = store.keep_all([it], "here")
    run = store.run(number)
    assert run is not None and len(it.writings) == 2
    assert store.recording(run).writings == store.recording(run, layers=False).writings
    assert store.recording(run).writings == it.writings
    files.save(it, tmp_path / "run.npz")
    assert [one.writings for one in files.load(tmp_path / "run.npz")] == [it.writings]
    lane = Lane("A", config, (it,))
    with zipfile.ZipFile(io.BytesIO(archive([lane], "csv"))) as all_files:
        tables = b"".join(map(all_files.read, all_files.namelist()))
    taken = [tables.decode(), replay([lane])]
    assert ["secret text" in one for one in taken] == [task == "prose"] * 2
    assert all("secret text" not in one for one in (script(lane), write_configs([lane])))
    (_, last) = json.loads(json.dumps(it.as_json(())))["writings"]
    assert (last["step"], last["text"]) == (3, "a line of the secret text")
    assert np.shape(last["attention"]) == (2, 8)


def test_it_is_deleted_with_its_text(store: Store) -> None:
    config, other, prose = (with_task(TINY, task) for task in ("text", "text", "prose"))
    gone, kept = config.text, texts.add(f"other {WORDS}")
    configs = config, other.replace(text=kept), prose
    runs = store.keep_all([collect(train(one)) for one in configs], "here")
    texts.delete(gone)
    store.drop_writing(texts.listed())
    stored = [run for run in map(store.run, runs) if run is not None]
    assert [len(store.recording(run).writings) for run in stored] == [0, 2, 2]


def test_a_run_whose_text_is_deleted_meanwhile_keeps_no_writing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_task(TINY, "text")
    monkeypatch.setenv(VARIABLE, str(store.folder))
    key = texts.add(WORDS)
    counts = []
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
        counts.append(len(store.recording(ended).writings))
    assert counts == [2, 0]
