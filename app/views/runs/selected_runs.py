"""The runs chosen on the History page: which, how they differ, and buttons to open, stop or delete them.

The choice is in the session state, so runs stay chosen on other pages of the list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from normviz.limits import MAX_LANES
from normviz.observed import Observed, label
from normviz.player import View
from normviz.runs import Run, names
from normviz.runs.listing import ListRow, described, diff

from ...session import duel, duel_link, training, visitor
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...session.markdown import literal, sentence
from ...session.page_state import chosen
from ...session.progress import signature
from ...widgets import page_links, player, shortcuts
from ...widgets.buttons import button

# The choice.


@dataclass
class Selection:
    """The chosen runs, in the order chosen.

    asking  whether the page asks to confirm their deletion
    notice  the result of a deletion, until the page has shown it
    probe   the quantity, and `view` the chart, that the charts of observed runs show
    """

    runs: tuple[int, ...] = ()
    asking: bool = False
    notice: str = ""
    probe: str = duel_link.PROBE
    view: View = duel_link.HEAT


def selection() -> Selection:
    """The session's chosen runs."""
    return st.session_state.setdefault("picks", Selection())


def _picks() -> Selection:
    """The same for a callback."""
    return chosen("picks")


def key(run: int) -> str:
    """The key of a run's checkbox, which shows whether the run is chosen."""
    name = f"pick_{run}"
    st.session_state[name] = run in selection().runs
    return name


def toggle(run: int) -> None:
    """The callback of a run's checkbox."""
    picks = _picks()
    others = tuple(number for number in picks.runs if number != run)
    picks.runs = (*others, run) if chosen(f"pick_{run}") else others
    picks.asking = False


def only(runs: Iterable[int]) -> None:
    """Replace the choice."""
    picks = _picks()
    picks.runs, picks.asking = tuple(runs), False


# The panel.


def show(backend: SharedBackend, mine: frozenset[int]) -> None:
    """The panel at the bottom of the window, if a run is chosen."""
    picks = selection()
    runs = [run for number in picks.runs if (run := backend.store.run(number))]
    if len(runs) < len(picks.runs):  # the others were deleted
        only(run.id for run in runs)
    if picks.notice:
        st.toast(picks.notice)
        picks.notice = ""
    if not runs:
        return
    rows = [backend.run_list.row(run) for run in runs]
    if any(run.is_observed for run in runs) and len(runs) <= MAX_LANES:
        with st.container(key="live"):
            _charts(runs, picks, backend)
    with st.container(key="chosen", border=True):
        if picks.asking:
            _confirm(runs, backend)
        else:
            _actions(runs, backend, mine)
        _about(rows)


def _name(run: Run) -> str:
    return f"{label(run.config)} ({run.id})"


def _about(rows: list[ListRow]) -> None:
    """The verdict of one run, or a table of how several differ."""
    if len(rows) == 1:
        (row,) = rows
        words = f"**{literal(_name(row.run))}** {literal(row.verdict.sentence)}"
        st.markdown(words)
        return
    if len(rows) > MAX_LANES:
        st.markdown(f"**{len(rows)} runs chosen.** At most {MAX_LANES} fit side by side.")
        return
    if any(row.run.is_observed for row in rows):
        columns = {"what it is": [described(row.run.config) for row in rows]}
    else:
        columns = diff([row.run.trained for row in rows])
    if not columns:
        st.markdown("The chosen runs have the same settings.")
    table = columns | {
        "outcome": [row.words for row in rows],
        "final loss": [row.loss or "none" for row in rows],
    }
    cells = {name: [literal(value) for value in values] for name, values in table.items()}
    names = [literal(_name(row.run)) for row in rows]
    st.table(pd.DataFrame.from_dict(cells, orient="index", columns=names).rename_axis("setting"))


def _actions(runs: list[Run], backend: SharedBackend, mine: frozenset[int]) -> None:
    stays = [why for run in runs if (why := _stays(run, mine))]
    own_open = tuple(run.id for run in runs if run.is_open and run.id in mine)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        observed = [run for run in runs if run.is_observed]
        if st.button(
            _opens(runs), key="reopen", type="primary", icon=":material/open_in_new:",
            shortcut=shortcuts.of("O"), disabled=len(observed) > 1 or len(runs) > MAX_LANES,
            help=TOY if len(observed) == len(runs) else None,
        ):  # fmt: skip
            page_duel = duel.duel()
            duel.show_runs(page_duel, runs)
            if len(observed) == len(runs):  # a toy trains at once, if that takes seconds
                training.by_itself(page_duel, backend)
            st.switch_page(page_links.at("duel"))
        if own_open:
            button("Stop", duel.control, duel.duel(), backend, "stop", own_open, key="stop_chosen",
                   icon=":material/stop:")  # fmt: skip
        button("Delete", _ask, key="delete_chosen", icon=":material/delete:", disabled=bool(stays))
        button("Clear", only, (), key="choose_none", type="tertiary")
    if len(observed) > 1:
        st.caption("The duel shows one observed run beside its lanes: choose one of these.")
    for why in stays[:1]:
        st.caption(sentence(why))


TOY = (
    "Opens its charts in the duel, beside a small model that can be trained here: with the same placement, "
    "norm and number of blocks, as far as they are known"
)


# The charts of models that were observed, also of several at once, which no duel shows.


def _charts(runs: list[Run], picks: Selection, backend: SharedBackend) -> None:
    notes = [note for run in runs if isinstance(run.config, Observed) for note in run.config.notes]
    for note in dict.fromkeys(notes):
        st.caption(sentence(note))
    what = {
        "topic": {
            "runs": [run.id for run in runs],
            "probe": picks.probe,
            "view": picks.view,
            "dark": st.context.theme.type == "dark",
        },
        "start": "follow" if any(run.is_open for run in runs) else "end",
        "nonce": 0,
        "name": names.file_name([run.config for run in runs]),
        "caption": names.caption([run.config for run in runs], []),
        "signature": signature(backend.frames, runs),
        "shortcuts": shortcuts.are_on(),
    }
    player.show("chosen_player", what, picks)


def _opens(runs: list[Run]) -> str:
    if len(runs) > 1:
        return "Compare these"
    if runs[0].is_observed:
        return "As a toy"
    return "Watch it in the duel" if runs[0].is_open else "Reopen in the duel"


def mine(page_duel: Duel, backend: SharedBackend) -> frozenset[int]:
    """The runs that this visitor started, in this page or an earlier one of the same browser."""
    return page_duel.mine | backend.store.asked_by(visitor.me())


def _stays(run: Run, mine: frozenset[int]) -> str | None:
    """Why this visitor can't delete a run, or None."""
    if run.stays or (run.id in mine and visitor.steers(run)):
        return run.stays
    return f"run {run.id} was not trained from this browser, so it can't be deleted here"


def _ask() -> None:
    _picks().asking = True


def _confirm(runs: list[Run], backend: SharedBackend) -> None:
    which = f"run {runs[0].id}" if len(runs) == 1 else f"these {len(runs)} runs"
    st.markdown(
        f"Delete {which} for good? A link to {'it' if len(runs) == 1 else 'one of them'} will then "
        "say that nobody has run this yet, unless the same settings are stored once more."
    )
    with st.container(horizontal=True, gap="small"):
        button(f"Delete {which}", _delete, backend, key="delete_sure", type="primary",
               icon=":material/delete:")  # fmt: skip
        button("Keep", only, [run.id for run in runs], key="keep_chosen")


def _delete(backend: SharedBackend) -> None:
    """Delete the chosen runs that have ended and are this visitor's."""
    picks, own = _picks(), mine(chosen("duel"), backend)
    remaining_runs, gone = [], 0
    for number in picks.runs:
        run = backend.store.run(number)
        why = (_stays(run, own) if run else "gone") or backend.store.delete(number)
        remaining_runs += [number] if why else []
        gone += not why
    only(remaining_runs)
    picks.notice = f"Deleted {gone} run{'s' * (gone != 1)}." if gone else "Nothing was deleted."
