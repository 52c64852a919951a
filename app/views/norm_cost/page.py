"""The Norm cost page: times norms on this machine while no training runs, and shows a measurement.

A measurement is shown by its findings in words, its charts, and its numbers.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz import hosted
from normviz.catalog import DEVICES
from normviz.cores import cores
from normviz.formats import megabytes, timing
from normviz.studies.norm_cost import chart, findings, stored_results
from normviz.studies.norm_cost.findings import CLAIMS
from normviz.studies.norm_cost.lab import PATIENCE_SECONDS
from normviz.studies.norm_cost.result import DEVICES as ALLOWED_DEVICES
from normviz.studies.norm_cost.result import CostSetting, Measurement
from normviz.studies.norm_cost.variants import BOTH, CONTEXTS, FORWARD, PASSES, VARIANTS

from ...session.backend import SharedBackend, shared
from ...session.markdown import literal, sentence, source
from ...session.page_state import chosen
from ...widgets import glossary, link_notices
from ...widgets.buttons import button
from ...widgets.polling import poll

TICK_SECONDS = 0.5
WIDTHS = tuple(2**n for n in range(5, 11))
TOKENS = tuple(2**n for n in range(6, 15))
START_SECONDS = 8
"""About the time to load PyTorch, build the models and warm up."""
SHARED = (
    "This server is shared. A timing needs the whole machine, and all training would have to wait, so "
    "nothing is measured here. Below is the measurement that ships with NormViz. To measure your own "
    "machine, run `normviz bench norms` in a terminal."
)


def page() -> None:
    """The page, from top to bottom."""
    backend = shared()
    with st.container(key="head"):
        st.markdown(
            "# What does a norm cost? :small[:gray[Time relative to LayerNorm, on this machine.]]"
        )
    link_notices.unknown_parameters()
    glossary.line("norm", "width", "token", "batch", "median", "interval", "backward", "kernel")
    if hosted.limits():
        st.info(SHARED)
    else:
        _controls(backend)
    poll(_status, TICK_SECONDS, bool(backend.lab.state.doing))
    show(_shown(backend))


def _controls(backend: SharedBackend) -> None:
    """The settings of a measurement, and the buttons."""
    with st.container(key="cost_controls"):
        width, tokens, threads, device = st.columns([3, 3, 2, 2], vertical_alignment="bottom")
        with width:
            _ladder("Width (numbers per token)", "width", WIDTHS, CostSetting().width)
        with tokens:
            _ladder("Tokens per batch", "tokens", TOKENS, CostSetting().tokens)
        with threads:
            st.number_input("CPU threads", 1, cores(), 1, key="cost_threads")
        with device:
            st.selectbox(
                "Device", ALLOWED_DEVICES, key="cost_device", format_func=DEVICES.label,
                help="The GPU must be in the machine that runs this page's server. Timing on a GPU, by "
                "events on its stream, ran for three norms on one H100; a whole measurement was not made.",
            )  # fmt: skip
    setting = _setting()
    busy = bool(backend.lab.state.doing)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        button(
            "Measure", _start, backend, key="cost_start", type="primary", icon=":material/timer:",
            disabled=busy or isinstance(setting, str),
        )  # fmt: skip
        button("Stop", backend.lab.stop, key="cost_stop", icon=":material/stop:", disabled=not busy)
        if isinstance(setting, str):
            st.error(literal(sentence(setting)))
        else:
            seconds = START_SECONDS + max(setting.seconds, setting.needed_seconds)
            st.caption(f"About {seconds:.0f} s. Training on this server waits until then.")


def _ladder(words: str, name: str, values: tuple[int, ...], default: int) -> None:
    st.select_slider(words, values, default, key=f"cost_{name}", format_func=lambda n: f"{n:,}")


def _setting() -> CostSetting | str:
    """The setting in the widgets, or why it is not allowed."""
    values = {n: chosen(f"cost_{n}") for n in ("width", "tokens", "threads", "device")}
    try:
        return CostSetting(**values)
    except ValueError as error:
        return str(error)


def _start(backend: SharedBackend) -> None:
    setting = _setting()
    if isinstance(setting, CostSetting):
        backend.lab.start(setting)


def _status() -> bool:
    """The progress of the measurement, or why it failed, and whether it goes on."""
    lab = shared().lab
    state = lab.state
    with st.container(key="cost_status"):
        if state.doing and state.setting:
            st.progress(state.share, f"{state.setting.text()}: {state.doing}")
        elif state.problem:
            st.warning(f"Nothing was measured: {literal(state.problem)}.")
    return bool(state.doing)


def _shown(backend: SharedBackend) -> Measurement:
    """The measurement that the visitor chose; by default, and after a new one, the newest.

    A server without a measurement of its own shows the shipped one.
    """
    results = {
        m.when: m
        for m in (*stored_results.measurements(backend.store.folder), stored_results.shipped())
    }
    newest = next(iter(results))
    finished = backend.lab.state.finished
    if st.session_state.get("cost_finished", finished) != finished:
        st.session_state["cost_shown"] = newest
    st.session_state["cost_finished"] = finished
    shipped = stored_results.shipped().when
    if st.session_state.get("cost_shown") not in results:
        st.session_state["cost_shown"] = newest
    when = st.selectbox(
        "Measurement", tuple(results), key="cost_shown",
        format_func=lambda when: results[when].text() + (", shipped" if when == shipped else ""),
        help=f"A measurement waits at most {PATIENCE_SECONDS:g} s for runs that train here",
    )  # fmt: skip
    return results[when]


# A measurement.

HOW = (
    "Every round times each variant three times, in random order. The fastest time counts, divided by "
    "LayerNorm's in the same round. Marks are medians of {rounds} rounds. Bars are 95 % intervals for "
    "the median. Grey bands are the same LayerNorm, timed twice. An interval that overlaps its band is drawn "
    "pale: not distinguishable. Dashed lines: what is claimed for RMSNorm. PyTorch {torch}, float32, not "
    "compiled. One thread is timed by its CPU time."
)


def show(measurement: Measurement) -> None:
    """The findings, the charts, and all numbers."""
    dark = st.context.theme.type == "dark"
    st.markdown(
        f"{literal(findings.verdict(measurement))}  \n{literal(findings.counted(measurement))}"
    )
    with st.container(key="cost_charts"):
        for context, column in zip(CONTEXTS, st.columns(len(CONTEXTS), gap="medium"), strict=True):
            with column:
                st.markdown(f"## {context.label}", help=context.sentence)
                st.vega_lite_chart(
                    chart.chart(measurement, context.key, dark), key=f"cost_{context.key}",
                    width="stretch", alt=findings.finding(measurement, context.key),
                )  # fmt: skip
    glossary.caption(
        "Circles: forward pass. Diamonds: forward and [[backward]]. "
        + literal(HOW.format(rounds=measurement.rounds, torch=measurement.torch))
    )
    _operations(measurement)
    _claims()
    with st.expander("What is timed"):
        lines = [f"* **{c.label}**: {literal(c.sentence)}" for c in CONTEXTS]
        lines += [f"* **{v.label}**: {literal(v.sentence)} {source(v.source)}" for v in VARIANTS]
        st.markdown("\n".join(lines))
    with st.expander("All numbers"):
        st.dataframe(_numbers(measurement), hide_index=True, key="cost_numbers")


def _operations(measurement: Measurement) -> None:
    """Operations, kernels, bytes and time of the norms alone."""
    st.markdown(
        "## Operations and time :small[:gray[norm alone; forward / forward and backward]]",
        help="Operations: elementary operations of the formula for each number. Kernels: started by "
        "PyTorch, counted by its dispatcher. Read and written: bytes of these kernels if nothing stays in "
        "a cache.",
    )
    rows = []
    for variant in measurement.variants:
        both = [measurement.row(variant, "alone", passes) for passes in (FORWARD, BOTH)]
        rows.append(
            {
                "Norm": VARIANTS.label(variant),
                "Operations per number": " / ".join(f"{row.operations:.0f}" for row in both),
                "Kernels": " / ".join(f"{row.kernels}" for row in both),
                "Read and written": " / ".join(megabytes(row.bytes) for row in both),
                "Time": " / ".join(timing(row.seconds) for row in both),
                "× LayerNorm": " / ".join(f"{row.ratio.median:.2f}" for row in both),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="cost_operations")


def _claims() -> None:
    claims = [f"{claim.label.removesuffix(' less')} ({source(claim.source)})" for claim in CLAIMS]
    st.markdown(
        f"**Claimed** for RMSNorm, as time saved: {'; '.join(claims)}. A dashed line marks where each "
        "claim begins. What holds on one machine need not hold on another: measure yours."
    )


def _numbers(measurement: Measurement) -> pd.DataFrame:
    """One row for each variant, context and pass."""
    return pd.DataFrame(
        {
            "Norm": VARIANTS.label(row.variant),
            "Where": CONTEXTS.label(row.context),
            "Passes": PASSES[row.passes],
            "Time": timing(row.seconds),
            "× LayerNorm": round(row.ratio.median, 4),
            "from": round(row.ratio.low, 4),
            "to": round(row.ratio.high, 4),
            "Distinguishable": "yes" if measurement.differs(row) else "no",
            "Kernels": row.kernels,
            "Megabytes": round(row.bytes / 1e6, 3),
        }
        for row in measurement.rows
    )
