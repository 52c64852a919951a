"""The guide's cards, table and answers as HTML. All text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from normviz.catalog import SCHEMES
from normviz.charts import scheme_style
from normviz.lessons.choose.confusions import Confusion
from normviz.lessons.choose.facts import TERMS, Finding
from normviz.lessons.choose.picks import Guide, Mark, Pick
from normviz.lessons.choose.properties import PROPERTIES, ClaimLine, TableCell

from ...session.markdown import capital, sentence

NOT_MEASURED = '<span class="choose-none">not measured</span>'
SIGNS: Mapping[Mark, str] = {
    "trained and settled": "✓", "still falling": "▼", "not settled": "?", "did not train": "✗",
}  # fmt: skip
LEGEND = (
    "✓ trained and settled · ▼ still falling at the last step · ? not settled · ✗ did not train"
)


def headline(answer: Guide, modern: Finding) -> str:
    """The scope, what its words mean, the answer in large letters, which tied placements have the fewest
    norms and in what they differ, and the link to its duel; apart from them, as it has another scope, the
    answer with RMSNorm and QK-norm."""
    duel = (
        f'<p><a class="choose-open" href="{escape(answer.duel)}">Compare {escape(answer.compares)} in a duel'
        "</a></p>"
        if answer.duel
        else ""
    )
    more = "".join(f"<p>{escape(words)}</p>" for words in (answer.choice, answer.differs) if words)
    return (
        f'<div class="choose-answer"><p class="choose-scope">{escape(f"{answer.scope} {TERMS}")}</p>'
        f"<p><strong>{escape(answer.headline)}</strong></p>"
        f"{more}{duel}</div>"
        f'<div class="choose-answer"><p>Does it matter with RMSNorm and QK-norm? {escape(modern.text)} '
        f'<a href="{escape(modern.to)}">Where this is from</a></p></div>'
    )


def limits(answer: Guide) -> str:
    """The numbers of the answer, and what they can't say."""
    every = filter(None, (answer.why, answer.others, *answer.limits))
    items = "".join(f"<li>{escape(words)}</li>" for words in every)
    return f'<ul class="choose-limits">{items}</ul>'


def cards(answer: Guide) -> str:
    """One card a placement, after what their signs mean."""
    return (
        f'<p class="choose-legend">{LEGEND}</p>'
        f'<div class="choose-cards">{"".join(map(_card, answer.picks))}</div>'
    )


def _card(pick: Pick) -> str:
    color = scheme_style(pick.scheme).color
    lines = "".join(
        f"<dt>{escape(label)}</dt><dd>{_finding(finding)}</dd>" for label, finding in pick.lines
    )
    claims = (
        f"<details><summary>Claims: {len(pick.claims)}</summary>{_claims(pick.claims)}</details>"
    )
    return (
        f'<section class="choose-card" style="border-color:{color}"><h2>{escape(pick.label)}</h2>'
        f"<p>{escape(capital(pick.reason))}.</p>{_marks(pick)}<dl>{lines}</dl>{claims if pick.claims else ''}"
        "</section>"
    )


def _marks(pick: Pick) -> str:
    """The rates that were tried, each with a sign and, for readers that hear the page, in words."""
    items = "".join(
        f'<li class="choose-{mark.split()[0]}">{rate} <span aria-hidden="true">{SIGNS[mark]}</span>'
        f'<span class="choose-heard">{mark}</span></li>'
        for rate, mark in pick.marks
    )
    return f'<ul class="choose-rates" aria-label="Learning rates">{items}</ul>' if items else ""


def properties(rows: Mapping[str, Mapping[str, TableCell]]) -> str:
    """The property table, a column a placement. Where it does not fit it scrolls by itself."""
    head = "".join(f'<th scope="col">{escape(SCHEMES.label(scheme))}</th>' for scheme in rows)
    body = "".join(
        f'<tr><th scope="row">{escape(row.label)}</th>'
        + "".join(f"<td>{_cell(cells[row.key])}</td>" for cells in rows.values())
        + "</tr>"
        for row in PROPERTIES
    )
    return (
        '<div class="choose-table" tabindex="0" role="region" aria-label="Properties of placements">'
        f'<table><thead><tr><th scope="col">Property</th>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _cell(cell: TableCell) -> str:
    return _claims(cell.claims) + f'<p class="choose-measured">Here: {_finding(cell.measured)}</p>'


def plain_answer(confusion: Confusion) -> str:
    """The plain answer of a question."""
    return f'<div class="choose-answers"><p class="choose-short">{_finding(confusion.answer)}</p></div>'


def evidence(confusion: Confusion) -> str:
    """The claims about a question with verdict and numbers, then what was measured besides."""
    items = [
        f"<li>{_claim(line)}<br>{escape(sentence(line.sentence))}<br><small>{escape(line.explained)}</small></li>"
        for line in confusion.lines
    ]
    items += [f"<li>{_finding(finding)}</li>" for finding in confusion.findings]
    return f'<div class="choose-answers"><ul>{"".join(items)}</ul></div>'


def _claims(lines: Iterable[ClaimLine]) -> str:
    items = "".join(f"<li>{_claim(line)}</li>" for line in lines)
    return f'<ul class="choose-claims">{items}</ul>' if items else ""


def _claim(line: ClaimLine) -> str:
    return (
        f'<a href="{escape(line.to)}">{escape(line.label)}</a> '
        f'<span class="choose-verdict">{escape(line.verdict)}</span>'
    )


def _finding(finding: Finding | None) -> str:
    if finding is None:
        return NOT_MEASURED
    return f'<a href="{escape(finding.to)}">{escape(finding.text)}</a>'
