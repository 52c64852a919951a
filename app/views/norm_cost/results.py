"""A measurement of norms' cost: its findings in words, its charts, and its numbers."""

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
    "Every round times each variant three times, in random order. The fastest time counts, divided by "
    "LayerNorm's in the same round. Marks are medians of {rounds} rounds, bars 95 % intervals for the "
    "median. Grey bands are the same LayerNorm, timed twice. An interval that overlaps its band is drawn "
    "pale: not distinguishable. Dashed lines: what is claimed for RMSNorm. PyTorch {torch}, float32, not "
    "compiled. One thread is timed by its CPU time."
)


def show(it: Measurement) -> None:
    """The findings, the charts, and all numbers."""
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
    """Operations, kernels, bytes and time of the norms alone."""
    st.markdown(
        "**Operations and time** :gray[norm alone; forward / forward and backward]",
        help="Operations: elementary operations of the formula for each number. Kernels: started by "
        "PyTorch, counted by its dispatcher. Read and written: bytes of these kernels if nothing stays in "
        "a cache.",
    )
    rows = []
    for variant in VARIANTS:
        both = [it.row(variant.key, "alone", passes) for passes in (FORWARD, BOTH)]
        rows.append(
            {
                "Norm": variant.label,
                "Operations per number": " / ".join(f"{row.operations:.0f}" for row in both),
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
        f"**Claimed** for RMSNorm, as time saved: {'; '.join(said)}. A dashed line marks where each "
        "claim begins. What holds on one machine need not hold on another: measure yours."
    )


def _numbers(it: Measurement) -> pd.DataFrame:
    """One row for each variant, context and pass."""
    return pd.DataFrame(
        {
            "Norm": VARIANTS.label(row.variant),
            "Where": CONTEXTS.label(row.context),
            "Passes": PASSES[row.passes],
            "Time": findings.duration(row.seconds),
            "× LayerNorm": round(row.ratio.median, 4),
            "from": round(row.ratio.low, 4),
            "to": round(row.ratio.high, 4),
            "Distinguishable": "yes" if it.differs(row) else "no",
            "Kernels": row.kernels,
            "Megabytes": round(row.bytes / 1e6, 3),
        }
        for row in it.rows
    )
