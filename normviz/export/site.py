"""A folder of replays for any static host: one page per duel, its picture, and an index.

All links are relative and no page loads anything from another host. So the folder also works from a
disk, and after the server that made it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from urllib.parse import urljoin

from .. import charts
from ..charts import thumb
from ..frames import LaneFrame
from ..player import SCRIPTS, charts_at, version
from .pictures import picture
from .replay import frame, replay
from .site_duels import SiteDuel

PICTURE_WIDTH = 760
SHOWN = "grad_block"

INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
{head}
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 1000px; padding: 0 1rem; }}
ul {{ list-style: none; padding: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); }}
li {{ border: 1px solid #8885; border-radius: .5rem; padding: .7rem .9rem; }}
li svg {{ display: block; max-width: 100%; background: #fff; border-radius: .3rem; }}
a {{ color: inherit; }}
p {{ margin: .3rem 0 0; font-size: .9rem; }}
</style></head>
<body><h1>{title}</h1><p>{words}</p>
{groups}
</body></html>
"""
WORDS = (
    "What does it do to a transformer where you put the norm? Measured runs, replayed in your browser: "
    "nothing is computed on a server, and nothing is fetched from another one."
)


def site(duels: Sequence[SiteDuel], title: str, url: str = "") -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files. `url` is the folder's final address, if known: previews of
    links need the absolute address of their picture."""
    scripts = {f"{name}-{version(text)}.js": text for name, text in SCRIPTS.items()}
    yield from ((name, text.encode()) for name, text in scripts.items())
    cards: dict[str, list[str]] = {}
    for duel in duels:
        lanes = [frame(lane, SHOWN) for lane in duel.lanes]
        last = max(len(lane.loss) for lane in lanes) - 1
        drawn = charts_at(lanes, last)["loss"]()
        yield (
            f"{duel.name}.png",
            picture(drawn, "png", width=PICTURE_WIDTH, look=charts.look(False)),
        )
        said = " ".join(filter(None, (duel.words, _outcome(duel))))
        text = replay(
            duel.lanes, duel.probe, title=f"NormViz: {duel.title}", words=said, scripts=tuple(scripts),
            head=preview(duel.title, said, f"{duel.name}.html", url, thumb.finding(lanes)),
            up="index.html",
        )  # fmt: skip
        yield f"{duel.name}.html", text.encode()
        cards.setdefault(duel.group, []).append(_card(duel, lanes))
    groups = "\n".join(
        f"<h2>{escape(group)}</h2>\n<ul>\n{''.join(some)}</ul>" for group, some in cards.items()
    )
    first = duels[0].name if duels else ""
    head = preview(title, WORDS, "index.html", url, picture_of=first)
    page = INDEX.format(title=escape(title), words=escape(WORDS), groups=groups, head=head)
    yield "index.html", page.encode()


def preview(
    title: str, words: str, file: str, url: str = "", alt: str = "", picture_of: str = ""
) -> str:
    """Open-graph tags: the preview of a link to the page `file` in a chat or a feed."""
    image = f"{picture_of or file.removesuffix('.html')}.png"
    tags = [
        ("og:type", "website"),
        ("og:site_name", "NormViz"),
        ("og:title", title),
        ("og:description", words),
        ("og:image", urljoin(url, image)),
        ("og:image:type", "image/png"),
        ("og:image:alt", alt or title),
    ]
    if url:
        tags.append(("og:url", urljoin(url, file)))
    lines = [f'<meta property="{name}" content="{escape(text)}">' for name, text in tags]
    lines.append(f'<meta name="description" content="{escape(words)}">')
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    return "\n".join(lines)


def write(folder: Path, files: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """Write the files into a new or empty folder; yields their names as they are written.

    Raises ValueError if the folder is not empty: no file is overwritten.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"{str(folder)!r} is not empty, and nothing in it is overwritten: name a folder that is "
            "new or empty"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_bytes(content)
        yield name


def _outcome(duel: SiteDuel) -> str:
    return " ".join(f"{lane.name}: {lane.facts.verdict}." for lane in duel.lanes)


def _card(duel: SiteDuel, lanes: Sequence[LaneFrame]) -> str:
    alt = escape(thumb.finding(lanes))
    drawn = thumb.svg(lanes).replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
    return (
        f'<li>{drawn}<a href="{duel.name}.html">{escape(duel.title)}</a>'
        f"<p>{escape(_outcome(duel))}</p></li>\n"
    )
