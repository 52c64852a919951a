"""The Catalogue page without a browser: complete, searchable, and a way to each anatomy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from normviz.app.asgi.moved import moved_pages
from normviz.app.views.catalog import page, state
from page_kit import address, at_page, checked, specs, words_of
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from normviz import RunConfig
from normviz.catalog import CELLS, FAMILIES, NORMS, SCHEMES
from normviz.catalog.models import QK_LABELS, census
from normviz.lessons.anatomy import formula, plain

Open = Callable[..., AppTest]


@pytest.fixture
def catalogue(folder: Path) -> Open:
    """Opens the page at a tab, with words in the search."""

    def opened(table: str = "placements", words: str = "") -> AppTest:
        at = at_page("catalogue")
        at.query_params["table"] = table
        at.session_state["search"] = words
        return checked(at.run())

    return opened


def test_every_placement_and_norm_is_there(catalogue: Open) -> None:
    (placements,) = (table.value for table in catalogue().dataframe)
    (norms,) = (table.value for table in catalogue("norms").dataframe)
    assert tuple(placements["Key"]) == SCHEMES.keys()
    assert tuple(norms["Key"]) == NORMS.keys()
    for table, registry in ((placements, SCHEMES), (norms, NORMS)):
        for row, record in zip(table.to_dict("records"), registry, strict=True):
            assert row["Source"] == record.source
            assert row["Formula"] and row["Checked against"]
    assert list(norms["Warning"]) == [norm.warning for norm in NORMS]


def test_the_search_finds_words_of_any_column(catalogue: Open) -> None:
    placements = catalogue(words="gemma").dataframe[0].value
    assert "sandwich" in set(placements["Key"]) and "pre" not in set(placements["Key"])
    assert "rmsnorm_1p" in set(catalogue("norms", "gemma").dataframe[0].value["Key"])
    nothing = catalogue(words="no such thing")
    assert not nothing.dataframe
    assert any(f"0 of {len(SCHEMES)}" in caption.value for caption in nothing.caption)


@pytest.mark.slow
def test_other_nets_are_there_with_their_formulas(catalogue: Open) -> None:
    nets = catalogue("nets").dataframe[-1].value
    assert {key.split()[0] for key in nets["Key"]} == {*FAMILIES.keys()}
    assert {key.split()[1] for key in nets["Key"] if " " in key} == {*CELLS.keys()}
    assert any("N(c_t)" in it.value for it in catalogue("nets", "LSTM Norm in the cell").latex)


def test_a_row_of_the_table_is_the_first_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = state.Anatomy((RunConfig(steps=0), RunConfig(scheme="post", steps=0)))
    picked = SimpleNamespace(selection=SimpleNamespace(rows=[1]))
    monkeypatch.setattr(state, "chosen", {"anatomy": shown, "the_table": picked}.get)
    state.take_row(["pre", "peri"], "the_table")
    assert [lane.scheme for lane in shown.lanes] == ["peri", "post"]


def test_a_link_to_placements_closes_the_table_of_all(folder: Path) -> None:
    at = at_page("catalogue")
    assert checked(at.run()).expander[0].proto.expanded
    linked = at_page("catalogue")
    linked.query_params["scheme"] = "keel"
    assert not checked(linked.run()).expander[0].proto.expanded


def test_the_old_address_of_the_anatomy_leads_here() -> None:
    client = TestClient(Starlette(routes=moved_pages()), follow_redirects=False)
    answer = client.get("/anatomy?v=1&scheme=pre,peri")
    assert answer.status_code == 308
    assert answer.headers["location"] == "catalogue?v=1&scheme=pre,peri"
    assert client.get("/anatomy").headers["location"] == "catalogue"


def test_every_model_is_there_and_leads_to_its_placement(catalogue: Open) -> None:
    at = catalogue("models")
    table = at.dataframe[0].value
    assert list(table["Model"]) == [model.model for model in census().models]
    assert list(table["Told by"]) == [model.told_words for model in census().models]
    assert any(census().origin == caption.value for caption in at.caption)
    at = catalogue("models", "Olmo3DecoderLayer")
    (row,) = at.dataframe[-1].value.to_dict("records")
    assert (row["Placement"], row["QK-norm"]) == ("Res-post-norm", "full width")
    link = at.get("page_link")[-1].proto
    query = link.query_string
    assert link.page == "catalogue"
    assert all(part in query for part in ("scheme=resp", "norm=rmsnorm", "qk_norm=full"))


def test_models_of_vision_and_audio_have_a_table_of_their_own(catalogue: Open) -> None:
    at = catalogue("models")
    checked(at.button_group(key="census_of").set_value("vision").run())
    table = at.dataframe[0].value
    assert set(table["Kind"]) == {"vision"}
    assert list(table["Model"]) == [model.model for model in census().of(["vision"])]
    rows = {row["Model"]: row for row in table.to_dict("records")}
    assert (rows["vit"]["Placement"], rows["swin"]["Embedding norm"]) == ("Pre-LN", "yes")
    assert any("not models in use" in caption.value for caption in at.caption)


def test_a_link_names_the_tab_that_is_open(catalogue: Open) -> None:
    at = catalogue("models")
    assert at.session_state[page.TAB] == "Models"
    assert address(at) == {"table": "models"}
    assert not at.info, "the page reads the parameter"


def test_the_census_is_drawn_by_what_is_chosen(catalogue: Open) -> None:
    at = catalogue("models")
    assert f"Counted are the {len(census().models)} stacks" in " ".join(c.value for c in at.caption)
    years, totals = specs(at)
    assert years["encoding"]["y"]["stack"] == "zero"
    assert "Pre-LN" in totals["layer"][0]["encoding"]["color"]["scale"]["domain"]
    checked(at.button_group(key="census_kind").set_value("QK-norm").run())
    checked(at.toggle(key="census_shares").set_value(True).run())
    years, totals = specs(at)
    assert years["encoding"]["y"]["stack"] == "normalize"
    domain = totals["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert set(domain) == set(QK_LABELS.values())
    assert any("QK-norm: no in " in words_of(one) for one in at.markdown)


def test_a_model_of_which_nothing_could_be_told_says_so(catalogue: Open) -> None:
    at = catalogue("models", "ReformerLayer")
    (row,) = at.dataframe[-1].value.to_dict("records")
    assert row["Placement"] == row["Norm"] == "could not be told"
    assert "could not be followed" in row["Remarks"]
    assert not at.get("page_link")


def test_formulas_read_without_latex() -> None:
    texts = [plain(norm.formula) for norm in NORMS]
    texts += [plain(latex) for s in SCHEMES for d in (1, 12) for _, latex in formula(s.key, d)]
    assert not [text for text in texts if set(text) & set("\\{}")]
