"""The guide page: questions, scope, answer, limits, a card a placement, properties, norm cost, confusions."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from normviz.lessons.choose.answers import MODERN, SECTION, TITLES, as_params, options
from normviz.lessons.choose.confusions import CONFUSIONS
from normviz.lessons.choose.facts import setting
from normviz.lessons.choose.picks import guide
from normviz.lessons.choose.properties import table
from normviz.studies.maps.link import standard

from ...session import address
from ...session.markdown import literal
from ...widgets import glossary, link_notices, page_links
from . import cost, html
from .state import Choose, change, choose, key_of

STYLE = Path(__file__).with_name("guide.css")
ABOUT_TABLE = (
    "Each cell has first what papers and teaching material say, with the verdict of the experiment here, "
    "then what was measured. Every line is a link to the claim, map, duel or page that it comes from. "
    "In gradient paths J_F is the branch's Jacobian, J_N the norm's, I the identity, α DeepNorm's factor. "
    "Where a cell names no other setting, it was measured with"
)


def page() -> None:
    """The page, from top to bottom."""
    page_answers = choose()
    section = {SECTION: "cost"} if page_answers.cost_first else {}
    address.show(as_params(page_answers.answers) | section)
    answer = guide(page_answers.answers)
    st.html(STYLE)
    with st.container(key="head"):
        st.markdown("# Which should I use?")
    link_notices.notices(page_answers)
    if page_answers.cost_first:
        cost.section(st.session_state["arrived"])
    questions(page_answers)
    own_model(page_answers)
    st.html(html.headline(answer, CONFUSIONS["modern"].answer))
    st.html(html.limits(answer))
    st.html(html.cards(answer))
    st.markdown("## Placements and their properties")
    st.caption(literal(f"{ABOUT_TABLE} {setting(MODERN, standard(MODERN).grid.base.depth)}."))
    st.html(html.properties(table()))
    if not page_answers.cost_first:
        cost.section(False)
    confusions()
    glossary.line(
        "placement", "norm", "rate", "loss", "nat", "chance", "stream", "gradient", "qk", "seed"
    )


def questions(page_answers: Choose) -> None:
    """One list a question. The model is asked for only where there is one."""
    answers = page_answers.answers
    has_model = answers.start == "existing"
    with st.container(horizontal=True, gap="small", key="choose_questions" + "_model" * has_model):
        for name, title in TITLES.items():
            if name == "model" and not has_model:
                continue
            registry, key, answer = options(name), key_of(name), getattr(answers, name)
            if st.session_state.get(key) != answer:
                st.session_state[key] = answer
            st.selectbox(
                title, registry.keys(), key=key, format_func=registry.label, on_change=change,
                args=(name,), width=205,
            )  # fmt: skip


def own_model(page_answers: Choose) -> None:
    """The way to a model's own placement: to that of the model that was chosen, or to a pasted one."""
    answers, about = page_answers.answers, "its placement, norms and known trouble"
    kind = {page_links.MODEL_TYPE: answers.model} if answers.start == "existing" else {}
    whose = answers.model if kind else "Your model"
    page_links.to("own-model", f"{whose}: {about}", kind, ":material/content_paste:")


def confusions() -> None:
    """The questions, each with a plain answer, its claims and what was measured besides."""
    st.markdown("## Common questions")
    for confusion in CONFUSIONS:
        with st.expander(literal(confusion.label)):
            st.html(html.plain_answer(confusion))
            for label, latex in confusion.formulas():
                st.markdown(f"{literal(label)}: $\\displaystyle {latex}$")
            if confusion.symbols:
                st.caption(confusion.symbols)
            st.html(html.evidence(confusion))
