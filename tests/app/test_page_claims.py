"""The Claims page without a browser: order, filters, links, the duel behind a claim, a live run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from normviz.app.session import address as session_address
from normviz.app.session.markdown import sentence
from page_kit import address, at_page, checked, duel, words_of
from streamlit.testing.v1 import AppTest

from normviz.runs.engines import computed_by
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.record import QUESTIONS
from normviz.studies.claims.sentences import ORDER, as_json, chip, opens
from normviz.studies.claims.stored import number_sentences, shipped_result, shipped_sets

pytestmark = pytest.mark.slow


@pytest.fixture
def claims(unpacked: Path):
    def opened(**params: str) -> AppTest:
        at = at_page("claims")
        for name, value in params.items():
            at.query_params[name] = value
        return checked(at.run())

    return opened


def listed(at: AppTest) -> list[str]:
    """Keys of the claims in the list, in order."""
    keys = [b.key or "" for b in at.button]
    return [key.removeprefix("open_") for key in keys if key.startswith("open_")]


def text(at: AppTest) -> str:
    return "\n".join(one.value for kind in ("markdown", "caption", "info", "success")
                     for one in getattr(at, kind))  # fmt: skip


def test_claims_stand_under_their_questions_negative_results_first(claims) -> None:
    """Each with its finding, its claim, its source and its verdict."""
    at = claims()
    keys, said = listed(at), words_of_label(text(at))
    assert sorted(keys) == sorted(CLAIMS.keys())
    order = [
        (
            list(QUESTIONS).index(CLAIMS[key].question),
            ORDER.index(chip(CLAIMS[key], shipped_result(CLAIMS[key]))),
        )
        for key in keys
    ]
    assert order == sorted(order)
    asked = {CLAIMS[key].question for key in keys}
    assert [one.value for one in at.header] == [QUESTIONS[key] for key in QUESTIONS if key in asked]
    assert all(f"[{one.value}](#{one.proto.anchor})" in text(at) for one in at.header)
    for claim in CLAIMS:
        result = shipped_result(claim)
        assert result is not None
        it = as_json(claim, result)
        assert words_of_label(at.button(key=f"open_{claim.key}").label) == it["finding"]
        assert result.verdict(claim).sentence in said and f"{claim.key} · {it['scope']}" in said
    (row,) = [one for one in at.caption if "· C9 ·" in one.value]
    assert row.value.startswith("Claim: Skip gains") and "arxiv.org/abs/2004.08249" in row.value
    for words, found in (("deepnorm bound", ["C6", "E20"]), ("no such claim", [])):
        checked(at.text_input(key="claim_search").set_value(words).run())
        assert sorted(listed(at)) == found
        verdicts = at.button_group(key="claim_verdicts")
        assert sum(int(label.rsplit(" ", 1)[1]) for label in verdicts.options) == len(found)
    checked(at.text_input(key="claim_search").set_value("deepnorm bound").run())
    picked = chip(CLAIMS["C6"], shipped_result(CLAIMS["C6"]))
    checked(at.button_group(key="claim_verdicts").set_value([picked]).run())
    for words in ("deepnorm", "no such claim"):  # other counts, the same choice
        checked(at.text_input(key="claim_search").set_value(words).run())
        assert at.session_state["claim_verdicts"] == [picked]
        assert ("C6" in listed(at)) == (words == "deepnorm")
    assert "No claim passes" in text(at)


def words_of_label(label: str) -> str:
    return re.sub(r"\\(.)", r"\1", label)


def test_a_link_opens_its_claim_with_rule_and_command(claims) -> None:
    at = claims(claim="c1")
    assert at.session_state["claims_shown"].opened == "C1"
    assert listed(at)[0] == "C1"
    counts = re.findall(r"^\* \[[^\]]+\]\(#\w+\) (\d+)$", text(at), re.MULTILINE)
    assert sum(map(int, counts)) == len(CLAIMS)  # that of the link is counted too
    assert "95 % interval of the mean" in text(at) and "✓ In Post-LN" in text(at)
    assert any("normviz claims run C1" in one.value for one in at.code)
    assert "of one core. Computed in NormViz's engine in C++." in text(at)
    says_what_json_says(at, "C1")
    assert "'C999'" in words_of(claims(claim="C999").error[0])
    said = text(claims(claim="E1"))
    assert "Among what changed after an earlier result: Runs had 150 and 400 steps" in said
    assert "10 seeds, runs of 800 steps, measured" in said
    assert "The duel shows 3 of its 5 settings, with the first of 10 seeds." in said
    assert "25 runs with 5 seeds (the verdict above is of 10), at most" in said
    at = claims(claim="C7")
    checked(at.button(key="duel_C7").click().run())
    assert [lane.scheme for lane in duel(at).lanes] == ["post", "post_init"]


def says_what_json_says(at: AppTest, key: str) -> None:
    """The open card has the verdict, parts, basis, numbers and check of `normviz claims show --json`."""
    claim, said = CLAIMS[key], words_of_label(text(at))
    result = shipped_result(claim)
    assert result is not None
    it = as_json(claim, result, shipped_sets(claim))
    for part in it["parts"]:
        title = "Control: " * part["control"] + part["says"]
        assert f" {title}: {part['outcome']} ({part['evidence']})" in said
    assert f"**{sentence(result.verdict(claim).sentence)}**" in said
    assert sentence(it["basis"]) in said and it["by_set"] in said
    assert f"{opens(claim, result)}." in said
    table = at.table[0].value
    assert list(table.index) == [one["label"] for one in it["numbers"].values()]
    assert list(table["measured"]) == list(number_sentences(claim, result).values())


def test_a_click_opens_and_closes_a_claim_whose_points_have_links(claims) -> None:
    at = claims()
    checked(at.button(key="open_X3").click().run())
    assert [b for b in at.button if b.key == "run_X3"]
    says_what_json_says(at, "X3")
    assert "A click or a tap on a point opens the runs behind it in the duel." in text(at)
    links = [
        re.findall(r"\[(\d+)\]\(\./\?v=1&[^)]+\)", cell)
        for cell in at.table[0].value["duel of seed"]
    ]
    assert links == [[]] * 15 + [[str(seed) for seed in (*range(3), *range(100, 103))]] * 5
    checked(at.button(key="open_X3").click().run())
    assert not [b for b in at.button if b.key == "run_X3"]


def test_a_claim_about_real_models_leads_to_them_and_runs_nothing(
    claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = claims(claim="M1")
    keys = {b.key for b in at.button}
    assert "open_M1" in keys and not keys & {"duel_M1", "run_M1"}
    (link,) = (it for it in at.get("page_link") if it.proto.label == "What real models use")
    assert (link.proto.page, link.proto.query_string) == ("catalogue", "table=models")
    assert "Nothing was trained for this claim" in text(at) and "Counted in the census" in text(at)
    assert "models of transformers" in text(at)
    monkeypatch.setattr(session_address, "is_old_entry", lambda: True)
    at.query_params.clear()  # Back from a duel
    assert "Nothing was trained for this claim" in text(checked(at.run()))
    assert address(at) == {"claim": "M1"}


def test_a_run_here_says_which_engine_trained_it(claims, monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.views.claims import run_panel

    shipped = shipped_result(CLAIMS["C1"])
    assert shipped is not None
    here = replace(shipped, tape=len(shipped.runs) - 1)
    monkeypatch.setattr(run_panel, "missing_here", lambda *_: [])
    monkeypatch.setattr(run_panel, "result_here", lambda *_: here)
    (said,) = claims(claim="C1").success
    assert words_of(said).startswith("On this server: undecided")
    assert words_of(said).endswith(
        "Each part has the shipped outcome. " + computed_by(here.engines)
    )
