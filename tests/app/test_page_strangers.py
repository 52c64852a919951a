"""Every page says what of a link it does not read: a misspelt parameter is never silently nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import VIEWS, view_at, words_of
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("view", VIEWS)
def test_a_parameter_that_nobody_reads_is_said(folder: Path, view: str) -> None:
    at = view_at(view, {"colour": ["red"]})
    assert any("The link also names 'colour'" in text for text in told(at)), told(at)


@pytest.mark.parametrize("view", VIEWS)
def test_an_address_without_parameters_gets_no_notice(folder: Path, view: str) -> None:
    assert not any("The link" in text for text in told(view_at(view, {})))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["C1", "C2"], "The link gives claim 2 times, allowed is once: the first one is used."),
        ([""], "The link names the claim ''; there are"),
    ],
)
def test_a_claims_link_that_is_not_clear_is_told(
    folder: Path, given: list[str], sentence: str
) -> None:
    assert any(text.startswith(sentence) for text in told(view_at("claims", {"claim": given})))


def told(at: AppTest) -> list[str]:
    """What stands in the page's notices and complaints."""
    assert not at.exception
    return [words_of(box) for box in (*at.info, *at.error)]
