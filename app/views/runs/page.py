"""The History page: all stored runs, newest first, those of sweeps and shipped ones last."""

from __future__ import annotations

import time
from datetime import datetime
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from normviz.catalog import NORMS, PLACEMENTS, TASKS
from normviz.catalog.registry import Registry
from normviz.config import seeds_of
from normviz.observed import label
from normviz.runs import SHIPPED, Run
from normviz.runs.engines import ENGINES, IN_CPP, plain
from normviz.runs.listing import ListPage, ListRow, ago, changed, described, seconds
from normviz.runs.search import Search, search
from normviz.runs.store import Clause, Condition, Query

from ...session import duel, presence
from ...session.backend import shared
from ...session.markdown import literal, sentence
from ...widgets import badge, glossary, link_notices
from ...widgets.store_errors import guarded
from . import selected_runs

ROWS = 25
TICK_SECONDS = 1.0
WHOSE = ("All", "Mine", "Shipped")
MINE = " Mine: the runs that this browser asked for since it was started."


def page() -> None:
    """The page, from top to bottom."""
    backend = shared()
    mine = selected_runs.mine(duel.duel(), backend)
    with st.container(key="head"):
        st.markdown("# Runs stored on this server")
    link_notices.unknown_parameters()
    wanted, asked = _wanted(mine)
    pager = _pager(wanted)
    number = st.session_state.get(pager, 1)
    list_page = backend.run_list.page(wanted, ROWS, ROWS * (number - 1))
    if number > _pages(list_page):  # runs were deleted
        number = st.session_state[pager] = _pages(list_page)
        list_page = backend.run_list.page(wanted, ROWS, ROWS * (number - 1))
    st.caption(_counted(list_page, number))
    glossary.line("loss", "nat", "chance", "floor", "diverged", "seed", "init", "warmup", "rate")
    if not list_page.total:
        st.info(_nothing(asked, mine))
    with st.container(key="run_rows", gap=None):
        for row in list_page.rows:
            _row(row, row.run.id in mine)
    if _pages(list_page) > 1:
        st.pagination(_pages(list_page), key=pager, max_visible_pages=5, persist_state="session")
    selected_runs.show(backend, mine)


def _pages(list_page: ListPage) -> int:
    return max(1, -(-list_page.total // ROWS))


def _pager(wanted: Query) -> str:
    """The pagination's key. It depends on the filters, so that other filters start at page 1."""
    asked = (wanted.clauses, wanted.only is None, wanted.trained)
    return f"runs_page_{sha256(repr(asked).encode()).hexdigest()[:12]}"


def _wanted(mine: frozenset[int]) -> tuple[Query, Search]:
    """Show the filters. Returns the query, and the parsed search with its problems."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="filters"):
        words = st.text_input(
            "Search", key="runs_search", label_visibility="collapsed", width=330,
            placeholder="deepnorm, depth 24, lr=0.01, diverged ...", max_chars=200,
            persist_state="session",
        )  # fmt: skip
        scheme = _choose("runs_scheme", "Placement", PLACEMENTS)
        task = _choose("runs_task", "Task", TASKS)
        whose = st.segmented_control(
            "Whose", WHOSE, key="runs_whose", default="All", required=True,
            label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
        measured = st.toggle(
            "Also runs of 0 steps", key="runs_measured",
            help="Measurements at initialisation, from the Catalogue page",
            persist_state="session",
        )  # fmt: skip
    asked = search(words)
    clauses: list[Clause] = [*asked.clauses]
    clauses += [(Condition("scheme", (scheme,)),)] if scheme else []
    clauses += [(Condition("task", (task,)),)] if task else []
    clauses += [(Condition("origin", SHIPPED),)] if whose == "Shipped" else []
    only = mine if whose == "Mine" else None
    return Query(tuple(clauses), only, trained=not measured), asked


def _choose(key: str, label: str, registry: Registry[Any]) -> str | None:
    return st.selectbox(
        label, registry.keys(), index=None, key=key, format_func=registry.label,
        placeholder=f"Any {label.lower()}", label_visibility="collapsed", width=165,
        persist_state="session",
    )  # fmt: skip


def _counted(list_page: ListPage, number: int) -> str:
    if not list_page.total:
        return "0 runs"
    first = ROWS * (number - 1) + 1
    last = first + len(list_page.rows) + len(list_page.foreign) - 1
    words = (
        f"{first} to {last} of {list_page.total:,}, newest first, sweeps and shipped ones last. "
    )
    words += "Choose one to reopen it, two to four to compare them."
    if st.session_state["runs_whose"] == "Mine":
        words += MINE
    if n := len(list_page.foreign):
        words += f" {n} of these can't be shown: they come from another release of NormViz, or are damaged."
    return words


def _nothing(asked: Search, mine: frozenset[int]) -> str:
    """A sentence on why the list is empty."""
    if words := asked.too_long:
        return sentence(words)
    if asked.unknown:
        named = ", ".join(literal(word[:40]) for word in asked.unknown[:3])
        return (
            f"No placement, norm, task, setting or state is called {named}. Try a name from the "
            "Catalogue, a setting as in depth 24, a state as in diverged, an own model as in model gpt, or a "
            "run's number."
        )
    if st.session_state["runs_whose"] == "Mine" and not mine:
        return "This browser has not trained anything here: press Train on the Duel page."
    filters = ("runs_search", "runs_scheme", "runs_task")
    if any(st.session_state[key] for key in filters) or st.session_state["runs_whose"] != "All":
        return "No stored run matches the search and the filters. Clear one of them to see more."
    return "No run is stored here yet: press Train on the Duel page, and it stays here."


def _row(row: ListRow, mine: bool) -> None:
    run = row.run
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"run_row_{run.id}"
    ):
        config = run.config
        norm = config.norm if run.is_observed else run.trained.placed().norm
        norm = NORMS.label(norm) if norm and norm in NORMS else ""
        st.checkbox(
            f"**{literal(label(config))}** {literal(norm)} :gray[\\#{run.id}]",
            key=selected_runs.key(run.id), on_change=selected_runs.toggle, args=(run.id,), width=250,
            wrap=True,
        )  # fmt: skip
        st.markdown(_settings(run, mine), width="stretch")
        if run.is_open:
            st.fragment(guarded(_live), run_every=TICK_SECONDS)(run.id)
        else:
            _outcome(row)
        loss = "" if run.is_open else row.loss
        st.markdown(f"loss {loss}" if loss else " ", width=80)
        st.caption(_when(run), width=150, help=_why_not_in_cpp(run))


def _settings(run: Run, mine: bool) -> str:
    """The settings that differ from the defaults, then task and seed."""
    marks = [":violet-badge[shipped]"] if run.is_shipped else []
    marks += [":blue-badge[mine]"] if mine else []
    if run.is_observed:
        return " ".join([":green-badge[own model]", literal(described(run.config))])
    config = run.trained
    other = changed(config)
    text = f" {config.text[:8]}…" if config.text else ""
    rest = f"{TASKS.label(config.task)}{text}, {seeds_of(config)}"
    first = f"{literal(other)}, :gray[{rest}]" if other else f":gray[default settings, {rest}]"
    return " ".join([*marks, first])


def _outcome(row: ListRow) -> None:
    badge.verdict(row.verdict.kind, row.words, width=240)


def _live(number: int) -> None:
    """The progress of an open run. Reruns the page when the run ends."""
    backend = shared()
    run = backend.store.run(number)
    if run is None or not run.is_open:
        st.rerun()
        return
    # Not all that are listed: a shared server would train on for who only reads the list.
    if number in selected_runs.selection().runs or number in duel.duel().mine:
        presence.runs([run])
    row = backend.run_list.row(run)
    if run.is_observed:  # the number of steps is not known
        _outcome(row)
        return
    total = max(run.config.steps, 1)
    words = row.words
    if run.status != "queued":
        words += f", {row.steps} of {total} steps"
    st.progress(min(1.0, row.steps / total), words, width=240)


def _when(run: Run) -> str:
    """When, for how long, on which device and by what a run was trained."""
    if run.is_shipped:
        return f"Ships with NormViz  \ntrained on {_device(run)}"
    then = datetime.fromtimestamp(run.created, _zone())
    now = datetime.now(then.tzinfo)
    exact = f"{then:%H:%M}" if then.date() == now.date() else f"{then:%d %b %H:%M}"
    exact = exact if then.year == now.year else f"{then:%Y-%m-%d}"
    took = seconds(run)
    how_long = "" if took is None else f"{took:.1f} s on " if took < 100 else f"{took:.0f} s on "
    return f"{ago(run.created, time.time())}, {exact}  \n{how_long}{_device(run)}"


def _device(run: Run) -> str:
    if (started := run.started) is None:
        return ""
    kind, _, gpu = started.device.partition(": ")
    name = literal(gpu or (kind.upper() if kind in ("cpu", "cuda") else kind))
    if not started.engine or run.is_observed:  # no engine of ours trained that
        return name
    return f"{name}, {'in C++' if ENGINES[started.engine] == IN_CPP else 'by PyTorch'}"


def _why_not_in_cpp(run: Run) -> str | None:
    why = run.started.why if run.started else ""
    return literal(sentence(plain(why))) if why else None


def _zone() -> ZoneInfo | None:
    """The visitor's time zone; None (the server's) if the browser sends none."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
