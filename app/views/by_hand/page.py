"""The By hand page: three norms worked out on a table small enough to check with pencil and paper."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz.catalog import NORMS
from normviz.lessons.by_hand import KEYS, Work, brief, code, formulas, links, sentences, steps, work

from ...session import address
from ...session.markdown import literal, source
from ...widgets import glossary, link_notices
from ...widgets.copy_button import copy_link
from . import controls, matrix, state

AXES = {
    "row": "Averages **each row** over its [[feature|features]].",
    "column": "Averages **each column** over the rows.",
    "running": "Uses [[running]].",
}


def page() -> None:
    """The page, from top to bottom."""
    hand = state.hand()
    if not (hand.link and hand.link.problems):
        address.show(links.as_params(hand.example))
    with st.container(key="head", horizontal=True, vertical_alignment="center"):
        st.markdown("# Norms by hand: which numbers are averaged together?", width="stretch")
        copy_link("copy_link", links.encode(hand.example))
    link_notices.show(hand, "Below is what this page opens with.", state.open_link)
    glossary.line("norm", "feature", "rms", "gamma", "beta", "eps", "running", "eval", "padding")
    left, right = st.columns([1, 1], gap="medium")
    with left:
        controls.table(hand)
    with right:
        controls.cell_controls(hand)
        controls.experiment_controls(hand)
    done = work(hand.example)
    with st.container(key="hand_lead"):
        st.markdown(
            literal("\n\n".join(filter(None, (sentences.lead(done), sentences.mode(done)))))
        )
    for show in (_norm, _sheet):  # row by row, so that the three columns align
        for column, key in zip(st.columns(len(KEYS), gap="medium"), KEYS, strict=True):
            with column, st.container(key=f"hand_{show.__name__.strip('_')}_{key}"):
                show(done, key)
    _code(done)
    _conventions(done)


def _norm(hand_work: Work, key: str) -> None:
    st.markdown(f"## {literal(NORMS.label(key))}")
    glossary.markdown(AXES[hand_work.now[key].axis])
    matrix.show(hand_work, key)
    st.markdown(literal(sentences.seen(hand_work, key)))
    if warning := NORMS[key].warning:
        st.caption(f":material/warning: {literal(warning)}")


def _sheet(hand_work: Work, key: str) -> None:
    example, axis = hand_work.example, hand_work.now[key].axis
    what = f"row {example.row}" if axis == "row" else f"feature {example.feature}"
    st.markdown(f"### {literal(NORMS.label(key))}, {what}, step by step")
    st.latex(NORMS[key].formula)
    st.html(html(steps.sheet(hand_work, key)))
    st.caption(source(NORMS[key].source))


def _code(hand_work: Work) -> None:
    """The same in PyTorch and Keras, to copy."""
    for column, name, text in zip(
        st.columns(2, gap="medium"), ("PyTorch", "Keras"), (code.torch(hand_work), code.keras(hand_work)),
        strict=True,
    ):  # fmt: skip
        with column:
            st.markdown(f"## The same in {name}")
            st.code(text, language="python", wrap_lines=True)


def _conventions(hand_work: Work) -> None:
    lines = ["| What | PyTorch | Keras |", "|---|---|---|"]
    lines += [
        f"| {literal(a)} | {literal(b)} | {literal(c)} |"
        for a, b, c in formulas.table(hand_work.example)
    ]
    st.markdown("## Same words, different meanings")
    st.markdown("\n".join(lines))
    st.markdown("## A row in other nets")
    nets = [f"| {net} | {literal(row)} |" for net, row in sentences.ELSEWHERE]
    st.markdown("\n".join(["| Net | A row is |", "|---|---|", *nets]))


# The worked solution: the numbers averaged together, their means, and each step.


def html(sheet: steps.Sheet) -> str:
    """The solution as an HTML table and list, which wraps on a phone and works with a screen reader."""
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in sheet.heads)
    lines = "".join(
        f"<tr{' class=hand-picked' if line.picked else ''}>"
        f'<th scope="row">{escape(line.name)}</th>{_cells(line.values)}</tr>'
        for line in sheet.lines
    )
    foot = ""
    if sheet.means:
        cells = "".join(
            f"<td>{brief(sheet.means[i]) if i in sheet.means else ''}</td>"
            for i in range(len(sheet.heads))
        )
        foot = f'<tfoot><tr><th scope="row">mean</th>{cells}</tr></tfoot>'
    worked = "".join(
        f"<li><span>{escape(name)}</span> = {escape(formula)}</li>" for name, formula in sheet.steps
    )
    return (
        f'<div class="hand-sheet" tabindex="0"><table><thead><tr><td></td>{heads}</tr></thead><tbody>{lines}'
        f"</tbody>{foot}</table><ol>{worked}</ol></div>"
    )


def _cells(values: tuple[float, ...]) -> str:
    return "".join(f"<td>{brief(value)}</td>" for value in values)
