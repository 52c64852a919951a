"""The History page of a shared server, without a browser: whose runs go, and which ones it watches."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import checked
from shelf_kit import kept
from streamlit.testing.v1 import AppTest
from test_page_hosted import FREE, become
from test_page_runs import own, pick, shelf

from normviz.runs.store import Store

__all__ = ["become", "shelf"]


@pytest.mark.slow
def test_nobody_deletes_another_s_run_that_has_a_number_of_theirs(
    shelf: AppTest, folder: Path
) -> None:
    """As after a store that was set aside: a session keeps the numbers of the old one."""
    store = Store(folder)
    theirs, mine = (kept(store, FREE.replace(init_seed=seed)) for seed in range(2))
    owner = "UPDATE runs SET visitor = ? WHERE id = ?"
    store.db.connection.execute(owner, ("b", theirs))
    store.db.connection.execute(owner, ("a", mine))
    at = own(pick(checked(shelf.run()), theirs), theirs, mine)
    assert at.button(key="delete_chosen").disabled
    checked(at.button(key="choose_none").click().run())
    pick(at, mine)
    checked(at.button(key="delete_chosen").click().run())
    store.db.connection.execute(owner, ("b", mine))
    checked(at.button(key="delete_sure").click().run())
    assert store.run(mine) is not None and store.run(theirs) is not None


def test_a_list_of_runs_watches_those_that_were_chosen_and_its_visitor_s_own(
    shelf: AppTest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one forgotten page would keep all that it lists from ending."""
    from normviz.app.session import backend

    monkeypatch.setattr(backend, "_is_open", lambda page: True)
    store = Store(folder)
    opened = [store.enqueue(FREE.replace(init_seed=seed), visitor="b") for seed in range(3)]
    at = checked(shelf.run())
    watchers = backend.watchers()
    watchers.begin("page of a")
    checked(at.run())
    assert watchers._pages["page of a"] == set()
    pick(at, opened[0])
    own(at, opened[1])
    assert watchers._pages["page of a"] == set(opened[:2])
