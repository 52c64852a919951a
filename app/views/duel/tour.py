"""The tour's panel: says what to look at, asks for a guess, and shows the result."""

from __future__ import annotations

import re

import streamlit as st

from normviz.lessons.tour import STEPS, Question, Runs, TourStep

from ...session import duel
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...session.markdown import source
from ...widgets import page_links
from ...widgets.buttons import button
from .lanes import Lane

GREY_NOTE = ":small[:gray[{}]]"
PLAYED = "story_played"
"""The key of the number of the duel that was opened after the last step."""
STEP_NUMBER = re.compile(r"\bstep (\d+)\b")


def invite(backend: SharedBackend) -> None:
    """The button beside the title that starts the tour."""
    page_duel = duel.duel()
    if not page_duel.story:
        button(
            "Take the tour", go, page_duel, 1, backend, key="tour", type="primary", icon=":material/tour:",
            help=f"{len(STEPS)} short steps: each sets the duel and says what to look at",
        )  # fmt: skip


def show(lanes: list[Lane], backend: SharedBackend) -> None:
    """The panel of the open step."""
    page_duel = duel.duel()
    if not page_duel.story:
        return
    step, title = page_duel.step, STEPS[page_duel.story - 1].title
    with st.container(border=True, key="story"):
        with st.container(horizontal=True, vertical_alignment="center", key="story_head"):
            st.markdown(
                f"# **{title}** {GREY_NOTE.format(f'Tour, step {page_duel.story} of {len(STEPS)}')}",
                width="stretch",
            )
            _ways(page_duel, backend)
        with st.container(horizontal=True, vertical_alignment="center"):
            _contents(page_duel, backend)
            if page_duel.story == len(STEPS):
                _ways_on(page_duel, backend)
        if step is None:
            st.markdown("You changed the settings of this step, so its text may not fit.")
            button("Restore this step", go, page_duel, page_duel.story, backend, key="story_again")
            return
        if step.question is not None and page_duel.waits:
            _ask(page_duel, step.question)
            return
        look, out = st.columns([4, 5], gap="large")
        look.markdown(_with_links(step.where()))
        with out:
            _out(step, _finished(lanes), page_duel.guess)


def _contents(page_duel: Duel, backend: SharedBackend) -> None:
    """A dot for each step, named by its title, which opens it. That of the open step is filled."""
    with st.container(horizontal=True, gap=None, key="story_contents", width="content"):
        for number, step in enumerate(STEPS, start=1):
            here = number == page_duel.story
            button(
                f"Step {number}: {step.title}", go, page_duel, number, backend, key=f"story_dot_{number}",
                type="primary" if here else "secondary", help=step.title,
            )  # fmt: skip


def _ways(page_duel: Duel, backend: SharedBackend) -> None:
    """The buttons Back, Next and Close, at one place in all steps: a click too many on Next does nothing."""
    number = page_duel.story
    button(
        "Back", go, page_duel, number - 1, backend, key="story_back", disabled=number == 1, shortcut="B",
        icon=":material/arrow_back:",
    )  # fmt: skip
    button(
        "Next", go, page_duel, number + 1, backend, key="story_next", type="primary", shortcut="N",
        disabled=number == len(STEPS), icon=":material/arrow_forward:",
    )  # fmt: skip
    button(
        "Close",
        close,
        page_duel,
        key="story_close",
        icon=":material/close:",
        help="Leave the tour here",
    )


def _ways_on(page_duel: Duel, backend: SharedBackend) -> None:
    """What to do after the last step; the first dot begins anew."""
    button("Now change a setting", play, page_duel, backend, key="story_play", type="primary",
           help="Opens the duel of Pre-LN and Post-LN, with its settings")  # fmt: skip
    st.page_link(page_links.at("claims"), label="See what papers claim")


def _ask(page_duel: Duel, question: Question) -> None:
    """The question, with a button for each choice."""
    st.markdown(f"**Your guess first.** {question.text}")
    with st.container(horizontal=True, gap="xsmall", key="story_choices"):
        for i, choice in enumerate(question.choices):
            button(choice, guess, page_duel, i, key=f"guess_{i}")
        button("Show me", guess, page_duel, -1, key="guess_none", type="tertiary")


def _out(step: TourStep, runs: Runs | None, taken: int | None) -> None:
    """Whether the guess was right, the result, and the sources."""
    if runs is None:
        st.caption("The result appears here once all lanes have a finished run.")
        return
    caption = step.caption(runs)
    if caption is None:
        st.markdown("On this machine the runs ended differently than this step expects.")
        return
    if step.question is not None and taken is not None:
        right = step.question.answer(runs)
        answer = f"**{step.question.choices[right]}.**"
        if taken >= 0:
            answer = f"{'Right' if taken == right else 'Not quite'}: {answer}"
        caption = f"{answer} {caption}"
    sources = "; ".join(source(words) for words in step.sources)
    st.markdown(_with_links(caption))
    note = GREY_NOTE.format(f"1 seed each. {sources}")
    st.markdown(f"**Why?** {_with_links(step.reason(runs))} {note}")


def _with_links(words: str) -> str:
    """The words with each step's number as a link that sets the charts' cursor."""
    return STEP_NUMBER.sub(r"[\g<0>](#step-\g<1>)", words)


def _finished(lanes: list[Lane]) -> Runs | None:
    """The lanes' finished runs; None while one is missing."""
    runs = tuple(lane.recording for lane in lanes if lane.is_current and lane.is_done)
    return runs if len(runs) == len(lanes) else None


def go(page_duel: Duel, number: int, backend: SharedBackend) -> None:
    """Open a step. The runs that this visitor started in the present duel are put aside."""
    duel.leave_duel(page_duel, backend)
    duel.open_step(page_duel, number)


def guess(page_duel: Duel, choice: int) -> None:
    """Store the visitor's guess (-1: none) and start the replay."""
    page_duel.guess = choice
    page_duel.restart("replay")


def play(page_duel: Duel, backend: SharedBackend) -> None:
    """Leave the tour for the duel that the page opens with, whose settings are at hand."""
    duel.leave_duel(page_duel, backend)
    duel.reset(page_duel)
    st.session_state[PLAYED] = page_duel.number


def opens_settings(page_duel: Duel) -> bool:
    """Whether the duel was opened after the last step: on a phone its settings are then open."""
    return st.session_state.get(PLAYED) == page_duel.number


def close(page_duel: Duel) -> None:
    """Leave the tour, but keep its duel."""
    page_duel.story, page_duel.guess = 0, None
