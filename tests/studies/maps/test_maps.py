"""Maps as settings and as a link, their cells, and the small pictures of their losses."""

from __future__ import annotations

import itertools
import math
from base64 import b64decode
from contextlib import suppress
from urllib.parse import parse_qs

import numpy as np
import pytest
from crossing_kit import case
from hypothesis import given
from hypothesis import strategies as st
from shelf_kit import SMALL, kept

from normviz import RunConfig
from normviz.charts.curve import picture
from normviz.charts.map import EMPTY, PICK, chart, colours, live
from normviz.config import ConfigError
from normviz.export.pictures import picture as picture_of
from normviz.limits import MAX_MAPS
from normviz.links import query
from normviz.runs.store import Store
from normviz.studies.maps import Grid, SweepError, make
from normviz.studies.maps.layout import maps
from normviz.studies.maps.link import NAMES, ask, beside, decode, map_of_duel, spanning, standard
from normviz.studies.maps.results import GridResults
from normviz.studies.maps.standard import MAPS


def asked(query: str):
    return decode(parse_qs(query, keep_blank_values=True))


# Links


@pytest.mark.slow
def test_a_link_says_what_differs_and_opens_the_same_maps() -> None:
    """As do the links of releases until 0.9, which name every setting: the first map's."""
    for n, key in enumerate(MAPS.keys()):
        one = standard(key)
        long = {name: one.values(name) for name in RunConfig.model_fields if name != "lr_edits"}
        assert len(one.query()) < len(query(long)) / 2
        with case(key):
            opened = asked(query(one.params() | long if n == 0 else one.params()))
            assert (opened.shows, opened.standard) == (one.shows, key)


def test_a_link_that_names_no_sides_gets_them_from_its_numbers() -> None:
    one = asked("depth=2,4&lr=0.001,0.01&scheme=pre,post")
    assert (one.across, one.up) == ("depth", "lr")


BAD = [
    ("depth=2,4&lr=0.001,0.01&depth=8", "the link gives depth 2 times, allowed is once"),
    ("v=9&depth=2,4&lr=0.001,0.01", "version '9', allowed is 1"),
    ("depth=2,4&lr=0.001,99", "lr is '99'"),
    ("depth=2,4&lr=0.001,nan", "lr is"),
    ("depth=2,2&lr=0.001,0.01", "depth names 2 twice"),
    ("scheme=pre,post&norm=rmsnorm,layernorm", "a map needs a setting with several values"),
    ("across=depth&up=depth&depth=2,4", "depth can't go both across and up"),
    ("across=lr&depth=2,4&lr=0.1,0.2", "gives one of across and up, allowed is both or none"),
    ("across=<b>&up=lr&depth=2,4&lr=0.1,0.2", "across is '<b>', allowed is one of"),
    ("scheme=pre,nope&depth=2,4&lr=0.1,0.2", "nope"),
    ("seeds=3,4&depth=2,4&lr=0.1,0.2", "seeds is '3,4'"),
    ("seeds=99&depth=2,4&lr=0.1,0.2", "seeds is 99, allowed is"),
    ("depth=2,4&lr=0.1,0.2&batch=1,2,3&heads=1,2,4", f"9 maps, at most {MAX_MAPS}"),
]


def test_a_bad_link_gets_one_sentence() -> None:
    for link, words in BAD:
        with case(link):
            with pytest.raises((SweepError, ConfigError)) as error:
                asked(link)
            assert words in str(error.value)
            assert "\n" not in str(error.value)


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["v", *NAMES, "x"]), st.lists(st.text(max_size=30), max_size=3))
)
def test_no_link_is_answered_with_anything_but_a_sentence(params: dict[str, list[str]]) -> None:
    with suppress(SweepError, ConfigError):
        decode(params)


def test_one_value_is_a_map_of_one_column_that_its_link_opens_again() -> None:
    """As somebody gets who types one depth."""
    one = standard("torch").but(depth="8")
    assert one.fields == ("depth", "lr") and one.values("depth") == "8"
    first, *_ = maps(one.grid, [], one.fields)
    assert (first.columns, len(first.rows), len(first.cells)) == (("8",), 7, 7)
    assert asked(one.query()).shows == one.shows
    (low,) = maps(asked("across=depth&up=lr&depth=2&lr=0.1").grid, [], ("depth", "lr"))
    assert [(cell.column, cell.row) for cell in low.cells] == [(0, 0)]


# Changes


def test_a_model_of_one_s_own_has_a_map_of_its_shape() -> None:
    one = beside(RunConfig(scheme="resp", norm="rmsnorm", depth=24))
    assert one.fields == ("scheme", "lr") and one.values("scheme") == "pre,post,peri,resp"
    assert {(c.config.norm, c.config.depth) for c in one.grid.cells} == {("rmsnorm", 24)}


def test_any_setting_can_span_a_map() -> None:
    one = ask({"depth": "2,4", "lr": "0.001,0.01"}, "depth", "lr")
    for side, field in itertools.product(("across", "up"), spanning()):
        with case(side, field):
            turned = one.with_axis(side, field)
            assert getattr(turned, side) == field or field in ("depth", "lr")
            assert {turned.across, turned.up} <= {field, "depth", "lr"}
            assert len(turned.grid.axis(field).values) > 1


def test_another_setting_is_checked_as_a_whole() -> None:
    one = standard("torch")
    assert one.but(depth="2,4").values("depth") == "2,4"
    assert one.but(depth="2,4").standard is None
    with pytest.raises(ConfigError, match="depth is '5000'"):
        one.but(depth="2,5000")


def test_a_duel_leads_to_maps_of_what_it_compares() -> None:
    duel = [
        RunConfig(scheme="post", depth=10, steps=400),
        RunConfig(scheme="peri", depth=10, steps=400),
    ]
    one = map_of_duel(tuple(duel))
    assert one.fields == ("depth", "lr")
    assert one.values("scheme") == "post,peri"
    assert (one.values("steps"), one.grid.seeds) == ("150", 1)
    warm = map_of_duel(tuple(config.replace(warmup=200, norm="rmsnorm") for config in duel))
    assert (warm.values("warmup"), warm.values("steps"), warm.values("norm")) == (
        "200",
        "400",
        "rmsnorm",
    )
    far = tuple(
        RunConfig(scheme=scheme, norm=norm, batch=batch)
        for scheme, norm, batch in (
            ("pre", "rmsnorm", 4), ("post", "layernorm", 8), ("peri", "dyt", 16), ("none", "none", 2)
        )
    )  # fmt: skip
    assert map_of_duel(far).values("scheme") == "pre,post,peri,none"
    assert map_of_duel(far).values("batch") == "4"
    assert map_of_duel((RunConfig(), RunConfig())).values("scheme") == "pre"


# Cells


def grid() -> Grid:
    return make(SMALL, {"scheme": ["pre", "post"], "depth": [2, 3], "lr": [1e-3, 3e-3]}, seeds=2)


def test_cells_that_nobody_ran_are_there_and_say_so(store: Store) -> None:
    it = grid()
    results = GridResults(store, it)
    results.refresh()
    running = [it.cells[0]]
    pre, post = maps(it, results.points, ("depth", "lr"), running, results.curve)
    assert [len(one.cells) for one in (pre, post)] == [4, 4]
    assert {cell.loss for cell in pre.cells} == {None}
    assert pre.frontier == ()
    marks = {cell.words for one in (pre, post) for cell in one.cells}
    assert marks == {"not run yet", "training now"}
    assert colours([pre, post])[0] < colours([pre, post])[1]
    assert live(pre, 0, colours([pre, post]))["datasets"]["cells0"][0]["there"] is False


def test_a_board_reads_a_cell_once_and_fills(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    it = grid()
    results = GridResults(store, it)
    reads: list[int] = []
    recording = store.recording
    monkeypatch.setattr(
        store, "recording", lambda run, **more: reads.append(run.id) or recording(run, **more)
    )
    first = next(c for c in it.cells if c.config.scheme == "post" and c.seed == 0)
    run = kept(store, first.config)
    for _ in range(3):
        results.refresh()
    assert reads == [run]
    assert [one.cell for one in results.points] == [first]
    assert first not in results.missing and len(results.missing) == len(it.cells) - 1
    _, post = maps(it, results.points, ("depth", "lr"), curve=results.curve)
    (cell,) = [cell for cell in post.cells if cell.loss is not None]
    assert cell.key == first.key and cell.curve.startswith("data:image/svg+xml;base64,")
    assert cell.where == f"depth {first.config.depth}, learning rate {first.config.lr:g}"


def test_the_chart_of_a_page_stays_the_same_while_it_fills(store: Store) -> None:
    """Else Streamlit would build it anew, and with it lose what is pointed at."""
    it = grid()
    specs = []
    for cell in it.cells[:2]:
        kept(store, cell.config)
        results = GridResults(store, it)
        results.refresh()
        drawn = maps(it, results.points, ("depth", "lr"), curve=results.curve)
        spec = live(drawn[0], 0, (1.1, 3.3))
        assert PICK in [
            param["name"] for layer in spec["layer"] for param in layer.get("params", [])
        ] + [param["name"] for param in spec.get("params", [])]
        specs.append({name: part for name, part in spec.items() if name != "datasets"})
    assert specs[0] == specs[1]


def test_the_picture_of_a_curve_marks_divergence() -> None:
    def svg(*losses: float) -> str:
        head, _, data = picture([np.array(losses)], 10, 3.3, 1.1).partition(",")
        assert head == "data:image/svg+xml;base64"
        return b64decode(data).decode()

    assert svg(3.3, 2.0, 1.5).count("<polyline") == 3, "chance, floor and the losses"
    assert "<rect" not in svg(3.3, 2.0, 1.5)  # a dark page stays dark
    assert svg(3.3, 2.0, math.nan).count("<path") == svg(3.3, 2.0, 1.5).count("<path") + 1
    assert "nan" not in svg(math.nan, math.inf)


@pytest.mark.slow
def test_a_cell_that_nobody_ran_has_no_loss_colour(store: Store) -> None:
    """A missing number has the colour of the lowest loss, were it left to the scale."""
    it = grid()
    kept(store, it.cells[0].config)
    results = GridResults(store, it)
    results.refresh()
    svg = picture_of(chart(maps(it, results.points, ("depth", "lr"))), "svg").decode()
    assert svg.count(f'fill="{EMPTY[False]}"') == 2 * 4 - 1
