"""A claim's result, shipped or measured here, as figure and table."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from normviz.charts.claim import chart, finding, has_links, intervals
from normviz.studies.claims import Claim
from normviz.studies.claims.figure import bars, figure_seeds, linked
from normviz.studies.claims.stored import ClaimResult, number_sentences

from ...widgets.chart import chart as draw


def figure(claim: Claim, result: ClaimResult) -> None:
    """The figure, with theory as dashed lines; a click on a point opens the duel that shows it."""
    linked_figure = linked(claim, result)
    dark = st.context.theme.type == "dark"
    key = f"figure_{claim.key}_{result.date}_{result.seeds}"
    draw(chart(linked_figure, dark), finding(linked_figure), key)
    sentences = []
    if linked_figure.is_strip and intervals(linked_figure):
        sentences.append(f"Bars are {bars(claim)}, ticks medians of {result.seeds} seeds.")
    elif len(drawn := figure_seeds(claim, result)) < result.seeds:
        sentences.append(f"The figure has seeds {drawn[0]} to {drawn[-1]}.")
    if has_links(linked_figure):
        runs = (
            "its run"
            if not linked_figure.is_strip
            else f"the {'models' if claim.lab else 'runs'} behind it"
        )
        sentences.append(f"A click or a tap on a point opens {runs} in the duel.")
    if sentences:
        st.caption(" ".join(sentences))


def numbers(claim: Claim, result: ClaimResult) -> None:
    """A table of all numbers, with their seeds, and with a link for each seed to the duel that a point of
    the strip opens."""
    words = number_sentences(claim, result)
    rows = [{"number": claim.numbers[name].label, "measured": word} for name, word in words.items()]
    linked_figure = linked(claim, result)
    if linked_figure.is_strip and has_links(linked_figure):
        links = {
            arm_series.arm: " ".join(
                f"[{seed}](./?{link})"
                for seed, link in zip(result.seed_list, seeds, strict=True)
                if link
            )
            for arm_series, (seeds,) in zip(
                result.figure, (point.links for point in linked_figure.points), strict=True
            )
        }
        rows = [
            {**row, "duel of seed": links.get(name, "")}
            for name, row in zip(words, rows, strict=True)
        ]
    with st.expander("All numbers"):
        st.table(pd.DataFrame(rows).set_index("number"))
