"""The worked solution of a norm: the numbers averaged together, their means, and each step."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz.by_hand import Work, brief, steps


def show(it: Work, key: str) -> None:
    """Show the solution as HTML, which wraps on a phone and works with a screen reader."""
    st.html(html(steps.sheet(it, key)))


def html(sheet: steps.Sheet) -> str:
    """The solution as an HTML table and list."""
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
        f'<div class="hand-sheet"><table><thead><tr><td></td>{heads}</tr></thead><tbody>{lines}'
        f"</tbody>{foot}</table><ol>{worked}</ol></div>"
    )


def _cells(values: tuple[float, ...]) -> str:
    return "".join(f"<td>{brief(value)}</td>" for value in values)
