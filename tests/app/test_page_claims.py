"""The Claims page without a browser: order, filters, links, the duel behind a claim, a live run."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_kit import wait_for
from page_kit import at_page, checked, duel, words_of
from streamlit.testing.v1 import AppTest

from normviz.claims import CLAIMS
from normviz.claims.sentences import ORDER, chip
from normviz.claims.stored import shipped_result

pytestmark = pytest.mark.slow


@pytest.fixture
def claims(folder: Path):
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


def test_negative_results_come_first(claims) -> None:
    at = claims()
    keys = listed(at)
    assert sorted(keys) == sorted(CLAIMS.keys())
    kinds = [ORDER.index(chip(CLAIMS[key], shipped_result(CLAIMS[key]))) for key in keys]
    assert kinds == sorted(kinds)


def test_filters_leave_what_they_say(claims) -> None:
    at = claims()
    checked(at.text_input(key="claim_search").set_value("deepnorm bounds").run())
    assert listed(at) == ["C6"]
    checked(at.text_input(key="claim_search").set_value("no such claim").run())
    assert listed(at) == []
    assert "No claim passes" in text(at)


def test_a_link_opens_its_claim_with_rule_and_command(claims) -> None:
    at = claims(claim="c1")
    assert at.session_state["claim"] == "C1"
    assert listed(at)[0] == "C1"
    assert "in every seed" in text(at)
    assert any("normviz claims run C1" in one.value for one in at.code)
    at = claims(claim="C999")
    assert "'C999'" in words_of(at.error[0])


def test_a_click_opens_and_closes_a_claim(claims) -> None:
    at = claims()
    checked(at.button(key="open_E15").click().run())
    assert [b for b in at.button if b.key == "run_E15"]
    checked(at.button(key="open_E15").click().run())
    assert not [b for b in at.button if b.key == "run_E15"]


def test_a_claim_opens_its_duel(claims) -> None:
    at = claims(claim="C7")
    checked(at.button(key="duel_C7").click().run())
    assert [lane.scheme for lane in duel(at).lanes] == ["post", "post_init"]


def test_a_cheap_claim_is_run_here(claims) -> None:
    at = claims(claim="E15")
    checked(at.button(key="run_E15").click().run())
    from normviz.app.session import backend

    job = backend._open().bench.job(CLAIMS["E15"])
    assert job is not None
    wait_for(lambda: not job.is_open, "the end")
    assert not job.failures
    checked(at.run())
    assert "On this server: holds only for Post-LN" in "\n".join(s.value for s in at.success)
