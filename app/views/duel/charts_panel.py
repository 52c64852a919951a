"""The charts of the lanes' runs, or a sentence if no lane has a run yet; and the expander "Why".

"Why" shows the diagram, formula, gradient path and code of each lane's sublayers.
"""

from __future__ import annotations

import streamlit as st

from normviz.catalog import PLACEMENTS
from normviz.config import estimated_seconds
from normviz.lessons import anatomy
from normviz.lessons.anatomy.untrained import DEPTHS, NAMES
from normviz.lessons.tour import STEPS
from normviz.runs import Run, names
from normviz.runs.store.queue import refusal

from ...session import duel
from ...session.backend import SharedBackend
from ...session.markdown import capital, literal, source
from ...session.progress import signature
from ...widgets import page_links, placement, player, shortcuts
from ...widgets.buttons import button
from . import share, transport
from .lanes import Lane, runs, styles


def show(lanes: list[Lane], backend: SharedBackend, beside: Run | None = None) -> None:
    """The charts, with those of an observed run beside the lanes. Their numbers come through a WebSocket (see
    `numbers_socket`), without a script run."""
    with st.container(key="before"):
        if earlier := [lane for lane in lanes if lane.earlier]:
            _before(earlier, transport.is_busy(lanes), backend)
    with st.container(key="live"):
        if beside is not None or any(lane.run is not None for lane in lanes):
            _player(lanes, backend, beside)
        else:
            st.info(f"Nobody has run this yet on this server. {_what_now(lanes, backend)}.")


def _before(lanes: list[Lane], busy: bool, backend: SharedBackend) -> None:
    """A warning that curves show earlier settings, and a Train button, plain while something trains."""
    named = "; ".join(f"{lane.letter}: {lane.earlier}" for lane in lanes)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/history: **Faded curves show earlier settings** ({literal(named)}). Train "
            "replaces them.",
            width="stretch",
        )
        button(
            "Train", transport.train, duel.duel(), backend, key="train_before",
            type="secondary" if busy else "primary", icon=":material/play_arrow:",
        )  # fmt: skip


def _what_now(lanes: list[Lane], backend: SharedBackend) -> str:
    configs = [lane.config for lane in lanes]
    if why := refusal(backend.store, configs):
        return capital(why)
    return f"Press Train: about {sum(map(estimated_seconds, configs)):.0f} s"


def _player(lanes: list[Lane], backend: SharedBackend, beside: Run | None) -> None:
    """The player of the lanes that have a run, and of an observed run beside them, and what it says back."""
    page_duel = duel.duel()
    step = STEPS[page_duel.story - 1] if page_duel.story else None
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
        "asked": not page_duel.automatic,
        "cursor": page_duel.cursor,
        "name": names.file_name(share.settings(lanes, beside)),
        "caption": share.caption(lanes, beside),
        "park": step.at if step else None,
        "tab": step.tab if step else "time" if page_duel.view != "heat" else "loss",
        "nonce": page_duel.nonce,
        "signature": signature(backend.frames, [*every, *more]),
        "shortcuts": shortcuts.are_on(),
    }
    player.show("player", what, page_duel)


# The expander "Why".

WHY = "why"
"""Its key."""


def show_explanation(lanes: list[Lane], beside: Run | None = None) -> None:
    """One column for each lane, and a link to the anatomy, which would answer a guess. They are rendered once
    the part is open."""
    if duel.duel().waits:
        return
    why = st.expander(
        "Why: where the norm sits, and what a gradient passes on its way down",
        key=WHY, on_change="rerun",
    )  # fmt: skip
    if not why.open:
        return
    with why:
        columns = st.columns(len(lanes))
        for column, lane, style in zip(columns, lanes, styles(lanes, beside), strict=False):
            with column:
                _lane(lane, style.color)
        decoders = [lane for lane in lanes if lane.config.family == "decoder"]
        _more([lane for lane in decoders if lane.config.depth in DEPTHS][: len(NAMES)])


def _lane(lane: Lane, color: str) -> None:
    config = lane.config
    scheme = PLACEMENTS[config.scheme]
    st.markdown(f"**{lane.letter} {literal(scheme.label)}**")
    placement.diagram(config, color)
    placement.formulas(config)
    placement.gradients(config)
    placement.constants(config)
    with st.popover("PyTorch code"):
        st.code(anatomy.code(config, placement.VOCABULARY), language="python")
    ends = placement.ends(config)
    outside = f"Outside the blocks: {ends}." if ends else ""
    constraint = placement.constraint(config)
    st.caption(" ".join(filter(None, (scheme.sentence, outside, constraint, scheme.trouble))))
    st.caption(f"{placement.letters(config)} {source(scheme.source)}.")


def _more(lanes: list[Lane]) -> None:
    """A link to the anatomy of the first lanes whose depth the Catalogue page can show."""
    if lanes:
        named = " and ".join(
            f"{lane.letter} {PLACEMENTS.label(lane.config.scheme)}" for lane in lanes
        )
        page_links.anatomy(
            [lane.config for lane in lanes], f"{named}, measured before the first step"
        )
