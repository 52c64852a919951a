"""The census of real models as two pictures: a bar for each placement (or norm), and bars over the years."""

from __future__ import annotations

from collections import Counter

import altair as alt

from ..catalog.models import TITLES, UNTOLD, Census, Model
from .base import TEXT_SIZE, Rows, Spec, filled, named
from .palette import GREY, lane_styles

HEIGHT, ROW = 240, 26
Kind = str
"""One of `catalog.models.TITLES`."""


def words(model: Model, kind: Kind) -> str:
    """What a model has of a kind: its placement, norm, final norm or QK-norm."""
    return model.words[TITLES.index(kind)]


def ranked(census: Census, kind: Kind) -> list[tuple[str, int]]:
    """The number of stacks with each placement (or norm), the most frequent first, unknown last."""
    counts = Counter(words(model, kind) for model in census.models).most_common()
    return sorted(counts, key=lambda pair: pair[0] == UNTOLD)


def totals(census: Census, kind: Kind) -> Spec:
    """A bar for each placement (or norm), as Vega-Lite with its rows."""
    counts = ranked(census, kind)
    names = [name for name, _ in counts]
    y = alt.Y(
        "what:N", sort=names, axis=alt.Axis(title=None, labelFontSize=TEXT_SIZE, labelLimit=200)
    )
    x = alt.X("n:Q", axis=None, scale=alt.Scale(domainMax=counts[0][1] * 1.12))
    bars = named("totals").mark_bar(size=16).encode(x=x, y=y, color=_color(census, kind))
    text = (
        named("totals")
        .mark_text(align="left", dx=4, fontSize=TEXT_SIZE)
        .encode(x=x, y=y, text="n:Q", color=alt.value("#808691"))
    )
    spec = alt.layer(bars, text).properties(height=ROW * len(counts)).to_dict()
    return filled(spec, {"totals": [{"what": name, "n": n} for name, n in counts]})


def years(census: Census, kind: Kind, shares: bool = False) -> Spec:
    """The stacks of each year as a stacked bar, as Vega-Lite with its rows; as `shares` of the year."""
    order = [name for name, _ in ranked(census, kind)]
    title = "share of the year's stacks" if shares else "stacks of blocks"
    y_axis = alt.Axis(title=title, format="%" if shares else "d", tickCount=5)
    dated = [model for model in census.models if model.year is not None]
    of_year = Counter(model.year for model in dated)
    counts = Counter((model.year, words(model, kind)) for model in dated)
    rows: Rows = [
        {"year": year, "what": what, "n": n, "of": of_year[year], "place": order.index(what)}
        for (year, what), n in counts.items()
    ]
    columns = alt.ExprRef("width < 480 ? 2 : 4")
    key = alt.Legend(title=None, orient="bottom", labelLimit=200, columns=columns)
    spec = (
        named("years")
        .mark_bar()
        .encode(
            x=alt.X(
                "year:O", axis=alt.Axis(title="year in the code's copyright notice", labelAngle=0)
            ),
            y=alt.Y("n:Q", stack="normalize" if shares else "zero", axis=y_axis),
            color=_color(census, kind, key),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip(field) for field in ("year:O", "what:N", "n:Q", "of:Q")],
        )
        .properties(height=HEIGHT)
        .to_dict()
    )
    return filled(spec, {"years": rows})


def finding(census: Census, kind: Kind) -> str:
    """The picture in words: the most frequent one in the first and in the last year, and all counts."""
    counts = ranked(census, kind)
    top = counts[0][0]
    dated = [model for model in census.models if model.year is not None]
    ends = sorted({model.year for model in dated if model.year})
    shares = " and ".join(
        f"in {sum(words(m, kind) == top for m in dated if m.year == year)} of "
        f"{sum(m.year == year for m in dated)} stacks of {year}"
        for year in dict.fromkeys((ends[0], ends[-1]))
    )
    every = "; ".join(f"{n} {name}" for name, n in counts)
    return f"{kind}: {top} {shares}. All years: {every}."


def _color(census: Census, kind: Kind, legend: alt.Legend | None = None) -> alt.Color:
    """A colour for each placement, the same as elsewhere; grey for unknown ones."""
    keys = {words(m, kind): m.placement or "" for m in census.models} if kind == TITLES[0] else {}
    names = [name for name, _ in ranked(census, kind)]
    styles = lane_styles(tuple(keys.get(name, name) for name in names if name != UNTOLD))
    colors = [style.color for style in styles] + [GREY] * (UNTOLD in names)
    return alt.Color("what:N", scale=alt.Scale(domain=names, range=colors), legend=legend)
