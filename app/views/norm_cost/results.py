"""A measurement of what norms cost: what it says, its charts, and its numbers."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz import charts
from normviz.norm_cost import findings
from normviz.norm_cost.claims import CLAIMS
from normviz.norm_cost.result import Measurement
from normviz.norm_cost.variants import BOTH, CONTEXTS, FORWARD, PASSES, VARIANTS

from ...widgets.markdown import literal, source

HOW = (
    "In every round all variants take three turns, in an order of chance; the fastest of each counts, "
    "divided by LayerNorm's in the same round. Marks are medians of {rounds} rounds, bars 95 % "
    "intervals for the median. Grey bands are the same LayerNorm, timed twice: an interval that "
    "overlaps its band is drawn pale and not distinguishable. Dashed lines: what is claimed for "
    "RMSNorm. PyTorch {torch}, float32, not compiled; one thread is timed by its processor time."
)


def show(it: Measurement) -> None:
    """From the sentence down to the last number."""
    dark = st.context.theme.type == "dark"
    st.markdown(f"{literal(findings.verdict(it))}  \n{literal(findings.counted(it))}")
    with st.container(key="cost_charts"):
        for context, column in zip(CONTEXTS, st.columns(len(CONTEXTS), gap="medium"), strict=True):
            with column:
                st.markdown(f"**{context.label}**", help=context.sentence)
                st.vega_lite_chart(
                    charts.cost.chart(it, context.key, dark), key=f"cost_{context.key}",
                    width="stretch", alt=findings.finding(it, context.key),
                )  # fmt: skip
    st.caption(
        "Circles: forward. Diamonds: forward and backward. "
        + literal(HOW.format(rounds=it.rounds, torch=it.torch))
    )
    _operations(it)
    _claims()
    with st.expander("What is timed"):
        lines = [f"* **{c.label}**: {literal(c.sentence)}" for c in CONTEXTS]
        lines += [f"* **{v.label}**: {literal(v.sentence)} {source(v.source)}" for v in VARIANTS]
        st.markdown("\n".join(lines))
    with st.expander("All numbers"):
        st.dataframe(_numbers(it), hide_index=True, key="cost_numbers")


def _operations(it: Measurement) -> None:
    """Counts beside times, of the norms alone."""
    st.markdown(
        "**Operations beside time** :gray[alone; forward / forward and backward]",
        help="Operations a number of the formula, written out one elementary operation at a time. "
        "Kernels that PyTorch starts, and megabytes that they read and write if nothing stays in a "
        "cache, are counted by its dispatcher.",
    )
    rows = []
    for variant in VARIANTS:
        both = [it.row(variant.key, "alone", passes) for passes in (FORWARD, BOTH)]
        rows.append(
            {
                "Norm": variant.label,
                "Operations a number": " / ".join(f"{row.operations:.0f}" for row in both),
                "Kernels": " / ".join(f"{row.kernels}" for row in both),
                "Read and written": " / ".join(findings.megabytes(row.bytes) for row in both),
                "Time": " / ".join(findings.duration(row.seconds) for row in both),
                "× LayerNorm": " / ".join(f"{row.ratio.median:.2f}" for row in both),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="cost_operations")


def _claims() -> None:
    said = [f"{claim.label.removesuffix(' less')} ({source(claim.source)})" for claim in CLAIMS]
    st.markdown(
        f"**Claimed** for RMSNorm, as time saved: {'; '.join(said)}. The dashed lines stand where "
        "each claim begins. What holds on one machine need not hold on another: measure yours."
    )


def _numbers(it: Measurement) -> pd.DataFrame:
    """One row a variant, context and pass."""
    return pd.DataFrame(
        {
            "Norm": VARIANTS.label(row.variant),
            "Where": CONTEXTS.label(row.context),
            "Passes": PASSES[row.passes],
            "Time": findings.duration(row.seconds),
            "× LayerNorm": round(row.ratio.median, 4),
            "from": round(row.ratio.low, 4),
            "to": round(row.ratio.high, 4),
            "Told apart": "yes" if it.differs(row) else "no",
            "Kernels": row.kernels,
            "Megabytes": round(row.bytes / 1e6, 3),
        }
        for row in it.rows
    )
