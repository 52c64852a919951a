"""A norm's input and output as two small tables of shaded numbers.

The numbers averaged for the chosen cell are outlined. A corner marks a number that changed. A click on
a cell chooses it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from streamlit.components.v2 import component

from normviz.lessons.by_hand import Work, brief
from normviz.lessons.by_hand.formulas import Array, Bools

from ...session.page_state import chosen
from . import state

HERE = Path(__file__).parent
CELL = re.compile("([0-9]{1,3}),([0-9]{1,3})")
"""The position that a clicked cell sends: row and feature, from 1."""
MATRIX = component(
    "hand_matrix",
    html='<div class="hand"></div>',
    css=(HERE / "matrix.css").read_text(),
    js="""
      export default function ({ data, parentElement, setTriggerValue }) {
        const root = parentElement.querySelector(".hand");
        if (root.shown !== data.html) root.innerHTML = root.shown = data.html;
        root.onclick = (event) => {
          const cell = event.target.closest("[data-at]");
          if (cell) setTriggerValue("pick", cell.dataset.at);
        };
      }
    """,
)


def show(hand_work: Work, key: str) -> None:
    """The two tables of a norm."""
    name = f"matrix_{key}"
    MATRIX(
        key=name, data={"html": html(hand_work, key)}, height="content",
        on_pick_change=lambda: _pick(chosen(name).pick),
    )  # fmt: skip


def _pick(at: object) -> None:
    """The callback of a click on a cell. Ignores anything that is not a position."""
    if isinstance(at, str) and (cell := CELL.fullmatch(at)):
        state.change(row=int(cell[1]), feature=int(cell[2]))


def html(hand_work: Work, key: str) -> str:
    """Both tables as HTML. Holds only numbers and constant texts, so nothing needs escaping."""
    done = hand_work.now[key]
    averaged = "nothing is averaged" if done.axis == "running" else "outlined numbers are averaged"
    together = done.together(hand_work.row, hand_work.feature)
    return _table(
        hand_work, f"x; {averaged}", done.x, together, hand_work.edited, "changed"
    ) + _table(hand_work, "y", done.y, np.zeros_like(together), hand_work.moved(key), "moved")


def _table(
    hand_work: Work, caption: str, values: Array, outlined: Bools, marked: Bools, mark: str
) -> str:
    """One table as HTML. Rows that are not in the batch are empty; rows of padding come last."""
    if n := int(marked.sum()):
        caption += f"; {n} {mark} ◤"
    places = {row: i for i, row in enumerate(hand_work.after.rows) if row}
    most = float(np.abs(values).max()) or 1.0
    lines = []
    for row in range(1, hand_work.example.rows + 1):
        i = places.get(row)
        cells = [
            _cell(hand_work, row, f, i, values, outlined, marked, most)
            for f in range(hand_work.example.features)
        ]
        lines.append(f'<tr><th scope="row">{row}</th>{"".join(cells)}</tr>')
    for i, row in enumerate(hand_work.after.rows):
        if not row:
            cells = [
                _cell(hand_work, 0, f, i, values, outlined, marked, most)
                for f in range(hand_work.example.features)
            ]
            kind = "masked" if not hand_work.after.counted[i] else "pad"
            lines.append(f'<tr class="{kind}"><th scope="row">{kind}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col">{f}</th>' for f in range(1, hand_work.example.features + 1))
    return (
        f"<table><caption>{caption}</caption><thead><tr><td></td>{heads}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(
    hand_work: Work, row: int, f: int, i: int | None, values: Array, outlined: Bools, marked: Bools,
    most: float,
) -> str:  # fmt: skip
    at = f' data-at="{row},{f + 1}"' if row else ""
    if i is None:
        return f'<td class="out"{at}>–</td>'
    value = float(values[i, f])
    kinds = ["negative"] if value < 0 else []
    kinds += _edges(outlined, i, f) if outlined[i, f] else []
    kinds += ["marked"] if marked[i, f] else []
    kinds += ["picked"] if (i, f) == (hand_work.row, hand_work.feature) else []
    share = f"--share:{round(50 * abs(value) / most)}%"
    words = '<span class="unseen"> marked</span>' if marked[i, f] else ""
    return f'<td class="{" ".join(kinds)}" style="{share}"{at}>{brief(value, 3)}{words}</td>'


def _edges(cells: Bools, i: int, f: int) -> list[str]:
    """The sides of a cell that border on no other outlined cell, as CSS classes."""
    wide = np.pad(cells, 1)
    sides = {
        "top": wide[i, f + 1], "bottom": wide[i + 2, f + 1], "left": wide[i + 1, f],
        "right": wide[i + 1, f + 2],
    }  # fmt: skip
    return [side for side, inside in sides.items() if not inside]
