"""The soak, a short one: `normviz bench soak` runs the long one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from page_kit import Open, words_of

from normviz.bench import soak
from normviz.runs.store import Store


@pytest.mark.slow
def test_a_short_soak_finds_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for how soon a status is true: that is for a machine with nothing else to do."""
    monkeypatch.setattr(soak, "TRUE_SECONDS", 60.0)
    monkeypatch.setattr(soak, "PATIENCE_SECONDS", 600.0)
    found = soak.soak(n_links=40, n_kills=4, seconds=float("inf"))
    assert not found.wrong, found.table
    assert "40 hostile links" in found.table and "whole pages drawn: 8" in found.table
    assert "4 of 4 kills" in found.table and "violations: 0" in found.table


@pytest.mark.slow
def test_the_soak_sees_rows_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak that finds nothing could be one that does not look."""
    trained = soak._trained

    def loses(store: Store, server: soak.Server) -> bytes:
        losses = trained(store, server)
        store.db.connection.execute("DELETE FROM steps WHERE step = 0")
        return losses

    monkeypatch.setattr(soak, "_trained", loses)
    monkeypatch.setattr(soak, "KINDS", {"worker": 1})
    fell = soak.kills(tmp_path, 1, Random(0), float("inf"))
    assert any("are gone" in why for why in fell["worker"].wrong)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("view=pie", "The link names the view 'pie', allowed are"),
        ("seeds=4", "The link asks for '4' seeds, allowed is 1 or 5."),
        (
            "probe=[x](javascript:alert(1))",
            "The link names unknown probe '[x](javascript:alert(1))'",
        ),
    ],
)
def test_the_page_says_what_of_a_link_it_does_not_know(
    page: Open, query: str, sentence: str
) -> None:
    at = page(query)
    assert [words_of(info)[: len(sentence)] for info in at.info] == [sentence]
