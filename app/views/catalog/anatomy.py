"""The anatomy of one or two placements: what they are, and what they do before the first step."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from normviz.catalog import INITS, NORMS, QK_NORMS, SCHEMES
from normviz.catalog.models import differences
from normviz.catalog.registry import Registry
from normviz.catalog.scheme import Scheme
from normviz.charts import lane_styles
from normviz.config import ConfigError, RunConfig
from normviz.lessons import anatomy
from normviz.lessons.anatomy.untrained import DEPTHS, NAMES
from normviz.runs import Run
from normviz.runs.names import in_file

from ...session.backend import shared
from ...session.markdown import capital, literal, source
from ...session.page_state import chosen
from ...widgets import glossary, page_links, placement
from . import measured, state
from .state import Anatomy

TWIN = "its formula, written a second time in the tests (there is no public implementation)"


def show(page_anatomy: Anatomy, runs: list[Run]) -> None:
    """The controls, and the anatomy of the chosen placements. `runs` measure them."""
    _controls(page_anatomy)
    left, right = st.columns([len(page_anatomy.lanes), 1], gap="medium")
    with right:
        charts = st.container(key="charts")
    with left, st.container(key="anatomy"):
        styles = lane_styles(tuple(lane.scheme for lane in page_anatomy.lanes))
        for column, name, config, style in zip(
            _columns(page_anatomy), NAMES, page_anatomy.lanes, styles, strict=False
        ):
            with column:
                placement.heading(name, config.scheme, style.color)
                placement.diagram(config, style.color)
                st.markdown(literal(SCHEMES[config.scheme].sentence))
        for part in (_formulas, _facts):  # row by row, so that both columns align
            for column, name, config in zip(
                _columns(page_anatomy), NAMES, page_anatomy.lanes, strict=False
            ):
                with column:
                    part(name, config)
    for column, name, config in zip(
        _columns(page_anatomy), NAMES, page_anatomy.lanes, strict=False
    ):
        with column:
            _code(name, config)
    with charts:  # last: by now the workers have usually finished
        measured.show(page_anatomy, runs)


def _columns(page_anatomy: Anatomy) -> list[DeltaGenerator]:
    return st.columns(len(page_anatomy.lanes), gap="medium", vertical_alignment="top")


def _controls(page_anatomy: Anatomy) -> None:
    """The widgets: two placements, and the settings that they share."""
    with st.container(key="anatomy_controls"):
        first, second, norm, init, qk_norm, depth = st.columns([2, 2, 1.5, 1.5, 1.5, 2.5])
        with first:
            _pick("Placement A", "scheme", page_anatomy.lanes[0].scheme, SCHEMES, 0)
        with second:
            _second(page_anatomy.lanes)
        for column, title, field, registry in (
            (norm, "Norm", "norm", NORMS),
            (init, "Initialisation", "init", INITS),
            (qk_norm, "QK-norm", "qk_norm", QK_NORMS),
        ):
            with column:
                value = getattr(page_anatomy.lanes[0], field)
                _pick(_title(title, field, page_anatomy), field, value, registry)
        with depth:
            st.session_state["anatomy_depth"] = page_anatomy.lanes[0].depth
            st.slider(
                _title("Depth (blocks)", "depth", page_anatomy), int(DEPTHS.low), int(DEPTHS.high),
                key="anatomy_depth", on_change=_take, args=("depth", None),
            )  # fmt: skip
    _train(page_anatomy)
    if page_anatomy.complaint:
        st.error(literal(capital(page_anatomy.complaint)))
    for warning in dict.fromkeys(placement.about_norm(lane) for lane in page_anatomy.lanes):
        if warning:
            st.caption(f":material/warning: :orange[{literal(warning)}]")


def _train(page_anatomy: Anatomy) -> None:
    """The button that opens these placements in the duel."""
    alone = f"Train this one beside {SCHEMES.label(state.peer(page_anatomy))}"
    if st.button(
        alone if len(page_anatomy.lanes) == 1 else "Train these two", key="train_these",
        icon=":material/arrow_forward:",
        help="Opens the duel with these settings. If no result is stored, press Train there.",
    ):  # fmt: skip
        try:
            lanes = state.trained(page_anatomy)
        except ConfigError as error:
            page_anatomy.complaint = str(error)
            return
        page_links.open_duel(lanes, shared(), "follow")


def _title(title: str, field: str, page_anatomy: Anatomy) -> str:
    differ = len({getattr(lane, field) for lane in page_anatomy.lanes}) > 1
    return f"{title} :orange[(A and B differ)]" if differ else title


def _pick(label: str, field: str, value: str, registry: Registry, lane: int | None = None) -> None:
    key = f"anatomy_{field}"
    st.session_state[key] = value
    st.selectbox(
        label, dict.fromkeys((*registry.keys(), value)), key=key, format_func=registry.label,
        on_change=_take, args=(field, lane),
    )  # fmt: skip


def _take(field: str, lane: int | None) -> None:
    state.change(field, chosen(f"anatomy_{field}"), lane)


def _second(lanes: tuple[RunConfig, ...]) -> None:
    second = lanes[1].scheme if len(lanes) > 1 else None
    st.session_state["anatomy_second"] = second
    st.selectbox(
        "Placement B", dict.fromkeys((None, *SCHEMES.keys(), second)), key="anatomy_second",
        format_func=lambda key: SCHEMES.label(key) if key else "(A alone)",
        on_change=lambda: state.compare_with(chosen("anatomy_second")),
    )  # fmt: skip


def _formulas(name: str, config: RunConfig) -> None:
    placement.formulas(config, f"{name}: ")
    if anatomy.gradient_path(config.scheme, config.depth):
        glossary.caption(
            f"{name}: what the [[gradient]] is multiplied by in the [[backward]] (J is a [[jacobian]])"
        )
        placement.gradients(config)
    if SCHEMES[config.scheme].constants:
        glossary.caption(f"{name}: [[gain|constants]] at depth {config.depth}")
        placement.constants(config)
    st.caption(literal(placement.letters(config)))


def _facts(name: str, config: RunConfig) -> None:
    """Facts on a placement, as a list."""
    scheme = SCHEMES[config.scheme]
    rows = (
        ("Known trouble", literal(scheme.trouble)),
        ("Outside the blocks", placement.ends(config) or "no norm"),
        ("Weights", literal(placement.constraint(config))),
        ("Adds", literal(_adds(config))),
        ("Source", source(scheme.source)),
        ("Used by", literal(scheme.used_by or "no model that we know of")),
        ("Checked against", _checked_against(scheme)),
    )
    st.markdown(f"### Facts on {name} {literal(scheme.label)}")
    st.markdown("\n".join(f"* **{fact}**: {text}" for fact, text in rows if text))


def _adds(config: RunConfig) -> str:
    """The parameters beyond those of a model without norms."""
    added_parts = anatomy.added(config, placement.VOCABULARY)
    if not added_parts:
        return "no parameters to a model without norms."
    total = sum(part.parameters for part in added_parts)
    parts = ", ".join(f"{part.pieces} {part.name} ({part.parameters:,})" for part in added_parts)
    return f"{total:,} parameters to a model without norms: {parts}."


def _checked_against(scheme: Scheme) -> str:
    """The implementations by others that the tests compare with, and the largest difference measured."""
    peers = differences().get(scheme.key, {})
    parts = [f"{literal(name)} (difference {value:.1e})" for name, value in peers.items()]
    return "; ".join(parts) or TWIN


def _code(name: str, config: RunConfig) -> None:
    """The whole model in PyTorch, to copy or download."""
    text = anatomy.code(config, placement.VOCABULARY)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"## {name} {literal(SCHEMES.label(config.scheme))} in PyTorch", width="content"
        )
        st.download_button(
            "Download .py", text, f"normviz_{in_file(config.scheme)}.py", "text/x-python",
            key=f"download_{name}", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
    st.code(text, language="python", height=420)
