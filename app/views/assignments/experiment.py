"""An experiment: predictions, then the runs, then what was predicted beside what was measured, an answer in
words, and the file to hand in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import streamlit as st

from normviz.catalog import SCHEMES
from normviz.config import RunConfig, estimated_seconds
from normviz.formats import duration
from normviz.homework import hand_in
from normviz.lessons.assignments import OUTCOMES, RULE, Experiment, outcome, title
from normviz.links import as_params
from normviz.runs import Recording
from normviz.runs.store.cells import OpenCells
from normviz.studies.maps.drive import stored

from ...session.backend import SharedBackend, shared
from ...session.markdown import literal
from ...session.page_state import PageState, chosen
from ...session.policy import policy
from ...widgets import cells, glossary, page_links
from ...widgets.buttons import button, submit
from ...widgets.download import download
from ...widgets.polling import poll

STATE = "assignment_work"


@dataclass
class Work(PageState):
    """One visitor's work on an experiment: what was predicted of each run, and what was typed."""

    predictions: dict[str, str] = field(default_factory=dict)
    student: str = ""
    answer: str = ""


def show(experiment: Experiment) -> None:
    """The experiment, from top to bottom."""
    work = st.session_state.setdefault(STATE, {}).setdefault(experiment.key, Work())
    backend = shared()
    lanes = experiment.lanes
    st.markdown(literal(experiment.task.format(*lanes.values())))
    st.caption(experiment.credit)
    glossary.line("norm", "pre", "post", "rate", "loss", "chance", "floor", "diverged", "seed")
    st.markdown("## 1. Predict")
    st.markdown(RULE)
    if not work.predictions:
        _ask(experiment, work)
        return
    st.markdown("Your predictions stand below, beside what is measured.")
    st.markdown("## 2. Train")
    opened = cells.opened(_keys(lanes), backend)
    _actions(lanes, opened, work, backend)
    poll(_tick, cells.TICK_SECONDS, opened is not None, lanes, work, backend)
    if len(runs := _runs(lanes, backend)) == len(lanes):
        _explain(experiment, work, runs)


def _ask(experiment: Experiment, work: Work) -> None:
    """The form of predictions."""
    with st.form("predictions", border=False):
        for group in experiment.groups():
            st.markdown(f"### {literal(SCHEMES.label(group[0].scheme))}")
            for lane in group:
                st.radio(
                    title(lane).partition(", ")[2].capitalize(), OUTCOMES, index=None, horizontal=True,
                    key=_key(experiment, lane), format_func=str.capitalize,
                )  # fmt: skip
        if work.complaint:
            st.error(work.complaint)
        submit("Keep my predictions, and train", _predict, experiment, work, type="primary",
               key="predict", icon=":material/play_arrow:")  # fmt: skip


def _key(experiment: Experiment, lane: RunConfig) -> str:
    return f"predict_{experiment.key}_{lane.scheme}_{lane.lr:g}"


def _predict(experiment: Experiment, work: Work) -> None:
    """Keep the predictions, and queue the runs."""
    said = {name: chosen(_key(experiment, lane)) for name, lane in experiment.lanes.items()}
    if missing := [name for name, word in said.items() if word is None]:
        work.complaint = f"Nothing is predicted of {missing[0]} yet: predict all {len(said)} runs."
        return
    work.changed()
    work.predictions = {name: str(word) for name, word in said.items()}
    _train(experiment.lanes, work)


# The runs.


def _runs(lanes: dict[str, RunConfig], backend: SharedBackend) -> dict[str, Recording]:
    """The runs that have ended, by their names."""
    ended = {name: stored(backend.store, config.key) for name, config in lanes.items()}
    return {name: backend.frames.recording(run) for name, run in ended.items() if run}


def _keys(lanes: dict[str, RunConfig]) -> list[str]:
    return [config.key for config in lanes.values()]


def _missing(lanes: dict[str, RunConfig], backend: SharedBackend) -> list[RunConfig]:
    return [config for config in lanes.values() if stored(backend.store, config.key) is None]


def _train(lanes: dict[str, RunConfig], work: Work) -> None:
    backend = shared()
    cells.ask(work, _missing(lanes, backend), "assignment", backend)


def _actions(
    lanes: dict[str, RunConfig], opened: OpenCells | None, work: Work, backend: SharedBackend
) -> None:
    """The button to train what is missing, or to stop."""
    if work.refused:
        st.error(literal(work.refused))
    cells.stop_button(opened, _keys(lanes), backend, "stop_assignment", "Train again")
    left = _missing(lanes, backend)
    if opened is None and left:
        seconds = sum(map(estimated_seconds, left)) / policy().cells_at_once
        button("Train", _train, lanes, work, type="primary", key="train_assignment",
               icon=":material/play_arrow:")  # fmt: skip
        st.caption(f"{len(left)} runs, about {duration(seconds)}.")


def _tick(lanes: dict[str, RunConfig], work: Work, backend: SharedBackend) -> bool:
    """How far the runs are, and what was predicted and measured; whether some are open."""
    keys = _keys(lanes)
    opened = cells.opened(keys, backend)  # before the results, so that none that ends now is missed
    runs = _runs(lanes, backend)
    if opened is not None:
        cells.progress(opened, len(lanes) - len(runs), len(lanes))
    cells.failures(keys, backend, "Train again")
    rows = ["| Run | You predicted | Measured |", "|---|---|---|"]
    for name, predicted in work.predictions.items():
        measured = "not trained yet"
        if (run := runs.get(name)) is not None:
            had = outcome(run)
            mark = "✓" if had == predicted else "✗"
            measured = f"{mark} **{had}** ({literal(run.verdict.sentence)})"
        rows.append(f"| {literal(name)} | {predicted} | {measured} |")
    st.markdown("\n".join(rows))
    return opened is not None


def _explain(experiment: Experiment, work: Work, runs: dict[str, Recording]) -> None:
    """The duels of the runs, the question, and the file to hand in."""
    right = sum(outcome(run) == work.predictions[name] for name, run in runs.items())
    st.markdown(
        f"**{right} of {len(runs)} predicted.** One seed each. Look at the runs in the duel:"
    )
    for group in experiment.groups():
        words = f"{SCHEMES.label(group[0].scheme)} at {len(group)} rates"
        page_links.to("duel", words, as_params(group), ":material/open_in_new:")
    st.markdown("## 3. Explain")
    work.answer = st.text_area(
        experiment.question, work.answer, key=f"answer_{experiment.key}", max_chars=4000, height=140
    )
    st.markdown("## 4. Hand in")
    work.student = st.text_input("Your name", work.student, key="student", max_chars=100)
    ready = bool(work.student.strip() and work.answer.strip())
    name = re.sub(r"\W+", "-", work.student).strip("-") or "name"
    download(
        "Download the file to hand in",
        lambda: hand_in(experiment, work.student, work.answer, work.predictions, runs),
        f"{experiment.key}-{name}.json", "application/json", ready=ready, key="hand_in",
        type="primary", icon=":material/download:",
    )  # fmt: skip
    st.caption(
        "It holds your name, predictions, answer, and the settings, seeds and results of the runs. "
        + ("" if ready else "Write an answer and your name first. ")
        + "Your teacher trains the runs again with `normviz homework FILE`."
    )
