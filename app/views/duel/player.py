"""The player of the duel's lanes, and what it says back."""

from __future__ import annotations

from functools import partial

import streamlit as st

from normviz.catalog import PROBES
from normviz.lessons.tour import STEPS
from normviz.player import VIEWS
from normviz.runs import Run, names

from ...session import duel
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...session.page_state import chosen
from ...session.progress import signature
from ...widgets import player, shortcuts
from . import share
from .lanes import Lane, runs


def show(lanes: list[Lane], backend: SharedBackend, beside: Run | None = None) -> None:
    """The charts of the lanes that have a run, and of an observed run beside them."""
    page_duel = duel.duel()
    more = [beside] if beside else []
    shown = [*(lane.run for lane in lanes if lane.run), *runs(lanes)]
    every = {run.id: run for run in shown}.values()
    what = {
        "topic": {
            "runs": [run.id if run else None for run in [*(lane.run for lane in lanes), *more]],
            "repeats": [[run.id for run in lane.repeats] for lane in lanes] + [[] for _ in more],
            "probe": page_duel.probe,
            "view": page_duel.view,
            "dark": st.context.theme.type == "dark",
            "earlier": [lane.earlier for lane in lanes] + ["" for _ in more],
        },
        "start": page_duel.start,
        "begins": page_duel.start == "follow"
        and page_duel.nonce > 0
        and any(run.is_open for run in every),
        "cursor": page_duel.cursor,
        "name": names.file_name(share.settings(lanes, beside)),
        "caption": share.caption(lanes, beside),
        "park": STEPS[page_duel.story - 1].at if page_duel.story else None,
        "tab": "layers" if page_duel.story else "time" if page_duel.view != "heat" else "loss",
        "nonce": page_duel.nonce,
        "signature": signature(backend.frames, [*every, *more]),
        "shortcuts": shortcuts.are_on(),
    }
    player.show("player", what, partial(_probe, page_duel), partial(_view, page_duel))


# Anybody may send anything: what no player of ours says changes nothing.
def _probe(page_duel: Duel) -> None:
    probe = chosen("player").get("probe")
    if probe in PROBES.keys():  # noqa: SIM118 (a registry)
        page_duel.probe = probe


def _view(page_duel: Duel) -> None:
    view = chosen("player").get("view")
    if view in VIEWS:
        page_duel.view = view
