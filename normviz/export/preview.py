"""The picture of a duel whose runs have ended, from the charts of the player; the still that the first paint
of the page makes of it; and the tags that name it to chats and feeds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .. import charts
from ..catalog import PROBES
from ..charts.base import Spec
from ..charts.palette import LaneStyle, paper
from ..lessons.anatomy.large import large
from ..player.message import Axes, ChartOptions, axes, specs
from ..runs.headline import headline
from ..runs.lane import Lane
from ..runs.names import caption, with_names
from ..runs.store.pictures import Picture
from . import vega
from .pictures import whole

PROBE = "grad_block"
"""The quantity of a picture; every lane records it."""
WIDTH = 402
"""Pixels of a chart: on the page of a laptop; on a phone it shrinks a little, on a desk it grows."""
CARD = (1200, 630)
"""Pixels of the picture for chats and feeds."""
INK, GREY = "#31333f", "#5b606b"
FONT = "'Source Sans','Source Sans 3','Segoe UI',system-ui,sans-serif"


def draw(lanes: Sequence[Lane]) -> Picture:
    """The picture of lanes that were run. Raises ValueError for lanes that can't be drawn."""
    lanes = with_names(lanes)
    specs_of = {side: _charts(lanes, side == "dark") for side in ("light", "dark")}
    svg, card = vega.parts_and_card(
        {f"{side}-{name}": spec for side, some in specs_of.items() for name, spec in some.items()},
        _card(lanes),
    )
    light, dark = (
        {name: svg[f"{side}-{name}"] for name in some} for side, some in specs_of.items()
    )
    return Picture(light, dark, card)


def _charts(lanes: Sequence[Lane], dark: bool) -> dict[str, Spec]:
    """Loss, bars and heatmaps at the last step, whole."""
    options = ChartOptions(dark=dark)
    drawn: Axes = axes(lanes, PROBE, options, live=False)
    rows = {
        "loss": charts.loss.chart(lanes, dark)["datasets"],
        "bars": charts.layers.rows_at(lanes, PROBE),
    }
    for i, lane in enumerate(lanes):
        heat = charts.heatmap.rows(lane, PROBE, drawn.values)
        rows[f"heat{i}"] = {**heat, **charts.heatmap.fixed(lane)}
    return {
        name: whole({**spec, "datasets": rows[name]}, WIDTH)
        for name, spec in specs(lanes, PROBE, drawn, options).items()
    }


def outcome(lanes: Sequence[Lane]) -> str:
    """What came of each lane, in words."""
    return " ".join(
        f"{name}: {lane.verdict}." for name, lane in zip(_headings(lanes), lanes, strict=True)
    )


def _headings(lanes: Sequence[Lane]) -> list[str]:
    """The lanes' names, which say what differs between them."""
    return [" ".join(lane.name.split()) for lane in with_names(lanes)]


# The picture for chats and feeds.

EDGE, LINE, TOP = 56, 36, 92
CHART = 322
"""Pixels of a chart's height with its axis, legend and note."""


def _card(lanes: Sequence[Lane]) -> str:
    """The picture as SVG: title, verdicts, and two charts that are drawn later, in place of comments."""
    width, height = CARD
    y = TOP + 12 + LINE * len(lanes)
    room = (width - 2 * EDGE - 32) // 2
    engines = [engine for lane in lanes for engine in lane.engines]
    head, settings, *by = caption([lane.config for lane in lanes], engines)
    lines = [_text(head, TOP - 12, 46, INK, 600)]
    shown = zip(_headings(lanes), lanes, charts.styles_of(lanes), strict=True)
    for i, (name, lane, style) in enumerate(shown):
        at = TOP + LINE * (i + 1)
        lines.append(_text(f"{name}  {lane.verdict}", at, 25, INK))
        lines.append(
            f'<rect x="{EDGE - 20}" y="{at - 22}" width="8" height="28" fill="{style.color}"/>'
        )
    below = [f"NormViz, {settings}", *by]
    bottom = height - 24 - 28 * len(below)
    lines += [_text(words, bottom + 32 + 28 * i, 21, GREY) for i, words in enumerate(below)]
    for i, name in enumerate(("light-loss", "light-bars")):
        place = f'x="{EDGE + i * (room + 32)}" y="{y}" width="{room}" height="{bottom - y}"'
        box = f'viewBox="0 0 {WIDTH} {CHART}" preserveAspectRatio="xMidYMin"'
        lines.append(f"<svg {place} {box}><!--{name}--></svg>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(lines)}</svg>'
    )


def _text(words: str, y: int, size: int, color: str, weight: int = 400) -> str:
    """A line of words; a long one is drawn smaller."""
    size = min(size, int((CARD[0] - 2 * EDGE) / (0.5 * max(1, len(words)))))
    return (
        f'<text x="{EDGE}" y="{y}" font-family="{FONT}" font-size="{size}" font-weight="{weight}" '
        f'fill="{color}">{escape(words)}</text>'
    )


# The still for the first paint of the page.

STYLE = f"""
#nv-still {{ position: fixed; inset: 2.75rem 0 0; z-index: 999990; overflow: auto; box-sizing: border-box;
  padding: .75rem max(5rem, 50vw - 700px + 5rem) 1rem; background: {paper(False)}; color: {INK};
  font: 16px/1.5 {FONT}; }}
#nv-still.nv-on-dark {{ background: {paper(True)}; color: #fafafa; }}
#nv-still h1 {{ font-size: 1.75rem; line-height: 2.3rem; font-weight: 700; margin: 0 0 .3rem; padding: 0; }}
#nv-still .nv-lanes {{ display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr);
  gap: .1rem 1.5rem; height: 7rem; margin-top: .5rem; }}
#nv-still p {{ margin: 0; padding-left: 1.6rem; height: 2.1rem; line-height: 2.1rem; font-size: .875rem;
  border-left: .5rem solid; }}
#nv-still p b {{ display: inline-block; min-width: 9.7rem; }}
#nv-still .nv-charts {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .4rem 1.2rem;
  width: calc(75% - 1rem); margin: 2.6rem 0 0 auto; }}
#nv-still figure {{ margin: 0; }}
#nv-still figcaption {{ height: 1.6rem; padding-top: .3rem; font-size: .875rem; }}
#nv-still svg {{ display: block; width: 100%; height: auto; }}
#nv-still :is(.nv-heat0, .nv-heat1, .nv-heat2, .nv-heat3) {{ margin-top: 3rem; }}
#nv-still.nv-embedded .nv-lanes {{ height: auto; margin: 0; }}
#nv-still.nv-embedded .nv-charts {{ width: auto; }}
#nv-still .nv-dark, #nv-still.nv-on-dark .nv-light {{ display: none; }}
#nv-still.nv-on-dark figure.nv-dark {{ display: block; }}
#nv-still.nv-on-dark .blocks.nv-dark {{ display: grid; }}
html:has(.nv-on-dark.nv-over) {{ background: {paper(True)}; }}
#nv-still:not(.nv-over) {{ display: none; }}
#nv-still.nv-over ~ #root, #nv-still.nv-over ~ #root *:not(.stAppHeader, .stAppHeader *) {{
  visibility: hidden !important; }}
#nv-still.nv-over ~ #root .stAppHeader {{ visibility: visible; }}
@media (max-width: 1000px) {{
  #nv-still .nv-charts {{ width: auto; margin-top: 11rem; }}
}}
@media (max-width: 640px) {{
  #nv-still {{ padding: .75rem .7rem 1rem; }}
  #nv-still h1 {{ font-size: 1.25rem; line-height: 1.5rem; margin-bottom: 3.1rem; }}
  #nv-still .nv-lanes {{ grid-auto-flow: row; height: auto; margin-bottom: 6.2rem; }}
  #nv-still p {{ padding-left: .5rem; height: 2.3rem; line-height: 1.2; }}
  #nv-still p b {{ min-width: 0; }}
  #nv-still .nv-charts {{ grid-template-columns: minmax(0, 1fr); margin-top: 0; }}
  #nv-still figure:is(.nv-bars, .nv-heat0, .nv-heat1, .nv-heat2, .nv-heat3) {{ display: none !important; }}
}}
"""
PATIENCE_MS = 20_000
"""The page is shown as it is after this time, even if the charts have not said that they are drawn."""
SCRIPT = """
(() => {
  const still = document.getElementById("nv-still"), options = new URLSearchParams(location.search);
  const themes = options.getAll("embed_options").filter((one) => one.endsWith("_theme"));
  let theme = themes.at(-1) ?? "";
  try {
    for (const [key, text] of Object.entries(localStorage)) {
      if (!theme && key.startsWith("stActiveTheme-" + location.pathname)) theme = text;
    }
  } catch { /* a browser that keeps nothing for this page */ }
  const usual = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  still.classList.toggle("nv-on-dark", (/dark|light/i.exec(theme)?.[0] ?? usual).toLowerCase() === "dark");
  still.classList.add("nv-over");  // only this script takes it away again
  const go = () => { still.remove(); clearInterval(looking); };
  addEventListener("normviz-drawn", go, { once: true });
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, go, { once: true });
  const began = performance.now();
  const looking = setInterval(() => {
    const find = (what) => document.querySelector(what);
    const other = find(".st-key-page_parts") && !find(".st-key-player");
    if (other || find("[role=dialog], .stException") || performance.now() - began > PATIENCE) go();
  }, 250);
})();
""".replace("PATIENCE", str(PATIENCE_MS))
"""A proxy that lets only known scripts run has its hash: see assets/deploy/nginx.conf."""


def still(
    lanes: Sequence[Lane], picture: Picture, embedded: bool = False, loss_only: bool = False
) -> str:
    """HTML of the finished charts that covers the page until the player has drawn them. `loss_only`: the page
    shows another quantity than the picture, of which the loss does not depend."""
    shown = list(zip(lanes, charts.styles_of(lanes), strict=True))
    verdicts = "".join(
        f'<p style="border-color: {style.color}"><b>{escape(name)}</b> {escape(lane.verdict)}</p>'
        for name, (lane, style) in zip(_headings(lanes), shown, strict=True)
    )
    names = {
        "loss": "Training loss",
        "bars": f"{PROBES[PROBE].label} in each {lanes[0].recording.row}",
    }
    sides = (("light", picture.light), ("dark", picture.dark))
    figures = "".join(
        f'<figure class="nv-{side} nv-{name}">'
        + (f"<figcaption><b>{escape(names[name])}</b></figcaption>" if name in names else "")
        + f"{svg}</figure>"
        for side, some in sides
        for name, svg in some.items()
        if name == "loss" or not loss_only
    )
    head = "" if embedded else f"<h1>{escape(headline(lanes))}.</h1>{_blocks(shown)}"
    return (
        f'<style>{STYLE}</style><div id="nv-still"{" class=nv-embedded" * embedded} role="img" '
        f'aria-label="{escape(outcome(lanes))}">'
        f'{head}<div class="nv-lanes">{verdicts}</div><div class="nv-charts">{figures}</div></div>'
        f"<script>{SCRIPT}</script>"
    )


def _blocks(lanes: Sequence[tuple[Lane, LaneStyle]]) -> str:
    """The block of each lane, as the page has them."""
    return "".join(
        f'<div class="blocks nv-{side}">'
        + "".join(
            f"<figure>{large(lane.config, style.color, dark=side == 'dark')}</figure>"
            for lane, style in lanes
        )
        + "</div>"
        for side in ("light", "dark")
    )


# What the served page says about itself.


def tags(title: str, words: str, url: str = "", image: str = "", alt: str = "") -> str:
    """Title, description and open-graph tags of a page: the preview of a link in a chat or a feed."""
    graph = [("og:type", "website"), ("og:site_name", "NormViz"), ("og:title", title),
             ("og:description", words)]  # fmt: skip
    if image:
        graph += [
            ("og:image", image),
            ("og:image:type", "image/png"),
            ("og:image:alt", alt or title),
        ]
    if url:
        graph.append(("og:url", url))
    lines = [f'<meta property="{name}" content="{escape(text)}">' for name, text in graph]
    lines.append(f'<meta name="description" content="{escape(words)}">')
    if image:
        lines.append('<meta name="twitter:card" content="summary_large_image">')
    return "\n".join(lines)
