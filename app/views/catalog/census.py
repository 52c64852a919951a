"""The census of language models as pictures: what they use, and since when."""

from __future__ import annotations

import streamlit as st

from normviz.catalog.models import TITLES, Census
from normviz.charts import census as charts

from ...session.markdown import literal
from ...widgets.chart import chart


def show(census: Census) -> None:
    """A bar for each placement or norm beside bars over the years."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        kind = st.segmented_control(
            "Count the stacks by", TITLES, default=TITLES[0], required=True, key="census_kind",
            label_visibility="collapsed",
        )  # fmt: skip
        shares = st.toggle("As shares of each year", key="census_shares")
    kind, finding = kind or TITLES[0], charts.finding(census, kind or TITLES[0])
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _chart(charts.years(census, kind, shares), finding, f"years_{kind}_{shares}")
    with right:
        _chart(charts.totals(census, kind), finding, f"totals_{kind}")
    undated = sum(model.year is None for model in census.models)
    st.markdown(literal(finding.partition(" All years:")[0]))
    st.caption(
        f"Counted are the {len(census.models)} stacks of language models. A year is the first one in the "
        "copyright notice of a model's code. It can differ from the year of its release, and a model that "
        "uses the code of another one has that one's year. "
        f"{undated} stacks have no year and are in the bars of totals alone."
    )


def _chart(spec: charts.Spec, finding: str, key: str) -> None:
    chart(spec, finding, f"census_{key}")
