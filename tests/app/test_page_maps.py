"""The Maps page without a browser: settings, links, filling, and the way to a cell's run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from backend_kit import SHORT, keep
from page_kit import Open, at_page, checked, duel, words_of
from shelf_kit import kept
from streamlit.testing.v1 import AppTest

from normviz.execution.cell import measure
from normviz.links import encode
from normviz.runs.store import Store
from normviz.runs.store import cells as cells_of_store
from normviz.studies.maps.link import MapRequest, ask, standard
from normviz.studies.maps.points import TRAINS

pytestmark = pytest.mark.slow

FEW = "The layers were recorded at few steps ({}: 0, 1, 2, 4, 8, 16 and 19). Press Train to record many more."
WORDS = {
    "scheme": "pre,post", "depth": "1,2", "lr": "0.001,0.01", "width": "16", "heads": "2",
    "seq_len": "8", "batch": "4", "steps": "20",
}  # fmt: skip


@pytest.fixture
def maps(unpacked: Path):
    def opened(asked: MapRequest | None = None) -> AppTest:
        at = at_page("maps")
        for name, value in (asked.params() if asked else {}).items():
            at.query_params[name] = value
        return checked(at.run())

    return opened


def small(**words: str) -> MapRequest:
    return ask({**WORDS, **words}, "depth", "lr")


def cells(at: AppTest) -> list[list[dict]]:
    """The cells of each map."""
    found = []
    for i, chart in enumerate(at.get("vega_lite_chart")):
        (table,) = [one for one in chart.proto.datasets if one.name == f"cells{i}"]
        found.append(pa.ipc.open_stream(table.data.data).read_all().to_pylist())
    return found


def specs(at: AppTest) -> list[dict]:
    """What each map is but for its cells and the words that tell them."""
    charts = [json.loads(chart.proto.spec) for chart in at.get("vega_lite_chart")]
    return [{**chart, "description": ""} for chart in charts]


def test_the_page_opens_with_a_standard_map_that_is_there(maps) -> None:
    at = maps()
    assert len(at.get("vega_lite_chart")) == 3
    assert not [b for b in at.button if b.key == "fill"]  # nothing is missing
    assert not at.error
    assert {"falling", ""} == {one["mark"] for rows in cells(at) for one in rows}
    assert all(one["loss"] is not None for rows in cells(at) for one in rows)
    (edges,) = at.dataframe
    assert list(edges.value["where"]) == ["Post-LN", "Pre-LN", "Peri-LN"]
    assert edges.value["depth 64"][0] == "none from 0.0001 up in 150 steps"
    assert "depth 2" in edges.value
    assert any(TRAINS in one.value for one in at.caption)  # said once
    assert sum("half of the way" in one.value for one in at.caption) == 1
    assert any("75 % confidence" in caption.value for caption in at.caption)
    at.session_state["maps_summary"] = True  # sensitivities are rendered once their part is open
    _, table = checked(at.run()).dataframe
    assert {"sensitivity", "best loss", "note"} <= set(table.value) and len(table.value) >= 5
    at = maps(standard("modern"))
    (placements,) = cells(at)
    assert len(placements) == 5 * 6 and all(one["loss"] is not None for one in placements)


def test_limits_of_columns_with_missing_cells_are_left_open(maps, folder: Path) -> None:
    """The table is there before the maps are filled, so that what is below it does not move."""
    asked, store = small(), Store(folder)
    (edges,) = maps(asked).dataframe
    assert list(edges.value["where"]) == ["Pre-LN", "Post-LN"]
    assert {*edges.value["depth 1"], *edges.value["depth 2"]} == {"…"}
    for cell in asked.grid.cells:
        if (cell.config.scheme, cell.config.depth) == ("post", 2):
            kept(store, cell.config)
    (edges,) = maps(asked).dataframe
    assert list(edges.value["where"]) == ["Pre-LN", "Post-LN"]
    assert list(edges.value["depth 1"]) == ["…", "…"]
    assert edges.value["depth 2"][0] == "…" != edges.value["depth 2"][1]


def test_any_choice_can_be_an_axis(maps) -> None:
    at = maps(ask({**WORDS, "depth": "1", "task": "markov,copy"}, "task", "lr"))
    assert at.multiselect(key="map_task").value == ["markov", "copy"]
    assert len(at.get("vega_lite_chart")) == 2
    checked(at.multiselect(key="map_task").set_value(["copy", "markov"]).run())
    assert not at.error
    at = maps(ask({**WORDS, "depth": "1,2"}, "lr", "depth"))
    assert any("All cells have width 16" in words_of(caption) for caption in at.caption)
    (edges,) = at.dataframe
    assert {"depth 1", "depth 2"} <= set(edges.value)  # the learning rate has no limits in columns
    assert not any(
        "The line" in caption.value for caption in at.caption
    )  # and no frontier is drawn
    one = {**WORDS, "depth": "2"}
    at = maps(ask(one, "depth", "lr"))
    assert [len(rows) for rows in cells(at)] == [2, 2]
    assert {"where", "depth 2"} == set(at.dataframe[0].value)
    assert any("one column for one depth (2)" in caption.value for caption in at.caption)


def test_a_link_opens_its_maps_and_a_setting_that_is_not_allowed_changes_nothing(maps) -> None:
    at = at_page("maps")
    at.query_params["depth"] = "2,5000"
    checked(at.run())
    assert "depth is '5000'" in words_of(at.error[0])
    assert len(at.get("vega_lite_chart")) == 3
    at = maps(small())
    assert at.text_input(key="map_depth").value == "1,2"
    assert "8 runs, about 1 s" in "".join(c.value for c in at.caption)
    checked(at.text_input(key="map_lr").set_value("0.1, none").run())
    assert "Learning rate is 'none'" in words_of(at.error[0])
    assert "Below is still the map from before this change" in words_of(at.error[0])
    assert at.text_input(key="map_lr").value == "0.1, none"  # to be corrected
    assert at.session_state["maps"].asked.values("lr") == "0.001,0.01"
    checked(at.text_input(key="map_lr").set_value("0.1, 0.2").run())
    assert not at.error
    assert at.text_input(key="map_lr").value == "0.1,0.2"


def test_a_map_without_a_result_has_no_legend_of_losses(maps, folder: Path) -> None:
    def legends(at: AppTest) -> bool:
        return 'class="map-legend"' in "".join(part.proto.body for part in at.get("html"))

    asked = small()
    at = maps(asked)
    assert not legends(at) and "none is stored yet" in "".join(c.value for c in at.caption)
    before = specs(at)
    kept(Store(folder), asked.grid.cells[0].config)
    at = maps(asked)
    assert legends(at)
    # Another spec would have the browser draw the maps anew, at another size.
    assert specs(at) == before


def test_a_sweep_that_ends_while_the_page_is_drawn_leaves_no_stop_button(
    maps, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = small(), [False]

    def look(*_: object) -> cells_of_store.OpenCells | None:
        """Open at the page's first look, and not after that."""
        opened = cells_of_store.OpenCells({}, frozenset(), True, 0, 1.0)
        found, ended[0] = None if ended[0] else opened, True
        return found

    monkeypatch.setattr(cells_of_store, "opened", look)
    at = maps(asked)
    assert [b for b in at.button if b.key == "fill"]
    assert not [b for b in at.button if b.key == "stop_fill"]


def test_a_map_of_stored_cells_is_not_filled_and_a_cell_opens_in_the_duel(
    maps, folder: Path
) -> None:
    asked, store = small(), Store(folder)
    found = [measure(cell.config) for cell in asked.grid.cells]
    store.keep_all(found, "sweep")
    at = maps(asked)
    assert not [b for b in at.button if b.key in ("fill", "stop_fill")]
    boxes = {box.label: box for box in at.selectbox}
    boxes["Map"].select_index(1)
    boxes["depth"].select_index(1)
    checked(at.button(key="FormSubmitter:reach-Open in the duel").click().run())
    (lane,) = duel(at).lanes
    assert (lane.scheme, lane.depth, lane.lr) == ("post", 2, 0.001)
    run = store.latest(lane.key)
    assert run is not None and run.is_coarse and duel(at).runs == (run.id,)
    assert FEW.format("A") in [caption.value for caption in at.caption]


def test_one_note_names_the_recorded_steps_of_all_lanes(page: Open, folder: Path) -> None:
    store, rate = Store(folder), {"lr": 0.01}
    pre, post, third = SHORT, SHORT.replace(scheme="post"), SHORT.replace(scheme="peri")
    store.keep_all([measure(pre), measure(post)], "sweep")
    keep(store, third, "here")
    at = page(encode([pre, third, post]))
    assert [c.value for c in at.caption if "recorded at" in c.value] == [FEW.format("A and C")]
    at = page(encode([pre.replace(**rate), third]))
    assert not [c.value for c in at.caption if "recorded at" in c.value]


@pytest.mark.usefixtures("by_eager")
def test_what_takes_too_long_for_a_page_says_where_to_run_it(maps, folder: Path) -> None:
    """Also where a script, or a quick hand, changes settings and presses the button at once."""
    at = maps(small(depth="40,60", seeds="5"))
    at.text_input(key="map_steps").set_value("20000")
    checked(at.button(key="fill").click().run())
    assert at.session_state["maps"].asked.values("steps") == "20000"
    assert Store(folder).queued(cells=True) == []
    assert any("a page gives it up to 30 min" in words_of(error) for error in at.error)
    checked(at.run())
    assert at.button(key="fill").disabled
    assert "a page gives it up to 30 min" in "".join(c.value for c in at.caption)


def test_a_map_is_filled_from_the_queue_and_stopped(maps, folder: Path) -> None:
    asked, store = small(), Store(folder)
    at = maps(asked)
    checked(at.button(key="fill").click().run())
    waits = store.queued(cells=True)
    assert len(waits) == len(asked.grid.cells)
    assert "Waits for a process that trains" in "".join(c.value for c in at.caption)
    cells_of_store.began(store, waits[0])
    cells_of_store.keep(store, waits[0], measure(asked.grid.cells[0].config))
    cells_of_store.began(store, waits[1])
    store.end(waits[1], "failed", message="no memory")
    cells_of_store.began(store, waits[2])
    checked(at.run())
    (bar,) = at.get("progress")
    assert bar.proto.text.startswith("1 of 8 runs, about")
    assert "A run failed: no memory. Fill again to retry." in words_of(at.error[0])
    checked(at.button(key="stop_fill").click().run())
    assert store.queued(cells=True) == [] and list(store.stops()) == [waits[2]]
    store.end(waits[2], "stopped")
    checked(at.run())
    assert [b for b in at.button if b.key == "fill"]


def test_what_is_stored_is_used_whoever_trained_it(maps, folder: Path) -> None:
    asked, store = small(), Store(folder)
    for cell in asked.grid.cells[:3]:
        kept(store, cell.config)
    at = maps(asked)
    assert "5 runs, about 1 s" in "".join(c.value for c in at.caption)
    assert "Computed with PyTorch's own operations." in "".join(c.value for c in at.caption)
    store.db.connection.execute(
        "UPDATE runs SET engine = 'tape' WHERE key = ?", (asked.grid.cells[0].key,)
    )
    assert (
        "2 of these 3 cells were computed with PyTorch's own operations, the other in NormViz's engine in "
        "C++." in "".join(c.value for c in maps(asked).caption)
    )
