"""The duel of a visitor's session, behind typed accessors. Every page can leave it and open another.

`lanes` holds one validated config for each lane. Widgets show it and write it through callbacks. A value
that is not allowed changes nothing, and `complaint` says why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs

import streamlit as st

from normviz.catalog import FAMILIES, SCHEMES
from normviz.catalog.families import places_of
from normviz.config import ConfigError, RunConfig
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS, TourStep
from normviz.limits import MAX_LANES
from normviz.observed import Observed, nearest
from normviz.player import View
from normviz.runs import Run
from normviz.runs.store import Action

from . import address, duel_link, visitor
from .backend import SharedBackend, known
from .page_state import PageState
from .policy import link_notices

LONG_SECONDS = 10.0
"""Seconds since a run has started, from which on the page asks before it ends that run, or pauses it."""
EARLIER = 120
"""Most characters of the words that name the earlier settings of a curve."""
TURNED = (
    "A run of this link took another learning rate while it trained: it is shown with that change."
)


class Named(NamedTuple):
    """What an address names of a duel, beside the view."""

    lanes: tuple[RunConfig, ...]
    story: int
    beside: str
    seeds: int


class Left(NamedTuple):
    """A duel that was left while it trained, and its runs, which are paused."""

    lanes: tuple[RunConfig, ...]
    seeds: int
    runs: tuple[int, ...]


class Drawn(NamedTuple):
    """What the picture of a lane's block shows, and the placement that its norms come from, if any."""

    scheme: str
    depth: int
    before: str = ""

    def next(self, scheme: str, depth: int) -> Drawn:
        """The next picture: norms move where the placement changes, and stand where all is as it was."""
        if scheme != self.scheme:
            return Drawn(scheme, depth, self.scheme)
        return self if depth == self.depth else Drawn(scheme, depth)


@dataclass
class Duel(PageState):
    """One visitor's duel: one object for the whole session, which widgets' callbacks are given.

    runs       the run shown in each lane, None where there is none
    start      how the charts start: they follow the training, replay it, or show its end
    number     counts the duels opened, so that values of the one before are known as such
    nonce      counts restarts, so that charts of the same runs restart too
    probe      the quantity that the charts show; `view` is the chart below loss and bars
    seeds      runs of each lane from as many seeds are shown, as far as they are stored
    named      what the address names of it; None before it was read
    asked      the address names its settings before they have results: a link, a preset or a step opened
               them, Train or Repeat was pressed, or its runs were paused, stepped or stopped
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
    automatic  the runs that started without a click last
    refused_in  key of the widget that still holds the value that `complaint` is about; empty where none does
    asks       Train was pressed, and the page asks first, because that ends a run
    left       the duel before, where its runs have trained for long; None without one
    drawn      of each lane its placement, and the one before it, as their pictures were drawn last
    """

    lanes: tuple[RunConfig, ...]
    runs: tuple[int | None, ...]
    start: Literal["follow", "replay", "end"] = "replay"
    number: int = 0
    nonce: int = 0
    probe: str = duel_link.PROBE
    view: View = duel_link.HEAT
    seeds: int = 1
    beside: str = ""
    mine: frozenset[int] = frozenset()
    extra: frozenset[int] = frozenset()
    trained: tuple[tuple[int, RunConfig] | None, ...] = ()
    cursor: dict[str, int] = field(default_factory=dict)
    named: Named | None = None
    asked: bool = False
    text: str = ""
    wants_text: bool = False
    text_problem: str | None = None
    story: int = 0
    guess: int | None = None
    automatic: frozenset[int] = frozenset()
    refused_in: str = ""
    asks: bool = False
    drawn: tuple[Drawn, ...] = ()
    left: Left | None = None

    def become(self, other: Duel) -> None:
        """Show another duel. What the visitor started stays theirs, and the text used last stays at hand."""
        text = other.text or self.text
        for attribute in fields(self):
            if attribute.name not in ("mine", "named", "number", "nonce", "drawn", "left"):
                setattr(self, attribute.name, getattr(other, attribute.name))
        self.text, self.number, self.nonce = text, self.number + 1, self.nonce + 1

    @property
    def step(self) -> TourStep | None:
        """The step of the tour that the page shows; None outside of the tour, or with other settings."""
        step = STEPS[self.story - 1] if self.story else None
        return step if step is not None and self.lanes == step.lanes() else None

    @property
    def waits(self) -> bool:
        """Whether the charts wait for the visitor's guess."""
        return self.step is not None and self.step.question is not None and self.guess is None

    @property
    def most_lanes(self) -> int:
        """How many lanes the duel may have: an observed run beside them takes one."""
        return MAX_LANES - bool(self.beside)

    def restart(self, start: Literal["follow", "replay", "end"]) -> None:
        """Restart the charts."""
        self.start, self.nonce, self.cursor = start, self.nonce + 1, {}

    def turn(self, lanes: tuple[RunConfig, ...]) -> None:
        """Take the settings that the lanes' runs have by now: a rate may have been turned while they train.
        The address names them in place of those before."""
        if self.named and self.named.lanes == self.lanes:
            self.named = self.named._replace(lanes=lanes)
        self.lanes = lanes

    @property
    def shown(self) -> Named:
        """What an address would name."""
        return Named(self.lanes, self.story, self.beside, self.seeds)

    def params(self, named: Named | None = None) -> dict[str, str]:
        """The parameters of a link of this duel, or of what the address names of it, with the view."""
        return duel_link.params(
            *(named or self.shown), probe=self.probe, view=self.view, cursor=self.cursor
        )

    def complain(self, sentence: str | None, widget: str = "") -> None:
        """Say why a change was not taken, or no more. The value stays in its widget."""
        self.complaint, self.refused_in = sentence, widget


def duel() -> Duel:
    """The session's duel; at first the one that the page opens with."""
    if "duel" not in st.session_state:
        st.session_state["duel"] = _of(PRESETS["hero"].lanes())
    return st.session_state["duel"]


def _of(lanes: tuple[RunConfig, ...], **more: Any) -> Duel:
    return Duel(lanes, (None,) * len(lanes), **more)


def arrive(page_duel: Duel, backend: SharedBackend) -> bool:
    """Show what the address asks for, on the first visit and where a link, Back or Forward leads here.
    Returns whether a link was opened. The visitor's runs of other settings are put aside."""
    is_first = not (page_duel.named or page_duel.asked)
    if not is_first and not st.session_state["arrived"]:
        return False
    came_back, asked = address.is_old_entry(), duel_link.decode(address.params())
    if not (is_first or came_back or asked.is_named):
        return False  # the navigation leads back to what was there
    linked_duel = _linked(asked, backend)
    shown = page_duel.shown._replace(seeds=linked_duel.seeds)
    if page_duel.named and linked_duel.shown == shown:
        for attribute in ("probe", "view", "seeds", "cursor"):
            setattr(page_duel, attribute, getattr(linked_duel, attribute))
    else:
        _leave_for(page_duel, backend, linked_duel.lanes)
        page_duel.become(linked_duel)
    page_duel.named = page_duel.shown
    return bool(asked.link and asked.lanes) and not came_back


def _linked(asked: duel_link.DuelLink, backend: SharedBackend) -> Duel:
    """The duel of an address; the one that the page opens with, where the link has problems.

    A rate that was turned while a run trained is in that run's settings: a link of before leads there too.
    """
    hero = PRESETS["hero"].lanes()
    lanes = tuple(_turned(lane, backend) for lane in asked.lanes) or hero
    later = (TURNED,) if asked.lanes and lanes != asked.lanes else ()
    # A step plays, and so does the duel that the page opens with; a link shows the end.
    plays = lanes == hero or asked.link is None
    return _of(
        lanes, start="replay" if plays else "follow", asked=asked.is_named and bool(asked.lanes),
        story=asked.story if asked.lanes else 0, link=None if asked.lanes else asked.link,
        probe=asked.probe, view=asked.view, seeds=asked.seeds, beside=asked.beside, cursor=asked.cursor,
        text=next((lane.text for lane in lanes if lane.text), ""),
        notices=(*asked.notices, *later, *link_notices(lanes)),
    )  # fmt: skip


def _turned(config: RunConfig, backend: SharedBackend) -> RunConfig:
    if known(config, backend) is None and (run := backend.store.turned(config)) is not None:
        return run.trained
    return config


def open_link(page_duel: Duel, backend: SharedBackend, query: str) -> None:
    """Show the duel of a link in place of this one."""
    leave_duel(page_duel, backend)
    page_duel.become(_linked(duel_link.decode(parse_qs(query, keep_blank_values=True)), backend))


def open_lanes(
    page_duel: Duel,
    lanes: tuple[RunConfig, ...],
    backend: SharedBackend,
    start: Literal["follow", "replay"] = "replay",
) -> None:
    """Leave this duel for another one, as if its link had been opened; nothing is trained."""
    leave_duel(page_duel, backend)
    page_duel.become(_of(lanes, start=start, probe=page_duel.probe, asked=True))


def catch_up(page_duel: Duel, backend: SharedBackend) -> list[Run | None]:
    """The lanes' runs. A lane with the settings that its run had at the last look takes those that it has by
    now: its rate may have been turned while it trains."""
    runs = [None if number is None else backend.store.run(number) for number in page_duel.runs]
    turned = list(page_duel.lanes)
    for i, run in enumerate(runs):
        if run is not None and page_duel.trained[i : i + 1] == ((run.id, turned[i]),):
            turned[i] = run.trained
    page_duel.turn(tuple(turned))
    page_duel.trained = tuple((run.id, run.trained) if run else None for run in runs)
    return runs


def reset(page_duel: Duel) -> None:
    """Show the duel that the page opens with, and replay it."""
    page_duel.become(_of(PRESETS["hero"].lanes(), probe=page_duel.probe, asked=True))


def open_step(page_duel: Duel, number: int) -> None:
    """Show a step of the tour, from 1."""
    step = STEPS[number - 1]
    page_duel.become(_of(step.lanes(), probe=step.probe, asked=True, story=number))


def show_runs(page_duel: Duel, runs: Sequence[Run]) -> None:
    """Show these stored runs, one in each lane, with the settings of each run. One that was observed is
    shown beside the lanes; alone it is beside the nearest settings."""
    observed = [run.config for run in runs if isinstance(run.config, Observed)]
    trained = [run for run in runs if not run.is_observed]
    page_duel.become(
        Duel(
            tuple(run.trained for run in trained) or (nearest(observed[0]),),
            tuple(run.id for run in trained) or (None,),
            start="follow",
            probe=page_duel.probe,
            view=page_duel.view,
            asked=True,
            beside=observed[0].key if observed else "",
        )
    )


def show_beside(page_duel: Duel, key: str) -> None:
    """Show this observed run beside the lanes; none where the key is empty."""
    page_duel.beside, page_duel.nonce, page_duel.asked = key, page_duel.nonce + 1, True


def change(
    page_duel: Duel, field: str, value: Any, lane: int | None = None, widget: str = ""
) -> None:
    """Set a field in one lane or in all. A value that is not allowed only sets `complaint`, and stays in
    the widget with this key."""

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
            values["text"] = config.text or page_duel.text if value == "text" else ""
        if field == "text" and value not in ("", "none"):
            values["task"] = "text"
        return config.replace(**values)

    try:
        lanes = tuple(
            changed(config) if lane in (None, i) else config
            for i, config in enumerate(page_duel.lanes)
        )
    except ConfigError as error:
        page_duel.complain(str(error), widget)
        return
    if field == "family":
        lanes = _compared(lanes)
    page_duel.complain(None)
    page_duel.refused = None
    page_duel.wants_text = page_duel.wants_text and field != "task"
    if lanes != page_duel.lanes:
        page_duel.lanes = lanes
        _touch(page_duel)


def _touch(page_duel: Duel) -> None:
    """The settings are the visitor's own now. Stored runs of them show their end at once, and open ones are
    followed."""
    page_duel.asked, page_duel.start, page_duel.cursor = False, "follow", {}


def show(page_duel: Duel, key: str, value: object) -> None:
    """Set a widget's value, if it differs: to set it again could undo the visitor's latest change. A refused
    value stays in its widget, to be corrected, as long as the page shows that."""
    if page_duel.refused_in == key:
        if key in st.session_state:
            return
        page_duel.complain(None)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def _compared(lanes: tuple[RunConfig, ...]) -> tuple[RunConfig, ...]:
    """Lanes of another family: where all became the same, each has a placement of its own. The first one of a
    recurrent net has no norm."""
    if len(lanes) > 1 and len(set(lanes)) == 1 and FAMILIES[lanes[0].family].is_recurrent:
        lanes = (lanes[0].replace(scheme="cell_none"), *lanes[1:])
    apart: tuple[RunConfig, ...] = ()
    for lane in lanes:
        apart = (*apart, _with_another(lane, apart) if lane in apart else lane)
    return apart


def _with_another(config: RunConfig, lanes: tuple[RunConfig, ...]) -> RunConfig:
    """The settings with the first placement of their family that no lane has, if there is one."""
    taken = {lane.scheme for lane in lanes}
    for scheme in places_of(config.family) or SCHEMES.keys():
        if scheme not in taken:
            with suppress(ConfigError):
                return config.replace(scheme=scheme)
    return config


def set_lane_count(page_duel: Duel, n: int) -> None:
    """Add lanes like the last one, with placements that are not on the page, or drop lanes from the end."""
    n = max(1, min(n, page_duel.most_lanes))
    lanes = page_duel.lanes[:n]
    while len(lanes) < n:
        lanes = (*lanes, _with_another(lanes[-1], lanes))
    page_duel.lanes = lanes
    page_duel.runs = (*page_duel.runs, *(None,) * MAX_LANES)[:n]
    page_duel.complain(None)
    _touch(page_duel)


def control(
    page_duel: Duel,
    backend: SharedBackend,
    action: Action,
    runs: tuple[int | None, ...] | None = None,
) -> None:
    """Send an action to every open run of this duel that the visitor may steer, or to those given. Who steers
    runs that began by themselves has asked for them."""
    page_duel.asked |= runs is None
    for run in (*page_duel.runs, *page_duel.extra) if runs is None else runs:
        if run is None or not (record := backend.store.run(run)) or not record.is_open:
            continue
        if visitor.steers(record):
            backend.store.control(run, action)


def leave(
    page_duel: Duel,
    backend: SharedBackend,
    runs: tuple[int | None, ...],
    action: Literal["stop", "pause"] = "stop",
) -> None:
    """Stop or pause the given runs that this visitor started. Others' runs, opened by a link, go on.

    On a shared server a run also goes on while another page shows it.
    """
    here, mine = visitor.session(), page_duel.mine
    gone = (run for run in runs if run in mine and not backend.watchers.others(here, run))
    control(page_duel, backend, action, tuple(gone))


def leave_duel(page_duel: Duel, backend: SharedBackend) -> None:
    """Put all runs aside that this visitor started in this duel, before another duel is shown."""
    put_aside(page_duel, backend, (*page_duel.runs, *page_duel.extra))
    page_duel.extra = frozenset()


def _leave_for(page_duel: Duel, backend: SharedBackend, lanes: tuple[RunConfig, ...]) -> None:
    """Put the runs aside whose settings a duel of these lanes does not have, before it is shown."""
    runs = [run for n in (*page_duel.runs, *page_duel.extra) if n and (run := backend.store.run(n))]
    put_aside(page_duel, backend, [run.id for run in runs if run.config not in lanes])


def put_aside(page_duel: Duel, backend: SharedBackend, runs: Sequence[int | None]) -> None:
    """Stop the given runs that this visitor started; pause them where one has trained for long, so that the
    visitor can go on with them. Those that were put aside before stop."""
    mine = tuple(run for run in runs if run is not None and run in page_duel.mine)
    if not trained_long(mine, backend):
        leave(page_duel, backend, mine)
        return
    end_left(page_duel, backend)
    page_duel.left = Left(page_duel.lanes, page_duel.seeds, mine)
    leave(page_duel, backend, mine, "pause")


def end_left(page_duel: Duel, backend: SharedBackend) -> None:
    """Stop the runs that were put aside."""
    if page_duel.left is not None:
        leave(page_duel, backend, page_duel.left.runs)
    page_duel.left = None


def go_back(page_duel: Duel, backend: SharedBackend) -> None:
    """Show the duel that was put aside, and let its runs go on."""
    if (left := page_duel.left) is None:
        return
    page_duel.left = None
    _leave_for(page_duel, backend, left.lanes)
    page_duel.become(_of(left.lanes, start="follow", probe=page_duel.probe, asked=True))
    page_duel.seeds, page_duel.extra = left.seeds, frozenset(left.runs)
    control(page_duel, backend, "resume", left.runs)


def trained_long(runs: Sequence[int], backend: SharedBackend) -> list[tuple[Run, int]]:
    """Those of the runs that are open and have trained for some seconds, with their last steps."""
    opened = [run for number in runs if (run := backend.store.run(number)) and run.is_open]
    return [
        (run, int(steps[-1]))
        for run in opened
        if time.time() - (run.began or time.time()) >= LONG_SECONDS
        and len(steps := backend.frames.steps(run).step)
    ]
