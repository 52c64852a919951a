"""What a norm costs: the findings of a measurement, and once it is open its charts and its numbers."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz.formats import megabytes, timing
from normviz.studies.norm_cost import chart as cost
from normviz.studies.norm_cost import findings, stored_results
from normviz.studies.norm_cost.findings import CLAIMS
from normviz.studies.norm_cost.result import Measurement
from normviz.studies.norm_cost.variants import BOTH, CONTEXTS, FORWARD, PASSES, VARIANTS

from ...session.backend import opened
from ...session.markdown import literal, source
from ...widgets import glossary
from ...widgets.chart import chart

TITLE = "What does a norm cost?"
OPEN = "cost_open"


def section(is_asked: bool) -> None:
    """The section, with what the shipped measurement says; open where `is_asked`, as a link to it does."""
    st.markdown(f"## {TITLE}")
    said = st.empty()
    if is_asked:
        st.session_state[OPEN] = True
    more = st.expander("Charts, operations and all numbers", key=OPEN, on_change="rerun")
    if not more.open:
        said.markdown(literal(findings.verdict(stored_results.shipped())))
        return
    with more:
        measurement = _chosen()
        glossary.caption(
            "To time your own machine, run `normviz bench norms` in a terminal. Words explained: [[width]], "
            "[[token]], [[batch]], [[median]], [[interval]], [[kernel]]."
        )
        said.markdown(literal(findings.verdict(measurement)))
        show(measurement)


def _chosen() -> Measurement:
    """The measurement that the visitor chose, by default the newest: the shipped one, and those that
    `normviz bench norms` has kept in this server's data folder."""
    shipped = stored_results.shipped()
    results = {m.when: m for m in (*stored_results.measurements(opened().store.folder), shipped)}
    if st.session_state.get("cost_shown") not in results:
        st.session_state["cost_shown"] = next(iter(results))
    when = st.selectbox(
        "Measurement", tuple(results), key="cost_shown",
        format_func=lambda when: results[when].text() + ", shipped" * (when == shipped.when),
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
    """What was counted, the charts, and all numbers."""
    dark = st.context.theme.type == "dark"
    st.markdown(literal(findings.counted(measurement)))
    with st.container(key="cost_charts"):
        for context, column in zip(CONTEXTS, st.columns(len(CONTEXTS), gap="medium"), strict=True):
            with column:
                st.markdown(f"### {context.label}", help=context.sentence)
                chart(
                    cost.chart(measurement, context.key, dark),
                    findings.finding(measurement, context.key), f"cost_{context.key}",
                )  # fmt: skip
    glossary.caption(
        "Circles: forward pass. Diamonds: forward and [[backward]]. "
        + literal(HOW.format(rounds=measurement.rounds, torch=measurement.torch))
    )
    _operations(measurement)
    _claims()
    st.markdown("### What is timed")
    lines = [f"* **{c.label}**: {literal(c.sentence)}" for c in CONTEXTS]
    lines += [f"* **{v.label}**: {literal(v.sentence)} {source(v.source)}" for v in VARIANTS]
    st.markdown("\n".join(lines))
    st.markdown("### All numbers")
    st.dataframe(_numbers(measurement), hide_index=True, key="cost_numbers")


def _operations(measurement: Measurement) -> None:
    """Operations, kernels, bytes and time of the norms alone."""
    st.markdown(
        "### Operations and time :small[:gray[norm alone; forward / forward and backward]]",
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
