"""Every page opens, and says what of a link it does not read and nothing else of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import VIEWS, view_at, words_of
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_opens_and_a_parameter_that_it_does_not_read_is_said(
    request: pytest.FixtureRequest, view: str
) -> None:
    """A misspelt one is never silently nothing, and nothing else is said of the link."""
    request.getfixturevalue("unpacked" if view in ("maps", "claims") else "folder")
    (said,) = [text for text in told(view_at(view, {"colour": ["red"]})) if "The link" in text]
    assert "The link also names 'colour'" in said


def test_a_claims_link_that_is_not_clear_is_told(unpacked: Path) -> None:
    found = told(view_at("claims", {"claim": ["", "C2"]}))
    for sentence in (
        "The link gives claim 2 times, allowed is once: the first one is used.",
        "The link names the claim ''; there are",
    ):
        assert any(text.startswith(sentence) for text in found)


@pytest.mark.parametrize(
    ("view", "name", "word", "near"),
    [
        ("claims", "claim", "C455", "C45"), ("catalogue", "table", "modles", "models"),
        ("choose", "section", "costs", "cost"),
    ],
)  # fmt: skip
def test_a_mistyped_word_gets_the_one_that_was_perhaps_meant(
    unpacked: Path, view: str, name: str, word: str, near: str
) -> None:
    assert any(f"{word!r}" in text and f"Did you mean {near!r}?" in text
               for text in told(view_at(view, {name: [word]})))  # fmt: skip


def told(at: AppTest) -> list[str]:
    """What stands in the page's notices and complaints."""
    assert not at.exception
    return [words_of(box) for box in (*at.info, *at.error)]
