"""The lanes: the settings of each, the stored run that it shows, and its verdict. One row for each lane."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz.catalog import INITS, NORMS, PLACEMENTS, QK_NORMS, SCHEMES
from normviz.catalog.families import places_of
from normviz.charts import LaneStyle, lane_styles
from normviz.config import SETTINGS, ConfigError, RunConfig, seeded, seeds_of
from normviz.formats import listed
from normviz.lessons.anatomy.large import large
from normviz.lessons.presets import QUICK
from normviz.links import FIELDS, differences, shown
from normviz.runs import Recording, Run
from normviz.runs import lane as run_lane
from normviz.runs.headline import chip
from normviz.runs.names import lane_name
from normviz.runs.recording import of_seeds
from normviz.runs.verdict import Verdict

from ...session import duel, training
from ...session.backend import SharedBackend, known
from ...session.duel import EARLIER, Drawn, Duel
from ...session.markdown import literal
from ...session.page_state import chosen
from ...widgets import badge, placement, placement_list
from . import complaint, own_placement
from .values import taken

SAID = 2
"""Settings that differ and are named; more are counted."""


Lane = run_lane.Lane[RunConfig]
"""A lane of the page. The run that it shows may be of earlier settings."""


def current(page_duel: duel.Duel, backend: SharedBackend) -> list[Lane]:
    """The lanes with their runs. Settings with a stored result show it at once."""
    pairs, is_found = list[tuple[RunConfig, Run | None]](), False
    runs = duel.catch_up(page_duel, backend)
    for config, run in zip(page_duel.lanes, runs, strict=True):
        if run is None or (run.config != config and not run.is_open):
            stored = known(config, backend)
            # A run that ended early is shown only if the lane has no run yet.
            if stored is not None and (run is None or stored.is_done or stored.is_open):
                run, is_found = stored, True
        pairs.append((config, run))
    if is_found:
        page_duel.runs = tuple(run.id if run else None for _, run in pairs)
        duel.catch_up(page_duel, backend)
    return [
        Lane(
            lane_name(letter, config, page_duel.lanes),
            config,
            tuple(map(backend.frames.recording, _shown(run, page_duel.seeds, backend))),
            _earlier(run, config),
        )
        for letter, (config, run) in zip(run_lane.LETTERS, pairs, strict=False)
    ]


def runs(lanes: list[Lane]) -> list[Recording]:
    """All runs that the lanes show, with their repeats."""
    return [run for lane in lanes for run in lane.recordings]


def all_done(lanes: list[Lane]) -> bool:
    """Whether every lane shows the finished run of its present settings."""
    return all(lane.is_done and lane.is_current for lane in lanes)


def _shown(run: Run | None, seeds: int, backend: SharedBackend) -> tuple[Run, ...]:
    """The runs that a lane shows: its own, and those from the next seeds as far as they are stored."""
    if run is None:
        return ()
    try:
        configs = seeded(run.trained, seeds)[1:]
    except ConfigError:
        return (run,)  # the largest seed has no next one
    seed_runs = [known(config, backend) for config in configs]
    return (
        run,
        *(
            repeat
            for repeat in seed_runs
            if repeat is not None and (repeat.is_done or repeat.is_open)
        ),
    )


def _earlier(run: Run | None, config: RunConfig) -> str:
    """The run's settings that differ from the lane's, as in "depth 12"; else empty."""
    if run is None or run.config == config:
        return ""
    changes = differences(run.trained, config)
    titles = {name: SETTINGS[name].title for name in changes}
    words = [f"{titles[name]} {value}" for name, (_, value) in changes.items()]
    more = f" and {len(words) - SAID} more" if len(words) > SAID else ""
    return f"{', '.join(words[:SAID])}{more}"[:EARLIER]


def show(
    lanes: list[Lane], backend: SharedBackend, train: own_placement.Train, beside: Run | None = None
) -> None:
    """The block of each lane as a picture; below it name, placement and verdict. Its name opens all its
    settings. `train` starts all lanes."""
    shown = list(zip(lanes, styles(lanes, beside), strict=False))
    with st.container(key=f"lanes_{len(lanes)}", gap="xxsmall"):
        _pictures([(lane, style.color) for lane, style in shown])
        for lane, style in shown:
            with st.container(key=f"card_{lane.index}", gap="xxsmall"):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    mark(name(lane), None, lane.config.depth, style.color)
                    _settings(lane, lanes, style.color, backend, train)
                    _verdict(lane)
                _placement(lane.index, lane.config, backend)
                complaint.under(f"lane{lane.index}_scheme")
                _notes(lane)
    _few_records(lanes)


def _pictures(lanes: list[tuple[Lane, str]]) -> None:
    """The block of each lane, in its colour. Its norms move where the placement has changed."""
    page_duel = duel.duel()
    last = dict(enumerate(page_duel.drawn))
    drawn = [
        last.get(i, Drawn("", 0)).next(lane.config.scheme, lane.config.depth)
        for i, (lane, _) in enumerate(lanes)
    ]
    page_duel.drawn = tuple(drawn)
    dark = st.context.theme.type == "dark"
    figures = "".join(
        f"<figure>{large(lane.config, color, now.before, dark)}</figure>"
        for (lane, color), now in zip(lanes, drawn, strict=True)
    )
    st.html(f'<div class="blocks">{figures}</div>')


def verdicts(lanes: list[Lane], secret: bool = False, beside: Run | None = None) -> None:
    """Glyph, name and verdict of each lane, in a row; `secret` without verdicts."""
    with st.container(horizontal=True, gap="medium", key=f"verdicts_{len(lanes)}"):
        for lane, style in zip(lanes, styles(lanes, beside), strict=False):
            with st.container(
                horizontal=True, vertical_alignment="center", width="content", gap="small",
                key=f"card_{lane.index}",
            ):  # fmt: skip
                mark(name(lane), lane.config.scheme, lane.config.depth, style.color)
                _verdict(lane, secret)


def name(lane: Lane) -> str:
    """ "B Post-LN, warm-up 200": the lane's name among all lanes."""
    return " ".join(lane.name.split())


def styles(lanes: list[Lane], beside: Run | None = None) -> tuple[LaneStyle, ...]:
    """The style of each lane, and at last that of an observed run beside them."""
    schemes = [lane.config.scheme for lane in lanes] + ([beside.config.scheme] if beside else [])
    return lane_styles(tuple(schemes))


def mark(named: str, scheme: str | None, depth: int, color: str) -> None:
    """A lane's colour, the glyph of its block where its placement is known, and its name."""
    drawn = "" if scheme is None else placement_list.drawing(scheme, depth, color)
    glyph = f'<img class="glyph" alt="" src="{drawn}">' if drawn else ""
    st.html(
        f'<h2 class="lane-name" style="border-color:{color}">{glyph}<span>{escape(named)}</span></h2>',
        width="content",
    )


def _verdict(lane: Lane, secret: bool = False) -> None:
    verdict = Verdict("secret", "waits for your guess") if secret else chip(lane)
    several = lane.repeats and lane.is_current and not secret
    seed = f"{seeds_of(lane.config)}: " if several else ""
    badge.verdict(verdict.kind, f"{seed}{verdict.sentence}")
    if several:
        st.badge(literal(_all_seeds(lane)), color="gray")


def _all_seeds(lane: Lane) -> str:
    """The verdicts of all seeds shown, in words."""
    return of_seeds([run for run in lane.repeats if run.is_done], duel.duel().seeds)


def _notes(lane: Lane) -> None:
    """What a reader of the lane has to know beside its verdict."""
    if warning := placement.about_norm(lane.config):
        st.caption(f":material/warning: :orange[{warning}]")


def _few_records(lanes: list[Lane]) -> None:
    """At which steps the layers were recorded, of lanes that have few: the runs of maps and claims."""
    names: dict[tuple[str, ...], list[str]] = {}
    for lane in lanes:
        if lane.run is not None and lane.run.is_coarse and lane.is_current:
            steps = lane.run.steps
            if 0 < len(steps.layer_steps) < len(steps):
                names.setdefault(tuple(map(str, steps.layer_steps)), []).append(lane.letter)
    if names:
        sentence = "; ".join(f"{listed(of)}: {listed(steps)}" for steps, of in names.items())
        st.caption(
            f"The layers were recorded at few steps ({sentence}). Press Train to record many more."
        )


def _settings(
    lane: Lane, lanes: list[Lane], color: str, backend: SharedBackend, train: own_placement.Train
) -> None:
    """A popover with the lane's name: all its own settings, and every placement. They are rendered once it is
    open."""
    page_duel, i, config, key = duel.duel(), lane.index, lane.config, f"lane{lane.index}_open"
    if st.session_state.get(key):  # with another label Streamlit takes it for another one, and shut
        st.session_state[key] = True
    popover = st.popover(
        f"{literal(own_placement.short(name(lane)))} :gray[settings]", key=key, on_change="rerun",
        width="content",
        help=f"Placement, norm and any other setting of lane {lane.letter}",
    )  # fmt: skip
    if not popover.open:  # a selectbox that the browser mounts later would send its default
        return
    with popover, st.container(key=f"lane{i}_sheet", width=720):
        _compared(lane, lanes[0])
        own_placement.show(i, config, color, backend, train)
        with st.container(
            key=f"lane{i}_norms", horizontal=True, vertical_alignment="bottom", gap="small"
        ):
            _pick("norm", "Norm", i, config.norm, NORMS, backend)
            _pick("init", "Initialisation", i, config.init, INITS, backend)
            _pick("qk_norm", "QK-norm", i, config.qk_norm, QK_NORMS, backend)
        complaint.under(f"lane{i}_norm", f"lane{i}_init", f"lane{i}_qk_norm")
        with st.container(key=f"lane{i}_rest"):
            _own(lane, backend)
        st.session_state[f"lane{i}_any_scheme"] = None  # the lane's name shows the choice
        every = places_of(config.family) or SCHEMES.keys()
        st.selectbox(
            f"Placement: search all {len(every)}", every, index=None,
            key=f"lane{i}_any_scheme", placeholder="Type a name",
            format_func=lambda key: f"{PLACEMENTS.label(key)} ({PLACEMENTS[key].family})",
            on_change=taken(_set_scheme), args=(page_duel, backend, i),
        )  # fmt: skip
        placement_list.show(
            f"lane{i}", config.scheme, config.depth, color, _choose, page_duel, backend, i, among=every,
        )  # fmt: skip


def _compared(lane: Lane, first: Lane) -> None:
    """In which settings the lane differs from the first one."""
    if lane is first:
        st.caption("The other lanes are compared with this one.")
    elif changes := differences(lane.config, first.config):
        words = "; ".join(f"{SETTINGS[name].title}: {a} → {b}" for name, (a, b) in changes.items())
        st.caption(f"Compared with A: {words}")
    else:
        st.caption("Same settings as A")


def _choose(scheme: str, page_duel: Duel, backend: SharedBackend, lane: int) -> None:
    """Set a placement of the list, and close it."""
    duel.change(page_duel, "scheme", scheme, lane)
    training.by_itself(page_duel, backend)
    st.session_state[f"lane{lane}_open"] = False


def spoken(lanes: list[Lane]) -> str:
    """Each lane's name and verdict, as a screen reader says them when a run has ended."""
    return "; ".join(f"{name(lane)}: {chip(lane).sentence}" for lane in lanes)


def _placement(i: int, config: RunConfig, backend: SharedBackend) -> None:
    """A segmented control of the quick placements, and of the chosen one if it is another."""
    value, usual = config.scheme, places_of(config.family) or QUICK
    page_duel, key = duel.duel(), f"lane{i}_scheme"
    duel.show(page_duel, key, value)
    st.segmented_control(
        f"Placement of lane {run_lane.LETTERS[i]}",
        (*usual, *own_placement.entries(value, usual)), key=key, format_func=own_placement.entry,
        required=True, on_change=taken(_set), args=(page_duel, backend, "scheme", i),
        label_visibility="collapsed", width="content",
    )  # fmt: skip


def _set_scheme(page_duel: Duel, backend: SharedBackend, lane: int) -> None:
    if scheme := chosen(f"lane{lane}_any_scheme"):
        _choose(scheme, page_duel, backend, lane)


def _pick(field, label, i, value, registry, backend: SharedBackend) -> None:
    page_duel, key = duel.duel(), f"lane{i}_{field}"
    duel.show(page_duel, key, value)
    st.selectbox(
        label, registry.keys(), key=key, format_func=registry.label, on_change=taken(_set),
        args=(page_duel, backend, field, i), width=200,
    )  # fmt: skip


def _set(page_duel: Duel, backend: SharedBackend, field: str, lane: int) -> None:
    key = f"lane{lane}_{field}"
    if chosen(key) == own_placement.ENTRY:
        return own_placement.open_slots(lane)
    duel.change(page_duel, field, chosen(key), lane, key)
    training.by_itself(page_duel, backend)


def _own(lane: Lane, backend: SharedBackend) -> None:
    """Any other setting of this lane, or of all lanes."""
    i = lane.index
    names = [
        name for name in FIELDS if name not in ("scheme", "norm", "init", "qk_norm", "lr_edits")
    ]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        field = st.selectbox(
            f"Setting of lane {lane.letter}", names, index=names.index("warmup"), width=210,
            key=f"lane{i}_own", format_func=lambda name: SETTINGS[name].title,
        )  # fmt: skip
        st.text_input(
            f"Value (now {shown(field, getattr(lane.config, field))})", key=f"lane{i}_value",
            on_change=taken(_set_own), args=(duel.duel(), backend, i),
            placeholder="as in a link: 100, 0.01, torch, off",
        )  # fmt: skip
        st.checkbox("Apply to all lanes", key=f"lane{i}_all")
    complaint.under(f"lane{i}_value")


def _set_own(page_duel: Duel, backend: SharedBackend, lane: int) -> None:
    key = f"lane{lane}_value"
    if value := chosen(key).strip():
        everywhere = chosen(f"lane{lane}_all")
        duel.change(page_duel, chosen(f"lane{lane}_own"), value, None if everywhere else lane, key)
        training.by_itself(page_duel, backend)
        if not page_duel.complaint:  # else it stays there to be corrected
            st.session_state[key] = ""
