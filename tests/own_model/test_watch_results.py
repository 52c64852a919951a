"""What a watch leaves: a stored run, tables, a replay; its charts on a page and in a terminal."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from cli_kit import normviz
from click.testing import Result
from hosted_kit import turn_on
from page_kit import address, at_page, checked, duel, shown, words_of
from rich.console import Console
from streamlit.testing.v1 import AppTest
from test_watch_loop import L, batch, made

from normviz import RunConfig, watch
from normviz.charts import loss
from normviz.links import decode, query
from normviz.observed import Observed, nearest
from normviz.own_model.step_clock import StepClock
from normviz.own_model.terminal import Terminal, screen
from normviz.own_model.watch import Cadence, Watch
from normviz.result import collect
from normviz.runs import Run
from normviz.runs.names import with_names
from normviz.runs.search import search
from normviz.runs.store import Query, Store
from normviz.training.loop import train


def watched(steps: int = 6, **options: object) -> Watch:
    model, optimizer = made()
    with watch(model, optimizer, name="Tiny", **options) as it:
        for step in range(steps):
            model(*batch(step))[1].backward()
            optimizer.step()
            optimizer.zero_grad()
    return it


def found(store: Store, words: str) -> list[Run]:
    return list(store.listed(Query(search(words).clauses, trained=True), 9).runs)


def test_an_observed_run_is_stored_found_and_read_back(folder: Path) -> None:
    it = watched(to="store")
    store = Store(folder)
    (run,) = found(store, "model tiny")
    for words in ("observed", "depth 3 observed", "model"):
        assert [one.id for one in found(store, words)] == [run.id], words
    assert found(store, "model giant") == [] and run.id in [one.id for one in found(store, "pre")]
    assert run.config == it.result.config and run.key == it.result.key
    assert (run.status, run.origin, run.is_observed) == ("finished", "observed", True)
    again = store.recording(run)
    np.testing.assert_array_equal(again.steps.layers, it.result.steps.layers)
    np.testing.assert_array_equal(again.losses, it.result.losses)
    assert again.verdict == it.result.verdict and again.verdict.kind == "observed"
    assert again.started is not None and again.started.device == "cpu"
    with pytest.raises(ValueError, match="Tiny, Pre-LN was observed, so it has no settings"):
        run.trained  # noqa: B018
    assert store.set_rate([run.id], 0.1) is None and store.delete(run.id) is None


def test_a_process_that_dies_leaves_a_run_that_says_so(folder: Path) -> None:
    model, optimizer = made()
    it = watch(model, optimizer)
    store = Store(folder)
    (run,) = found(store, "observed")
    assert run.is_open
    store.db.connection.execute("UPDATE runs SET pid = 0 WHERE id = ?", (run.id,))
    (run,) = found(store, "observed")
    assert run.status == "failed" and "ended without a word" in (run.message or "")
    it.close()


def test_a_shared_server_accepts_none_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch)
    model, optimizer = made()
    with pytest.raises(ValueError, match="a shared server, which stores no runs of own models"):
        watch(model, optimizer)
    assert watched(1, to=None).result.status == "finished"


@pytest.mark.slow
def test_its_tables_and_files_are_those_of_a_run(tmp_path: Path) -> None:
    it = watched(to=tmp_path / "run.html", probes=("grad_block",))
    result, tables = it.result, it.result.tables()
    assert tables["steps"].num_rows == 6 and tables["runs"]["status"].to_pylist() == ["finished"]
    assert tables["steps"]["tokens"].null_count == tables["steps"]["init_seed"].null_count == 6
    frame = tables["layers"].to_pandas()
    one = frame[(frame.probe == "grad_block") & (frame.step == 5) & (frame.layer == 2)]
    assert one.value.tolist() == [result.at("grad_block", 5, 2)]
    result.to_parquet(tmp_path / "run.zip")
    assert (tmp_path / "run.zip").stat().st_size > 1000
    assert (tmp_path / "run.html").read_text() == result.html()
    toy = collect(train(RunConfig(depth=2, steps=2, width=16, heads=2)))
    both = with_names([result.lane("A"), toy.lane("B")])
    assert [one.label for one in both] == ["A  Tiny, Pre-LN, observed", "B  Pre-LN"]
    assert loss.finding(both).startswith("Loss in units of its own / nats per token: A Tiny")
    with pytest.raises(ValueError, match="was observed"):
        result.script()


@pytest.mark.slow
def test_it_is_exported_by_its_key_in_the_forms_that_it_has(folder: Path, tmp_path: Path) -> None:
    key = watched(to="store", probes=("grad_block",)).result.key

    def export(*words: str) -> Result:
        return normviz("export", key, *words, "--data", str(folder), "--out", str(tmp_path))

    file = tmp_path / f"normviz-{key}-parquet.zip"
    assert export("--as", "parquet").stdout.strip() == str(file)
    with zipfile.ZipFile(file) as files:
        steps, runs = (
            pd.read_parquet(io.BytesIO(files.read(f"{name}.parquet"))) for name in ("steps", "runs")
        )
        assert "config.json" not in files.namelist(), "it can't be trained"
        assert b"Lane A was observed: somebody's own model" in files.read("README.txt")
    assert json.loads(runs.config[0])["model"] == "Tiny"
    assert steps.run.unique().tolist() == [key] and len(steps) == 6
    for words, said in (
        (
            ["--as", "py"],
            "Tiny, Pre-LN was observed, and can be taken as csv, parquet or html, not as py: a",
        ),
        (
            ["--as", "json"],
            "not as json: it has no settings that `normviz run --config` could train",
        ),
        (["depth=4"], "was observed, so it has no settings"),
    ):
        result = export(*words)
        assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1, (
            words
        )


def test_the_nearest_toy_has_what_is_known() -> None:
    deep = Observed(model="Big", blocks=400, width=8192, placement="peri", norm="rmsnorm")
    toy = nearest(deep)
    assert (toy.scheme, toy.norm) == ("peri", "rmsnorm") and 1 <= toy.depth <= 400
    assert nearest(Observed(model="Odd", blocks=4, width=64)) == RunConfig(depth=4)
    assert Observed(**deep.model_dump()).canonical() == deep.canonical()
    assert deep.key == deep.replace(notes=("a",), width=1).key != deep.replace(run="x").key


def test_the_runs_page_shows_its_charts_and_opens_a_toy_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched(to="store")
    at: AppTest = checked(at_page("runs").run())
    checked(at.text_input(key="runs_search").set_value("observed").run())
    (run,) = found(Store(folder), "observed")
    (box,) = [box for box in at.checkbox if box.key == f"pick_{run.id}"]
    assert "Tiny, Pre-LN" in box.label and "LayerNorm" in box.label
    checked(box.set_value(True).run())
    assert at.session_state["chosen_player"] is not None, "the player is on the page"
    checked(at.button(key="reopen").click().run())
    (toy,) = Store(folder).queued()  # it trains at once
    kept, at = duel(at), at_page("duel")
    at.session_state["duel"] = kept
    checked(at.run())
    assert duel(at).lanes == (RunConfig(depth=L),) and shown(at)["topic"]["runs"] == [toy, run.id]
    assert any("A Pre-LN" in one.value for one in at.get("html"))
    (line,) = [words_of(one) for one in at.caption if "observed by normviz.watch" in one.value]
    assert "its own loss" in line and "3 blocks" in line
    assert any("B Tiny, Pre-LN, observed" in one.value for one in at.get("html"))
    assert [len(one.options) for one in at.get("button_group") if one.key == "n_lanes"] == [3]
    link = address(at)
    assert link["beside"] == run.key and decode(query(link)).notices == ()

    def opened() -> AppTest:
        again = at_page("duel")
        for name, value in link.items():
            again.query_params[name] = value
        return checked(again.run())

    again = opened()  # a reload
    assert shown(again)["topic"]["runs"] == [toy, run.id]
    checked(again.button(key="take_beside").click().run())
    assert "beside" not in address(again) and shown(again)["topic"]["runs"] == [toy]
    turn_on(monkeypatch)
    again = opened()
    said = [one.value for one in again.info]
    assert any("a shared server, which takes no runs of own models" in one for one in said)
    assert shown(again)["topic"]["runs"] == [toy]


def test_the_terminal_fits_80_by_24_without_colour_and_a_pipe_gets_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    it = watched(8, to=None, show="terminal")
    piped = capsys.readouterr().out
    assert "\x1b" not in piped and "step 7  loss " in piped
    out = io.StringIO()
    Console(file=out, width=80, height=24, no_color=True, force_terminal=False).print(screen(it))
    rows = out.getvalue().splitlines()
    assert len(rows) <= 23 and max(map(len, rows)) <= 80
    assert sum(row[:1].isdigit() and "#" in row for row in rows) == L

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Screen()
    live = Terminal(it, shown)
    live.update()
    live.end()
    assert "Tiny, Pre-LN: 3 blocks at layers" in shown.getvalue()


def test_the_cadence_records_the_first_steps_and_then_so_many_that_it_costs_two_percent() -> None:
    cadence, recorded = Cadence("auto", False), []
    for step in range(500):
        is_recorded = cadence.records(step)
        recorded += [step] * is_recorded
        cadence.note(is_recorded, 1.4 if is_recorded else 1.0)
    assert recorded[:32] == list(range(32)) and recorded[32:35] == [40, 60, 80]
    assert [step for step in range(20) if Cadence(7, False).records(step)] == [0, 7, 14]


def test_steps_on_a_gpu_are_timed_by_events_that_are_read_once_it_came_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list["Event"]()

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            self.at = 100.0 * len(made)
            made.append(self)

        def record(self, stream: object) -> None:
            assert stream == "stream"

        def query(self) -> bool:
            return self.at <= reached

        def elapsed_time(self, other: Event) -> float:
            return other.at - self.at

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream")
    clock, reached = StepClock(torch.device("cuda")), 0.0
    assert list(clock.end(True)) == []
    clock.begin()
    reached = 100.0
    assert list(clock.end(False)) == [(True, 0.1)]
    clock.begin()
    reached = 500.0
    assert list(clock.end(False)) == [(False, 0.1), (False, 0.1)]
    on_cpu = StepClock(torch.device("cpu"))
    ((recorded, seconds),) = on_cpu.end(True)
    assert recorded and 0 <= seconds < 1


NOTEBOOK = Path(__file__).parents[2] / "assets" / "notebooks" / "own_model.ipynb"


@pytest.mark.slow
def test_the_example_notebook_runs_from_top_to_bottom_and_prints_what_is_committed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Here, in 9 steps instead of 120, and asked about step 7 instead of 31."""
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if "outputs" in cell]
    committed = [out.get("text", "") for cell in cells for out in cell.outputs]
    names: dict[str, object] = {}
    for cell in cells:
        source = cell.source.replace("120", "9").replace("31", "7")
        exec(compile(source, "<cell>", "exec"), names)
    found = _watches("".join(committed).replace("120", "9"))
    assert _watches(capsys.readouterr().out) == found and len(found) >= 4
    assert NOTEBOOK.stat().st_size < 50_000


def _watches(printed: str) -> list[str]:
    """The lines about watches: model, placement, norm and blocks."""
    return [line for line in printed.splitlines() if line.startswith("Watch(")]
