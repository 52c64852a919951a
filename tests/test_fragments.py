"""A fragment's timer ends once: with a run of the whole page after the work has ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from normviz.app.session import fragments
from normviz.app.session.markdown import capital, sentence


@pytest.mark.parametrize(
    ("was", "busy", "alone", "anew"),
    [
        (True, False, True, True),
        (True, False, False, False),  # the whole page runs already
        (True, True, True, False),
        (False, False, True, False),  # else it would run for ever
        (None, False, True, False),
        (False, True, True, False),
    ],
)
def test_the_whole_page_runs_once_the_work_has_ended(
    monkeypatch: pytest.MonkeyPatch, was: bool | None, busy: bool, alone: bool, anew: bool
) -> None:
    state: dict[str, Any] = {} if was is None else {"work": was}
    runs: list[str] = []
    page = SimpleNamespace(session_state=state, rerun=lambda: runs.append("page"))
    context = SimpleNamespace(fragment_ids_this_run=["one"] if alone else None)
    monkeypatch.setattr(fragments, "st", page)
    monkeypatch.setattr(fragments, "get_script_run_ctx", lambda: context)
    fragments.end_timer("work", busy)
    assert bool(runs) == anew and state == {"work": busy}


def test_words_become_a_sentence() -> None:
    assert sentence("it is RMSNorm") == sentence("It is RMSNorm.") == "It is RMSNorm."
    assert capital("it is RMSNorm") == "It is RMSNorm" and capital("") == ""
