"""A duel of several seeds, taken away: every file holds them all, or says of which seed it is."""

from __future__ import annotations

import io
import json
import math
import zipfile
from html import escape

import pytest
from test_export import BOTH, read

from normviz import RunConfig, train
from normviz.config import seeded
from normviz.export import archive, read_configs, replay, write_configs
from normviz.export.archive import readme
from normviz.runs import collect
from normviz.runs.frames import Frames
from normviz.runs.lane import Lane, stored_lane
from normviz.runs.outcome import came_out
from normviz.runs.statistics import compare
from normviz.runs.store import Store


@pytest.fixture
def repeated(store: Store, tiny: RunConfig) -> list[Lane]:
    """Two lanes: the first from three seeds, the last of which still waits; the second from one."""
    for config in (*seeded(tiny, 2), tiny.replace(scheme="post", init_seed=7)):
        store.adopt(collect(train(config)))
    waits = store.run(store.enqueue(seeded(tiny, 3)[2]))
    first, second = (store.latest(config.key) for config in seeded(tiny, 2))
    other = store.latest(tiny.replace(scheme="post", init_seed=7).key)
    assert first and second and waits and other
    frames = Frames(store)
    return [stored_lane("A", first, frames, [second, waits]), stored_lane("B", other, frames)]


@BOTH
def test_every_seed_is_in_the_tables_under_its_lane(
    repeated: list[Lane], store: Store, tiny: RunConfig, kind: str
) -> None:
    got = read(archive(repeated, kind), kind)
    seeds = ["lane", "init_seed", "data_seed"]
    assert got["runs"][seeds].values.tolist() == [
        ["A", 0, 0], ["A", 1, 1], ["A", 2, 2], ["B", 7, 0]
    ]  # fmt: skip
    assert got["runs"].status.tolist() == ["finished", "finished", "queued", "finished"]
    for config in seeded(tiny, 2):
        run = store.latest(config.key)
        assert run is not None
        for name in ("steps", "layers"):
            table = got[name]
            mine = table[(table.lane == "A") & (table.init_seed == config.init_seed)]
            assert mine.run.unique().tolist() == [run.key]
            assert mine.data_seed.unique().tolist() == [config.data_seed]
        losses = got["steps"][got["steps"].run == run.key].loss
        assert losses.tolist() == Frames(store).steps(run).loss.tolist()


def test_what_all_seeds_came_to_is_in_the_readme(repeated: list[Lane]) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(repeated, "csv"))) as files:
        text = files.read("README.txt").decode()
    low, high = sorted(f"{it.final:.2f}" for it in repeated[0].repeats[:2])
    assert (
        " of 3" in text
        and f": loss {low} to {high}; held-out " in text
        and "; 1 without a result so far" in text
    )
    assert "One seed a lane" not in text and "Several seeds a lane" in text


@pytest.mark.slow
def test_readme_and_replay_compare_the_lanes_as_the_page_does(
    store: Store, tiny: RunConfig
) -> None:
    lanes = {"A": seeded(tiny, 3), "B": seeded(tiny.replace(scheme="post"), 3)}
    got = {name: [collect(train(config)) for config in each] for name, each in lanes.items()}
    a, b = ([one.held_out or math.nan for one in each] for each in got.values())
    mean = f"of 3 seeds, by {abs(compare(b, a).difference):.2f}"
    exported = [Lane(name, each[0].config, tuple(each)) for name, each in got.items()]
    (said,) = came_out(exported).comparisons
    assert mean in said and "in held-out loss" in said and "B Post-LN ends" in said
    assert said in readme(exported, "csv")
    assert escape(said) in replay(exported)


def test_configs_of_several_seeds_are_read_as_their_lanes(repeated: list[Lane]) -> None:
    text = write_configs(repeated)
    found = read_configs(text)
    assert found.lanes == tuple(lane.config for lane in repeated) and found.notices == ()
    first, second = json.loads(text)["lanes"]
    assert [one["data_seed"] for one in first["repeats"]] == [1, 2] and "repeats" not in second


@pytest.mark.slow
def test_a_replay_holds_every_seed_and_says_which_one_its_layers_are_of(
    repeated: list[Lane],
) -> None:
    text = replay(repeated)
    numbers = text.split('id="numbers">')[1].split("</script>")[0]
    file = json.loads(numbers)
    assert [len(curves) for curves in file["repeats"]] == [2, 0]  # the third has not begun
    for probe in file["probes"].values():
        assert "repeats" not in probe["numbers"]  # once is enough
        assert [lane["name"] for lane in probe["numbers"]["about"]] == [
            "A Pre-LN, init seed 0", "B Post-LN, init seed 7"
        ]  # fmt: skip
    assert " of 3" in text.split('id="player"')[0]
    alone = replay(repeated[1:])
    assert "B Post-LN, init seed 7" not in alone and " of 1" not in alone.split('id="player"')[0]
