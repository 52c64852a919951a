"""Tables and configs to take away: what frames say, read back by others, each column explained."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from crossing_kit import case

from normviz import RunConfig, train
from normviz.catalog import PROBES
from normviz.catalog.probes import recorded_by
from normviz.config import ENGINE
from normviz.export import COLUMNS, KINDS, archive, read_configs, script, tables, write_configs
from normviz.result import collect
from normviz.runs.frames import Frames
from normviz.runs.lane import Lane, stored_lane
from normviz.runs.store import Store
from normviz.training.events import Diverged, Finished, Started, Step

ALL = ("runs", "steps", "layers", "probes", "columns")
BOTH = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def lanes(store: Store, tiny: RunConfig) -> list[Lane]:
    """A finished run, one full of numbers that are not finite, and one that still trains."""
    store.adopt(collect(train(tiny)))
    strange = tiny.replace(scheme="post")
    values = np.full((len(recorded_by("one")), 3), math.inf)
    values[0] = [math.nan, -math.inf, 1e-300]
    steps = [
        Step(0, 3.5, 1e-3, 0.1 + 0.2, values),
        Step(1, math.inf, 1e-3, math.nan, None),
        Step(2, math.nan, 1e-3, math.inf, values),
    ]
    started = Started(strange, "cpu", 1, 99, 3.3, None, None)
    store.adopt(collect([started, *steps, Diverged(2, None, "loss"), Finished(3)]))
    open_ = store.enqueue(tiny.replace(scheme="peri"))
    runs = [store.latest(tiny.key), store.latest(strange.key), store.run(open_)]
    frames = Frames(store)
    return [stored_lane(x, run, frames) for x, run in zip("ABC", runs, strict=True) if run]


def read(data: bytes, kind: str) -> dict[str, pd.DataFrame]:
    """The tables of a zip, by another reader than its writer."""
    with zipfile.ZipFile(io.BytesIO(data)) as files:
        if kind == "parquet":
            return {x: pd.read_parquet(io.BytesIO(files.read(f"{x}.parquet"))) for x in ALL}
        exactly = {"keep_default_na": False, "na_values": ["", "nan"]}
        return {x: pd.read_csv(io.BytesIO(files.read(f"{x}.csv")), **exactly) for x in ALL}


@BOTH
def test_tables_read_back_are_what_frames_say(lanes: list[Lane], store: Store, kind: str) -> None:
    got = read(archive(lanes, kind), kind)
    frames = Frames(store)
    for lane in lanes[:2]:
        run = store.latest(lane.config.key)
        assert run is not None
        steps = got["steps"][got["steps"].lane == lane.name]
        ours = frames.steps(run)
        for name in ("step", "loss", "lr", "grad_norm"):
            assert np.array_equal(steps[name], getattr(ours, name), equal_nan=True), name
        assert steps.run.unique().tolist() == [run.key]
        for probe in map(PROBES.__getitem__, recorded_by("one")):
            layers = frames.recording(run).layers(probe.key)
            rows = got["layers"][
                (got["layers"].lane == lane.name) & (got["layers"].probe == probe.key)
            ]
            expected = layers.values[:, probe.first_layer :]
            assert rows.step.tolist() == np.repeat(layers.step, expected.shape[1]).tolist()
            assert rows.layer.tolist() == [*range(probe.first_layer, 3)] * len(expected)
            assert np.array_equal(rows.value, expected.ravel(), equal_nan=True)
            assert rows.finite.tolist() == np.isfinite(expected.ravel()).tolist()


@BOTH
def test_every_column_is_in_the_dictionary_and_the_other_way_round(
    lanes: list[Lane], kind: str
) -> None:
    got = read(archive(lanes, kind), kind)
    there = [(name, column) for name, table in got.items() for column in table.columns]
    listed = list(zip(got["columns"].table, got["columns"].column, strict=True))
    assert there == listed == [(column.table, column.column) for column in COLUMNS]
    assert not got["columns"].isna().any().any()
    assert set(got["probes"].probe) == set(got["layers"].probe) == set(recorded_by("one"))
    kinds = {"text": "OSUf", "integer": "if", "number": "f", "yes or no": "b"}
    for column in COLUMNS:
        dtype = got[column.table][column.column].dtype
        letter = dtype.kind if isinstance(dtype, np.dtype) else "O"
        assert letter in kinds[column.type], (column, dtype)


def test_parquet_tells_nan_from_nothing(lanes: list[Lane]) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(lanes, "parquet"))) as files:
        steps = pq.read_table(io.BytesIO(files.read("steps.parquet")))
        runs = pq.read_table(io.BytesIO(files.read("runs.parquet")))
    assert steps["loss"].null_count == 0
    assert math.isnan(steps["loss"][22].as_py())
    assert runs["floor"].to_pylist()[1:] == [None, None]
    assert runs["bad_step"].to_pylist() == [None, 2, None]
    assert steps.schema.field("loss").metadata[b"unit"] == b"nats per token"


def test_csv_writes_nan_and_inf(lanes: list[Lane]) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(lanes, "csv"))) as files:
        rows = files.read("steps.csv").decode().splitlines()
    key = lanes[1].config.key
    assert (
        rows[0].replace('"', "")
        == "lane,run,step,tokens,loss,lr,grad_norm,held_out_loss,logit_rms,writes,finite,init_seed,data_seed"
    )
    assert rows[-3:] == [
        f'"B","{key}",0,32,3.5,0.001,0.30000000000000004,,,,true,0,0',
        f'"B","{key}",1,64,inf,0.001,nan,,,,false,0,0',
        f'"B","{key}",2,96,nan,0.001,inf,,,,false,0,0',
    ]


def test_runs_say_what_came_of_them(lanes: list[Lane]) -> None:
    runs = tables(lanes)["runs"].to_pylist()
    assert [run["status"] for run in runs] == ["finished", "diverged", "queued"]
    assert runs[0]["verdict"] == lanes[0].verdict
    assert runs[0]["final_loss"] == pytest.approx(lanes[0].recording.losses[-2:].mean())
    assert runs[2]["final_loss"] is None
    assert [RunConfig(**json.loads(run["config"])).key for run in runs] == [r["run"] for r in runs]


@BOTH
def test_equal_lanes_give_equal_bytes_and_a_readme(lanes: list[Lane], kind: str) -> None:
    data = archive(lanes, kind)
    assert data == archive(lanes, kind)
    with zipfile.ZipFile(io.BytesIO(data)) as files:
        assert files.testzip() is None
        text = files.read("README.txt").decode()
        assert read_configs(files.read("config.json").decode()).lanes == tuple(
            lane.config for lane in lanes
        )
        assert sorted(files.namelist()) == sorted(
            ["README.txt", "config.json", *(f"{name}.{kind}" for name in ALL)]
        )
    for column in COLUMNS:
        assert f"{column.table}.{column.column} " in text
    for lane in lanes:
        assert lane.verdict in text


def test_updates_that_were_not_made_have_no_row(tiny: RunConfig) -> None:
    table = collect(train(tiny.replace(steps=0))).tables()["layers"].to_pandas()
    assert set(table.probe) == {*recorded_by("one")} - {"update_ratio"}


def test_a_lane_without_a_run_has_no_tables(tiny: RunConfig) -> None:
    with pytest.raises(ValueError, match=r"lane 'A' \(e2-\w+\) has no run.*train it first"):
        archive([Lane("A", tiny)], "csv")


def test_a_result_offers_the_same(tmp_path: Path, tiny: RunConfig) -> None:
    result = collect(train(tiny))
    result.to_csv(tmp_path / "a.zip")
    result.to_parquet(tmp_path / "b.zip")
    result.to_json(tmp_path / "a.json")
    for path, kind in (("a.zip", "csv"), ("b.zip", "parquet")):
        steps = read((tmp_path / path).read_bytes(), kind)["steps"]
        assert steps.loss.tolist() == result.losses.tolist()
    assert read_configs((tmp_path / "a.json").read_text()).lanes == (tiny,)
    assert result.script() == script(result.lane())
    assert result.tables()["steps"].num_rows == 20


# Configs


def test_configs_come_back_as_they_were(tiny: RunConfig) -> None:
    pair = [tiny, tiny.replace(scheme="post", clip=0.5, lr_edits=((3, 0.1), (7, 1e-5)))]
    text = write_configs([Lane(n, c) for n, c in zip("AB", pair, strict=True)])
    found = read_configs(text)
    assert found.lanes == tuple(pair)
    assert found.notices == ()
    read_back = json.loads(text)
    assert read_back["engine"] == ENGINE
    assert [RunConfig(**lane["config"]).key for lane in read_back["lanes"]] == [
        lane["run"] for lane in read_back["lanes"]
    ]


def test_the_object_of_a_run_and_bare_settings_are_configs_too(tiny: RunConfig) -> None:
    assert read_configs(json.dumps(collect(train(tiny)).as_json(()))).lanes == (tiny,)
    assert read_configs(tiny.canonical()).lanes == (tiny,)
    found = read_configs('{"depth": 2}')
    assert found.lanes == (RunConfig(depth=2),)
    assert "do not name scheme, norm" in found.notices[0]


def test_another_engine_is_said(tiny: RunConfig) -> None:
    text = json.dumps({"engine": 9, "config": tiny.model_dump(mode="json")})
    assert (
        "come from version 9 of the engine and this is version 2" in read_configs(text).notices[0]
    )


BAD = [
    ("{", "can't be read as JSON"),
    ("[]", "holds no config"),
    ('{"lanes": []}', "holds no config"),
    ('{"lanes": [1]}', "holds no config"),
    ('{"lanes": [{}]}', "holds no config"),
    ('{"lanes": [' + ",".join(['{"config": {}}'] * 5) + "]}", "has 5 lanes, allowed are up to 4"),
    ('{"depth": 0}', "depth is 0, allowed"),
    ('{"depht": 3}', "unknown setting 'depht'"),
    ('{"lr": NaN}', "lr is nan, allowed"),
    ('{"lr_edits": [[1]]}', "lr_edits is"),
    ('{"lr_edits": 3}', "lr_edits is"),
]  # fmt: skip


def test_bad_configs_get_a_sentence() -> None:
    for text, sentence in BAD:
        with case(text), pytest.raises(ValueError, match=sentence):
            read_configs(text)
