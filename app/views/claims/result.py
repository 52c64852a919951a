"""A claim's result, shipped or measured here, as figure and table."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz.charts import theme
from normviz.charts.claim import chart, finding, has_links
from normviz.claims import Claim
from normviz.claims.figure import linked
from normviz.claims.stored import ClaimResult, number_sentences


def figure(claim: Claim, result: ClaimResult) -> None:
    """The figure, with theory as dashed lines; a click on a run's point opens the run in the duel."""
    it = linked(claim, result)
    dark = st.context.theme.type == "dark"
    spec = chart(it, dark)
    spec = {**spec, "config": {**theme(dark), **spec["config"]}}
    st.vega_lite_chart(spec, width="stretch", alt=finding(it), theme=None,
                       key=f"figure_{claim.key}_{result.date}_{result.seeds}")  # fmt: skip
    if has_links(it):
        st.caption("A click on a point opens its run in the duel.")


def numbers(claim: Claim, result: ClaimResult) -> None:
    """A table of all numbers, with their seeds."""
    words = number_sentences(claim, result)
    rows = [{"number": claim.numbers[name].label, "measured": word} for name, word in words.items()]
    with st.expander("All numbers"):
        st.table(pd.DataFrame(rows).set_index("number"))
