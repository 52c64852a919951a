"""The duel: up to four transformers that differ only in the settings that the visitor chose."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from normviz.catalog import CELLS, INITS, NORMS, SCHEMES, WORDS
from normviz.catalog.families import places_of
from normviz.catalog.scheme import Scheme
from normviz.config import SETTINGS, RunConfig
from normviz.formats import listed
from normviz.lessons.anatomy.apart import beside as beside_norms
from normviz.lessons.anatomy.apart import moved
from normviz.lessons.anatomy.large import in_family
from normviz.links import differences
from normviz.observed import label
from normviz.runs import Run
from normviz.runs.headline import headline
from normviz.runs.store import pictures

from ...session import address, duel, presence, visitor
from ...session.backend import SharedBackend, shared
from ...session.markdown import literal
from ...session.pages import tab_title
from ...widgets import glossary, link_notices, page_foot
from . import (
    beside,
    charts_panel,
    gallery,
    knobs,
    outcome,
    share,
    tour,
    transport,
    values,
)
from . import lanes as page_lanes

SHEET = '<details class="sheet"{}><summary aria-label="Settings">Settings</summary></details>'
"""Opens the settings on a phone: the rules are in `style.css`, so that it opens without the server."""


def page() -> None:
    """The page, from top to bottom."""
    backend = shared()
    page_duel = duel.duel()
    by_link = duel.arrive(page_duel, backend)
    lanes = page_lanes.current(page_duel, backend)
    st.set_page_config(tab_title(share.title(lanes)))
    shown = page_lanes.runs(lanes)
    presence.runs(shown)
    if by_link:
        link_notices.keep(shown, backend)
        page_duel.notices += link_notices.gone(
            [lane.config for lane in lanes if lane.run is None], backend
        )
    if page_lanes.all_done(lanes) and not page_duel.waits:
        pictures.ask(backend.store, [lane.run.id for lane in lanes if lane.run], visitor.me())
    _name(page_duel, lanes)
    seen = beside.current(page_duel, backend)
    if st.context.is_embedded:
        return _embedded(page_duel, lanes, backend, seen)
    waits, guided = page_duel.waits, page_duel.step is not None
    has_rail = not _is_enlarged() and not guided
    page_foot.announce("" if waits else page_lanes.spoken(lanes))
    if not page_duel.story:
        _head(lanes, backend)
    link_notices.show(
        page_duel,
        "Below is the duel that this page opens with.",
        duel.open_link,
        page_duel,
        backend,
    )
    transport.show_left(backend)
    tour.show(lanes, backend)
    if guided:
        page_lanes.verdicts(lanes, secret=waits)
    else:
        page_lanes.show(lanes, backend, transport.train, seen)
        glossary.caption(
            f"{_placements(lanes)} {_start(lanes)} "
            f'<span class="same">{literal(_difference(lanes, seen))}</span>'
        )
        beside.show(seen, lanes, backend)
    with st.container(key="body" if has_rail else "body_guided" if guided else "body_wide"):
        left, right = st.columns([1, 3], gap="medium")
        if has_rail:
            with left:
                transport.show(lanes, backend)
                st.html(SHEET.format(" open" if tour.opens_settings(page_duel) else ""))
                with st.container(key="knobs"):
                    knobs.show(lanes, backend)
        with right, st.container(key="charts"):
            if not has_rail and not guided:
                transport.show(lanes, backend)
            _charts(page_duel, lanes, backend, seen)
    values.mark()


def _charts(
    page_duel: duel.Duel, lanes: list[page_lanes.Lane], backend: SharedBackend, seen: Run | None
) -> None:
    """The charts, what came out, and what to do with it."""
    if page_duel.waits:
        st.info("The charts wait for your guess.")
    else:
        charts_panel.show(lanes, backend, seen)
        outcome.show(lanes, backend)
        glossary.line(
            "loss", "nat", "chance", "floor", "stream", "gradient", "rms", "warmup", "seed"
        )
    if not page_duel.story:
        gallery.tries(backend)
    share.show([lane.without_numbers for lane in lanes], backend, seen)
    charts_panel.show_explanation(lanes, seen)


def _is_enlarged() -> bool:
    """Whether the page is for a projector. If so, the style sheet is told."""
    if address.presents():
        st.html('<i class="present"></i>')
    return address.presents()


def _name(page_duel: duel.Duel, lanes: list[page_lanes.Lane]) -> None:
    """Name the duel in the address once its results are shown, or it was asked for. A reload and Back lead to
    what is named."""
    if page_duel.asked or page_lanes.all_done(lanes):
        if page_duel.named != page_duel.shown and not st.session_state["arrived"]:
            address.add(page_duel.params())
        page_duel.named = page_duel.shown
    if page_duel.named and not (page_duel.link and page_duel.link.problems):
        address.show(page_duel.params(page_duel.named))


def _head(lanes: list[page_lanes.Lane], backend: SharedBackend) -> None:
    """The headline, and the ways to other duels."""
    with st.container(key="head", horizontal=True, vertical_alignment="center"):
        st.markdown(f"# {literal(headline(lanes))}.", width="stretch")
        with st.container(key="ways_in", horizontal=True, gap="xsmall", width="content"):
            tour.invite(backend)
            gallery.presets(backend)


def _placements(lanes: list[page_lanes.Lane]) -> str:
    """What each placement does, in one sentence; empty where none of them has a norm."""
    keys = dict.fromkeys(
        lane.config.scheme
        for lane in lanes
        if places_of(lane.config.family) is None and lane.config.norm != "none"
    )
    depths = {lane.config.depth for lane in lanes}
    more = beside_norms([*keys], min(depths)) if len(depths) == 1 and keys else [[] for _ in keys]
    words, said = list[str](), list[str]()
    for key, traits in zip(keys, more, strict=True):
        if what := listed([*filter(None, (SCHEMES[key].in_a_sublayer,)), *traits] or [""]):
            words.append(f"{_word(SCHEMES[key])} {'too' if what in said else what}")
            said.append(what)
    sentence = in_family(lanes[0].config, "; ".join(words)).replace("branch", "[[branch]]", 1)
    return f"{sentence}." if words else ""


def _word(scheme: Scheme) -> str:
    """Its name, which opens its sentence where the glossary has one."""
    return f"[[{scheme.key}|{scheme.label}]]" if scheme.key in WORDS else literal(scheme.label)


def _embedded(
    page_duel: duel.Duel, lanes: list[page_lanes.Lane], backend: SharedBackend, seen: Run | None
) -> None:
    """The page in another site's frame (`?embed=true`): verdicts, charts and a link to NormViz.

    A link that can't be opened shows no charts: a reader would take the default duel for the linked one.
    """
    link_notices.show(
        page_duel,
        "No charts are shown: they would be of another duel.",
        duel.open_link,
        page_duel,
        backend,
    )
    if page_duel.link and page_duel.link.problems:
        return
    page_lanes.verdicts(lanes, beside=seen)
    beside.show(seen, lanes, backend)
    charts_panel.show(lanes, backend, seen)
    st.link_button("Open in NormViz", share.url(), icon=":material/open_in_new:")


def _difference(lanes: list[page_lanes.Lane], seen: Run | None) -> str:
    """A sentence on what the lanes have in common, true of the curves on the page."""
    first = lanes[0].config
    if any(lane.earlier for lane in lanes):
        return "Some curves show earlier settings: press Train."
    fields = {name for lane in lanes for name in differences(lane.config, first)}
    if fields == {"scheme"}:
        return f"Same data and seed. {_moved([lane.config for lane in lanes])}".strip()
    if len(lanes) == 1 and seen is not None:
        return f"Beside it {label(seen.config)}, which was observed."
    if len(lanes) == 1:
        return "Add a second lane to compare it with another placement."
    if not fields:
        return "All lanes have the same settings: choose another placement in one of them."
    named = [setting.title for name, setting in SETTINGS.items() if name in fields]
    return f"The same except for: {', '.join(named)}."


def _moved(configs: Sequence[RunConfig]) -> str:
    """What the lanes' placements differ in."""
    first, keys = configs[0], [config.scheme for config in configs]
    if first.scheme in CELLS:
        return "Only the norms differ."
    if first.norm != "none" and any(beside_norms(keys, first.depth)):
        return ""  # they are named before
    said = moved(keys, first.depth)
    if first.norm == "none" and said.startswith("Only") and not any(SCHEMES[k].norm for k in keys):
        return "The norm is none: no lane has one."
    return said


def _start(lanes: list[page_lanes.Lane]) -> str:
    """The norm where it is not the usual one, and the initialisation, where all lanes have the same: a lane's
    name says another one."""
    norms, inits = {lane.config.norm for lane in lanes}, {lane.config.init for lane in lanes}
    is_told = norms != {RunConfig().norm} and any(lane.config.scheme != "none" for lane in lanes)
    norm = f"Norm: {literal(NORMS.label(norms.pop()))}. " if is_told and len(norms) == 1 else ""
    return norm + (f"[[init|{INITS.label(inits.pop())} init]]." if len(inits) == 1 else "")
