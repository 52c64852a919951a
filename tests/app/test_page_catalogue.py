"""The Catalogue page without a browser: complete, searchable, and a way to each anatomy."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import at_page, checked, specs, words_of
from streamlit.testing.v1 import AppTest

from normviz.catalog import CELLS, FAMILIES, NORMS, SCHEMES
from normviz.catalog.models import QK_LABELS, census
from normviz.lessons.anatomy import formula, plain


@pytest.fixture
def catalogue(folder: Path) -> AppTest:
    at = at_page("catalogue")
    return checked(at.run())


def test_every_placement_and_norm_is_there(catalogue: AppTest) -> None:
    placements, norms, _, _ = (table.value for table in catalogue.dataframe)
    assert tuple(placements["Key"]) == SCHEMES.keys()
    assert tuple(norms["Key"]) == NORMS.keys()
    for table, registry in ((placements, SCHEMES), (norms, NORMS)):
        for row, record in zip(table.to_dict("records"), registry, strict=True):
            assert row["Source"] == record.source
            assert row["Formula"] and row["Checked against"]
    assert list(norms["Warning"]) == [norm.warning for norm in NORMS]


def test_the_search_finds_words_of_any_column(catalogue: AppTest) -> None:
    checked(catalogue.text_input(key="search").set_value("gemma").run())
    placements, norms, *_ = (table.value for table in catalogue.dataframe)
    assert "sandwich" in set(placements["Key"]) and "pre" not in set(placements["Key"])
    assert "rmsnorm_1p" in set(norms["Key"])
    checked(catalogue.text_input(key="search").set_value("no such thing").run())
    assert not catalogue.dataframe
    assert any(f"0 of {len(SCHEMES)}" in caption.value for caption in catalogue.caption)


@pytest.mark.slow
def test_other_nets_are_there_with_their_formulas(catalogue: AppTest) -> None:
    nets = catalogue.dataframe[-1].value
    assert {key.split()[0] for key in nets["Key"]} == {*FAMILIES.keys()}
    assert {key.split()[1] for key in nets["Key"] if " " in key} == {*CELLS.keys()}
    checked(catalogue.text_input(key="search").set_value("LSTM Norm in the cell").run())
    assert any("N(c_t)" in latex.value for latex in catalogue.latex)


def test_the_row_that_is_chosen_leads_to_its_anatomy(catalogue: AppTest) -> None:
    checked(catalogue.text_input(key="search").set_value("HybridNorm*").run())
    assert any(formula("hybridnorm_star", 12)[0][1] in latex.value for latex in catalogue.latex)
    link, *_ = catalogue.get("page_link")
    assert link.proto.page == "anatomy"
    assert "scheme=hybridnorm_star" in link.proto.query_string


def test_every_model_is_there_and_leads_to_its_placement(catalogue: AppTest) -> None:
    table = catalogue.dataframe[2].value
    assert list(table["Model"]) == [model.model for model in census().models]
    assert list(table["Told by"]) == [model.told_words for model in census().models]
    assert any(census().origin == caption.value for caption in catalogue.caption)
    checked(catalogue.text_input(key="search").set_value("Olmo3DecoderLayer").run())
    (row,) = catalogue.dataframe[-1].value.to_dict("records")
    assert (row["Placement"], row["QK-norm"]) == ("Res-post-norm", "full width")
    query = catalogue.get("page_link")[-1].proto.query_string
    assert all(part in query for part in ("scheme=resp", "norm=rmsnorm", "qk_norm=full"))


def test_models_of_vision_and_audio_have_a_table_of_their_own(catalogue: AppTest) -> None:
    checked(catalogue.button_group(key="census_of").set_value("vision").run())
    table = catalogue.dataframe[2].value
    assert set(table["Kind"]) == {"vision"}
    assert list(table["Model"]) == [model.model for model in census().of(["vision"])]
    rows = {row["Model"]: row for row in table.to_dict("records")}
    assert (rows["vit"]["Placement"], rows["swin"]["Embedding norm"]) == ("Pre-LN", "yes")
    assert any("not models in use" in caption.value for caption in catalogue.caption)


def opened_tab(block) -> str | None:
    """The label of the tab that a page opens with."""
    for one in block.children.values():
        tabs = getattr(one.proto, "tab_container", None) if hasattr(one, "children") else None
        if tabs is not None and one.children and one.children[0].type == "tab":
            return one.children[tabs.default_tab_index].label
        if hasattr(one, "children") and (found := opened_tab(one)):
            return found
    return None


def test_a_link_to_the_models_opens_their_table(folder: Path) -> None:
    at = at_page("catalogue")
    at.query_params["table"] = "models"
    checked(at.run())
    assert opened_tab(at.main) == "Models"
    assert not at.info, "the page reads the parameter"


def test_the_census_is_drawn_by_what_is_chosen(catalogue: AppTest) -> None:
    years, totals = specs(catalogue)
    assert years["encoding"]["y"]["stack"] == "zero"
    assert "Pre-LN" in totals["layer"][0]["encoding"]["color"]["scale"]["domain"]
    checked(catalogue.button_group(key="census_kind").set_value("QK-norm").run())
    checked(catalogue.toggle(key="census_shares").set_value(True).run())
    years, totals = specs(catalogue)
    assert years["encoding"]["y"]["stack"] == "normalize"
    domain = totals["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert set(domain) == set(QK_LABELS.values())
    assert any("QK-norm: no in " in words_of(one) for one in catalogue.markdown)


def test_a_model_of_which_nothing_could_be_told_says_so(catalogue: AppTest) -> None:
    checked(catalogue.text_input(key="search").set_value("ReformerLayer").run())
    (row,) = catalogue.dataframe[-1].value.to_dict("records")
    assert row["Placement"] == row["Norm"] == "could not be told"
    assert "could not be followed" in row["Remarks"]
    assert not catalogue.get("page_link")


def test_formulas_read_without_latex() -> None:
    texts = [plain(norm.formula) for norm in NORMS]
    texts += [plain(latex) for s in SCHEMES for d in (1, 12) for _, latex in formula(s.key, d)]
    assert not [text for text in texts if set(text) & set("\\{}")]
