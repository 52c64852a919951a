"""What a sweep says, in sentences that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from .grid import Grid
from .points import Point
from .summary import Edge, Place, Sensitivity, against, by_place


def edge_words(grid: Grid, edge: Edge) -> str:
    """ "Post-LN, depth 16: trains up to lr 0.003"."""
    where = f"{said(grid, edge.place)}: " if edge.place else ""
    if edge.rate is None:
        return f"{where}trains at no rate tried"
    more = ", the largest tried" if edge.is_last else ""
    return f"{where}trains up to lr {edge.rate:g}{more}"


def sensitivity_words(grid: Grid, row: Sensitivity) -> Iterator[str]:
    """The number beside the best loss, then what it must not be taken for."""
    where = f"{said(grid, row.place)}: " if row.place else ""
    excess = "" if row.excess is None else f", {row.excess.median:.3f} above the floor"
    yield (
        f"{where}learning-rate sensitivity {row.value.text()}; best loss {row.best.text()} at lr "
        f"{row.best_rate:g}{excess}"
    )
    if row.fails:
        yield "  no rate trains, so a small sensitivity says nothing here"
    if row.undertrained:
        rates = ", ".join(f"{rate:g}" for rate in row.undertrained)
        yield f"  still falling at lr {rates}: part of it is lack of steps, not instability"
    if row.stood_in:
        yield f"  {row.stood_in} cells were stopped early: their loss at the stop stands in"


def comparisons(grid: Grid, points: Sequence[Point]) -> Iterator[str]:
    """The first axis of names, value against value at the best learning rate of each."""
    named = next((axis for axis in grid.axes if not axis.is_ordered), None)
    if named is None:
        return
    for place, group in by_place(grid, points, named.field, "lr").items():
        sides = by_place(grid, group, *(axis.field for axis in grid.axes if axis != named))
        where = f"{said(grid, place)}: " if place else ""
        for (a, first), (b, second) in combinations(sides.items(), 2):
            found = against(first, second)
            if found is not None:
                yield where + found.sentence(said(grid, a), said(grid, b))


def said(grid: Grid, place: Place) -> str:
    """ "Post-LN, depth 12"."""
    words = []
    for field, value in place:
        axis = grid.axis(field)
        assert axis is not None
        words.append(f"{field} {axis.shown(value)}" if axis.is_ordered else axis.shown(value))
    return ", ".join(words)


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
