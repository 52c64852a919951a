"""The duel of a visitor's session, behind typed accessors. Every page can leave it and open another.

`lanes` holds one validated config for each lane. Widgets show it and write it through callbacks. A value
that is not allowed changes nothing, and `complaint` says why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import streamlit as st

from normviz.config import ConfigError, RunConfig
from normviz.duel.names import lane_name
from normviz.duel.presets import PRESETS
from normviz.duel.seeds import named
from normviz.limits import MAX_LANES
from normviz.observed import Observed, Settings, nearest
from normviz.player import View
from normviz.runs.store import Action, Run
from normviz.tour import STEPS

from . import address, duel_link, visitor
from .backend import SharedBackend
from .fragments import runs_alone
from .page_state import PageState

EARLIER = 120
"""Most characters of the words that name the earlier settings of a curve."""


@dataclass
class Duel(PageState):
    """One visitor's duel.

    runs       the run shown in each lane, None where there is none
    start      how the charts start: they follow the training, replay it, or show its end
    nonce      counts restarts, so that charts of the same runs restart too
    probe      the quantity that the charts show; `view` is the chart below loss and bars
    seeds      runs of each lane from as many seeds are shown, as far as they are stored
    opened     a link opened it, and its runs are not marked as linked in the store yet
    touched    the settings are the visitor's own, so the URL names them
    beside     key of the observed run that the charts show after the lanes; empty without one
    extra      repeats from other seeds that this visitor queued
    mine       runs that this visitor started: nobody else's are stopped by leaving them
    trained    of each lane the run it shows and that run's config, as the page last saw them
    cursor     the step ("at") and the layer that the charts start at, where the link names them
    text       hash of the text used last, or empty
    wants_text the task "your own text" is chosen, and no text has been given yet
    text_problem  why the text that was given is not used
    story      the step of the tour, from 1; 0 outside of it
    guess      the choice taken in the step's question (-1: none); None before the guess
    kept       Train was pressed or all results were shown: the next change of a setting adds a history
               entry, so that Back leads here
    changed    when the visitor changed a setting that has not been trained since (monotonic seconds)
    soon       the configs that train in a moment without a click
    automatic  the runs that started without a click last
    refused_in  key of the widget that still holds the value that `complaint` is about; empty where none does
    asks       Train was pressed, and the page asks first, because that ends a run
    """

    lanes: tuple[RunConfig, ...]
    runs: tuple[int | None, ...]
    start: Literal["follow", "replay", "end"] = "replay"
    nonce: int = 0
    probe: str = duel_link.PROBE
    view: View = duel_link.HEAT
    seeds: int = 1
    beside: str = ""
    mine: frozenset[int] = frozenset()
    extra: frozenset[int] = frozenset()
    trained: tuple[tuple[int, RunConfig] | None, ...] = ()
    cursor: dict[str, int] = field(default_factory=dict)
    opened: bool = False
    touched: bool = False
    text: str = ""
    wants_text: bool = False
    text_problem: str | None = None
    story: int = 0
    guess: int | None = None
    kept: bool = True
    changed: float | None = None
    soon: tuple[RunConfig, ...] = ()
    automatic: frozenset[int] = frozenset()
    refused_in: str = ""
    asks: bool = False

    def params(self) -> dict[str, str]:
        """The parameters of its link, with what is looked at."""
        return duel_link.params(
            self.lanes, self.story, self.beside, self.seeds, probe=self.probe, view=self.view,
            cursor=self.cursor,
        )  # fmt: skip

    def complain(self, sentence: str | None, widget: str = "") -> None:
        """Say why a change was not taken, or no more. The value stays in its widget."""
        self.complaint, self.refused_in = sentence, widget


def label(index: int, config: Settings, lanes: Sequence[Settings], repeated: bool = False) -> str:
    """ "B  Post-LN, warm-up 200": a lane's name among all lanes, with the seed if several are shown."""
    name = lane_name(index, config, lanes)
    if repeated and "seed" not in name and isinstance(config, RunConfig):
        return f"{name}, {named(config)}"
    return name


def duel() -> Duel:
    """The session's duel; on first use the URL's, else the hero preset."""
    if "duel" not in st.session_state:
        st.session_state["duel"] = _opened()
    it: Duel = st.session_state["duel"]
    # What a visitor started stays theirs, whichever duel comes after this one.
    it.mine |= st.session_state.get("mine", frozenset())
    st.session_state["mine"] = it.mine
    return it


def _opened() -> Duel:
    asked = duel_link.read(address.params())
    is_link = bool(asked.link and asked.lanes)
    texts = tuple(lane.text for lane in asked.lanes if lane.text)
    lanes = asked.lanes or PRESETS["hero"].lanes()
    return Duel(
        lanes, (None,) * len(lanes), start="follow" if is_link else "replay", opened=is_link,
        touched=asked.is_one and bool(asked.lanes), story=asked.story if asked.lanes else 0,
        link=None if asked.lanes else asked.link, probe=asked.probe, view=asked.view, seeds=asked.seeds,
        beside=asked.beside, cursor=asked.cursor, text=next(iter(texts), ""),
        notices=(*asked.notices, *visitor.lacks("This link", texts)),
    )  # fmt: skip


def reopen() -> tuple[int | None, ...]:
    """Show the URL's duel after Back or Forward. Returns the runs of the duel that it replaces."""
    it = duel()
    found = _opened()
    same = (it.lanes, it.story, it.beside)
    if (found.lanes, found.story, found.beside) == same:  # as when another page was left
        it.probe, it.view, it.seeds = found.probe, found.view, found.seeds
        it.cursor = found.cursor
        return ()
    found.opened, found.nonce, found.text = False, it.nonce + 1, found.text or it.text
    st.session_state["duel"] = found
    return (*it.runs, *it.extra)


def reset(name: str = "hero") -> None:
    """Show a preset, and replay it."""
    lanes = PRESETS[name].lanes()
    it = duel()
    st.session_state["duel"] = Duel(
        lanes, (None,) * len(lanes), probe=it.probe, nonce=it.nonce + 1, text=it.text
    )
    address.new_entry()
    st.query_params.clear()


def open_step(number: int) -> None:
    """Show a step of the tour, from 1."""
    it = duel()
    address.new_entry()
    st.session_state["duel"] = replace(_step(number, it.nonce + 1), mine=it.mine, text=it.text)


def _step(number: int, nonce: int) -> Duel:
    step = STEPS[number - 1]
    lanes = step.lanes()
    return Duel(
        lanes, (None,) * len(lanes), probe=step.probe, nonce=nonce, touched=True, story=number
    )


def show_runs(runs: Sequence[Run]) -> None:
    """Show these stored runs, one in each lane, with the settings of each run. One that was observed is
    shown beside the lanes; alone it is beside the nearest settings, which train if that takes seconds."""
    it = duel()
    address.new_entry()
    observed = [run.config for run in runs if isinstance(run.config, Observed)]
    trained = [run for run in runs if not run.is_observed]
    lanes = tuple(run.trained for run in trained) or (nearest(observed[0]),)
    st.session_state["duel"] = Duel(
        lanes, tuple(run.id for run in trained) or (None,), start="follow", nonce=it.nonce + 1,
        probe=it.probe, view=it.view, touched=True, text=it.text, beside=observed[0].key if observed else "",
        changed=None if trained else time.monotonic(),
    )  # fmt: skip


def show_beside(key: str) -> None:
    """Show this observed run beside the lanes; none where the key is empty."""
    it = duel()
    it.beside, it.nonce, it.touched = key, it.nonce + 1, True


def change(field: str, value: Any, lane: int | None = None, widget: str = "") -> None:
    """Set a field in one lane or in all. A value that is not allowed only sets `complaint`, and stays in
    the widget with this key."""
    it = duel()

    # A new peak rate replaces the changes that were made while an earlier run went on.
    # Fewer steps leave out the changes beyond them, once RunConfig finds them to be a number of steps.
    # A text and its task come and go together.
    def changed(config: RunConfig) -> RunConfig:
        values = {field: value}
        if field == "lr":
            values["lr_edits"] = ()
        if field == "steps" and config.lr_edits:
            steps = config.replace(steps=value, lr_edits=()).steps
            values["lr_edits"] = tuple(e for e in config.lr_edits if e[0] < steps)
        if field == "task":
            values["text"] = config.text or it.text if value == "text" else ""
        if field == "text" and value not in ("", "none"):
            values["task"] = "text"
        return config.replace(**values)

    try:
        lanes = tuple(
            changed(config) if lane in (None, i) else config for i, config in enumerate(it.lanes)
        )
    except ConfigError as error:
        it.complain(str(error), widget)
        return
    it.complain(None)
    it.refused = None
    it.wants_text = it.wants_text and field != "task"
    if lanes != it.lanes:
        it.lanes = lanes
        _touch(it)


def _touch(it: Duel) -> None:
    """Mark the settings as the visitor's own, so that the URL names them.

    The first change of a duel whose results were all shown adds an entry to the browser's history; further
    changes replace it. Stored runs of the new settings show their end at once, and open ones are followed.
    """
    it.touched, it.start, it.changed, it.cursor = True, "follow", time.monotonic(), {}
    if it.kept:
        it.kept = False
        address.new_entry()


def show(key: str, value: object) -> None:
    """Set a widget's value, if it differs: to set it again could undo the visitor's latest change. A refused
    value stays in its widget, to be corrected, as long as the page shows that."""
    it = duel()
    if it.refused_in == key:
        if key in st.session_state:
            return
        it.complain(None)
    if key not in st.session_state:
        st.session_state[key] = value
    elif st.session_state[key] != value:
        _replaced().setdefault(key, []).append(st.session_state[key])
        st.session_state[key] = value


def chosen(key: str) -> bool:
    """Whether the visitor chose the value of a widget outside of fragments that calls back now.

    Each message of a browser has the values of all widgets. The timer of a fragment may send one before
    the browser shows a value that the page has set, as after Back: the value before is no choice. It may
    also send one between a choice and the choice's own message, which then brings nothing new.
    """
    if runs_alone() and st.session_state[key] in _replaced().get(key, []):
        return False
    _replaced().pop(key, None)
    return True


def _replaced() -> dict[str, list[object]]:
    """Of each widget the values that the page replaced since the visitor's last choice."""
    return st.session_state.setdefault("replaced", {})


def begin(start: Literal["follow", "replay", "end"]) -> None:
    """Restart the charts."""
    it = duel()
    it.start, it.nonce, it.cursor = start, it.nonce + 1, {}


def most_lanes() -> int:
    """How many lanes the duel may have: an observed run beside them takes one."""
    return MAX_LANES - bool(duel().beside)


def set_lane_count(n: int) -> None:
    """Add copies of the last lane, or drop lanes from the end."""
    it = duel()
    n = max(1, min(n, most_lanes()))
    it.lanes = (*it.lanes, *(it.lanes[-1:] * MAX_LANES))[:n]
    it.runs = (*it.runs, *(None,) * MAX_LANES)[:n]
    it.complain(None)
    _touch(it)


def control(
    backend: SharedBackend, action: Action, runs: tuple[int | None, ...] | None = None
) -> None:
    """Send an action to every open run of this duel that the visitor may steer, or to those given."""
    it = duel()
    for run in (*it.runs, *it.extra) if runs is None else runs:
        if run is None or not (record := backend.store.run(run)) or not record.is_open:
            continue
        if visitor.steers(record):
            backend.store.control(run, action)


def leave(backend: SharedBackend, runs: tuple[int | None, ...]) -> None:
    """Stop the given runs that this visitor started. Others' runs, opened by a link, go on.

    On a shared server a run also goes on while another page shows it.
    """
    here, mine = visitor.session(), duel().mine
    gone = (run for run in runs if run in mine and not backend.watchers.others(here, run))
    control(backend, "stop", tuple(gone))


def leave_duel(backend: SharedBackend) -> None:
    """Stop all runs that this visitor started in this duel, before another duel is shown."""
    it = duel()
    leave(backend, (*it.runs, *it.extra))
    it.extra = frozenset()


def open_lanes(
    lanes: tuple[RunConfig, ...],
    backend: SharedBackend,
    start: Literal["follow", "replay"] = "replay",
) -> None:
    """Leave this duel for another one, as if its link had been opened; nothing is trained."""
    leave_duel(backend)
    it = duel()
    address.new_entry()
    st.session_state["duel"] = Duel(
        lanes, (None,) * len(lanes), start, it.nonce + 1, it.probe, touched=True, mine=it.mine
    )
