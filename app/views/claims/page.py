"""The Claims page: filters, and the claims by question, each with its finding, a spark and its source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from html import escape

import streamlit as st

from normviz.catalog.registry import meant
from normviz.charts import spark
from normviz.charts.svg import data_uri
from normviz.links import Codec, cut
from normviz.studies.claims import CLAIMS, Claim
from normviz.studies.claims.figure import drawn
from normviz.studies.claims.record import QUESTIONS
from normviz.studies.claims.sentences import ORDER, chip
from normviz.studies.claims.stored import finding, shipped_result

from ...session import address
from ...session.backend import shared
from ...session.markdown import capital, literal, source
from ...session.page_state import PageState
from ...widgets import badge, glossary, link_notices
from ...widgets.buttons import button
from . import card

CODEC = Codec(("claim",), version="")
INTRO = (
    "Each claim has a rule and an experiment: small models with several seeds, or counts of real ones. What "
    "was changed after a first result, and could matter, is on its card. Whether the findings hold for large "
    "models is not measured. Numbers are medians. Choose a finding to see its figure, its rule and its runs."
)


@dataclass
class Shown(PageState):
    """The key of the claim that is open, and of the one that a link opened."""

    opened: str | None = None
    linked: str | None = None


def page() -> None:
    """The page, from top to bottom."""
    backend = shared()
    shown = st.session_state.setdefault("claims_shown", Shown())
    _open(shown)
    with st.container(key="head"):
        st.markdown(f"# {len(CLAIMS)} claims about norm placement, tested")
    st.caption(INTRO)
    glossary.line(
        "placement", "loss", "nat", "gradient", "rate", "warmup", "seed", "median", "interval"
    )
    link_notices.unknown_parameters(CODEC)
    contents = st.container(key="claim_contents")
    claims = filtered()
    groups = {key: [claim for claim in claims if claim.question == key] for key in QUESTIONS}
    if shown.linked:  # a linked claim comes first, and ignores the filters
        groups = {"linked": [CLAIMS[shown.linked]]} | {
            key: [claim for claim in group if claim.key != shown.linked]
            for key, group in groups.items()
        }
    with contents:
        _contents(groups)
    with st.container(key="claims", gap=None):
        for key, group in groups.items():
            if group:
                st.header(QUESTIONS.get(key, LINKED), anchor=key or "other")
            for claim in group:
                row(claim, shown)
                if claim.key == shown.opened:
                    card.show(claim, shown, backend)


def _contents(groups: dict[str, list[Claim]]) -> None:
    """Links to the groups, with the number of their claims."""
    links = (
        f"[{QUESTIONS.get(key, LINKED)}](#{key or 'other'}) {len(group)}"
        for key, group in groups.items()
        if group
    )
    st.markdown("\n".join(f"* {link}" for link in links))


def _open(shown: Shown) -> None:
    """On arrival open the link's claim, if it names one. Else the one that was open stays: Streamlit puts an
    entry without it into the browser's history where a button leads from its card to a duel."""
    if st.session_state["arrived"] and "claim" in st.query_params:
        word = st.query_params.get_all("claim")[0]
        if word.upper() in CLAIMS:
            shown.opened = shown.linked = word.upper()
        else:
            there = ", ".join(CLAIMS.keys())
            near = meant(word[:40], CLAIMS.keys())
            st.error(literal(f"The link names the claim {cut(word)}; there are {there}.{near}"))
    address.show(CODEC.params({"claim": shown.opened} if shown.opened else {}))


# Filters and rows.

COLORS: dict[str, badge.Color] = {
    "contradicted": "orange", "holds in part": "violet", "no difference found": "gray",
    "undecided": "gray", "holds": "green", "not run": "blue",
}  # fmt: skip
WHOSE = ("Papers", "Teaching material")
LINKED = "The claim of the link"


def filtered() -> list[Claim]:
    """Show the filters. Returns the claims that pass, contradicted ones first."""
    kinds = {claim.key: chip(claim, shipped_result(claim)) for claim in CLAIMS}
    # Verdicts are counted after source and search, whose widgets stand behind them.
    whose, words = st.session_state.get("claim_whose"), st.session_state.get("claim_search", "")
    found = [
        claim
        for claim in CLAIMS
        if (not whose or claim.everyday == (whose == WHOSE[1])) and _holds(claim, words)
    ]
    counts = Counter(kinds[claim.key] for claim in found)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="claim_filters"
    ):
        verdicts = st.segmented_control(
            "Verdicts", [kind for kind in ORDER if kind in kinds.values()], selection_mode="multi",
            key="claim_verdicts", format_func=lambda kind: f"{kind} {counts[kind]}",
            label_visibility="collapsed",
        )  # fmt: skip
        st.segmented_control("Source", WHOSE, key="claim_whose", label_visibility="collapsed")
        st.text_input(
            "Search", key="claim_search", label_visibility="collapsed", width=260,
            placeholder="warm-up, DeepNorm, arXiv:2002.04745 ...",
        )  # fmt: skip
    passing = [claim for claim in found if not verdicts or kinds[claim.key] in verdicts]
    if not passing:
        st.info("No claim passes these filters.")
    return sorted(passing, key=lambda claim: ORDER.index(kinds[claim.key]))


def _holds(claim: Claim, words: str) -> bool:
    text = " ".join(
        (claim.key, claim.label, claim.sentence, claim.source, claim.finding[1])
    ).casefold()
    return all(word in text for word in words.casefold().split())


def row(claim: Claim, shown: Shown) -> None:
    """A claim's verdict, its finding as the button that opens it, the claim with its source, and a spark."""
    result = shipped_result(claim)
    kind = chip(claim, result)
    with st.container(key=f"claim_row_{claim.key}"):
        words = result.verdict(claim).sentence if result else kind
        why = card.GENERAL if claim.general and kind == "contradicted" else None
        st.badge(words, color=COLORS[kind], help=why)
        icon = f":material/expand_{'less' if shown.opened == claim.key else 'more'}:"
        sentence = finding(claim, result) if result else f"{claim.label}: not run yet."
        button(
            literal(sentence), _toggle, shown, claim.key, type="tertiary", key=f"open_{claim.key}",
            icon=icon,
        )  # fmt: skip
        says = f"Claim: {literal(claim.sentence)} {capital(source(claim.source))}"
        st.caption(f"{says} · {claim.key} · {claim.scope}")
        if result:
            st.html(_spark(claim, result.date))


@cache
def _spark(claim: Claim, _date: str) -> str:
    """The claim's figure as a small picture. The sentences beside it say the same."""
    result = shipped_result(claim)
    assert result is not None
    figure = drawn(claim, result)
    title = escape(spark.title(figure))
    return f'<img src="{data_uri(spark.svg(figure))}" alt="" title="{title}">'


def _toggle(shown: Shown, key: str) -> None:
    shown.opened = None if shown.opened == key else key
