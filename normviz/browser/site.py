"""Replays for any static host: a folder with one page per duel, its picture, and an index.

The duels are all shipped ones, and the stored runs named on the command line. All links are relative and no
page loads anything from another host, so the folder also works from a disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin

from .. import charts
from ..charts import thumb
from ..config import RunConfig
from ..export.pictures import picture
from ..export.preview import tags
from ..export.replay import replay
from ..lessons.presets import PRESETS
from ..lessons.tour import STEPS
from ..limits import MAX_LANES
from ..observed import KEY
from ..player import SCRIPTS, version
from ..runs import Run, names
from ..runs.frames import Frames
from ..runs.lane import LETTERS, Lane, stored_lane
from ..runs.store import Store
from . import page as trained

NUMBER = re.compile(r"\d{1,18}")
TOUR = "The tour"


@dataclass(frozen=True)
class SiteDuel:
    """One page of a site.

    name   its file name without suffix
    group  the heading above it on the index
    words  instructions and result, as plain text
    probe  the quantity that is shown first, or None
    """

    name: str
    group: str
    title: str
    words: str
    lanes: tuple[Lane, ...]
    probe: str | None = None


def shipped_duels(store: Store) -> list[SiteDuel]:
    """All presets, and the steps of the tour. Raises ValueError if one of their runs is not stored."""
    frames = Frames(store)
    duels = [
        SiteDuel(
            preset.key, "Duels", preset.question, preset.sentence,
            _lanes([_known(store, config) for config in preset.lanes()], frames),
        )
        for preset in PRESETS
    ]  # fmt: skip
    for number, step in enumerate(STEPS, start=1):
        runs = [_known(store, config) for config in step.lanes()]
        caption = step.caption(tuple(map(frames.recording, runs)))
        words = " ".join(filter(None, (step.where(), caption)))
        duels.append(
            SiteDuel(
                f"tour-{number}-{step.key}", TOUR, f"{number}. {step.title}",
                words.replace("*", ""), _lanes(runs, frames), step.probe,
            )
        )  # fmt: skip
    return duels


def chosen_duels(store: Store, words: Sequence[str]) -> list[SiteDuel]:
    """One duel per word: the number or key of a run, or up to four of them separated by commas.

    Raises ValueError with a sentence.
    """
    frames, duels = Frames(store), dict[str, SiteDuel]()
    for word in words:
        runs = [_named(store, part.strip()) for part in word.split(",")]
        if len(runs) > MAX_LANES:
            raise ValueError(f"{word!r} names {len(runs)} runs, allowed are up to {MAX_LANES}")
        name = f"run-{'-'.join(str(run.id) for run in runs)}"
        title = names.title([run.config for run in runs])
        duels[name] = SiteDuel(name, "Chosen runs", title, "", _lanes(runs, frames))
    return list(duels.values())


def _lanes(runs: Sequence[Run], frames: Frames) -> tuple[Lane, ...]:
    return tuple(stored_lane(name, run, frames) for name, run in zip(LETTERS, runs, strict=False))


def _known(store: Store, config: RunConfig) -> Run:
    run = store.latest(config.key)
    if run is None or not run.is_done:
        raise ValueError(
            f"the store {store.folder} lacks the run {config.key}, which ships with NormViz: install "
            "NormViz anew, or train it with `normviz ship`"
        )
    return run


def _named(store: Store, word: str) -> Run:
    """The run that a word names. It has at least one step."""
    run = None
    if KEY.fullmatch(word):
        run = store.latest(word)
    elif NUMBER.fullmatch(word):
        run = store.run(int(word))
    else:
        raise ValueError(
            f"{word[:80]!r} names no run: allowed are the number of a run (`normviz runs` lists them) "
            "or its key, such as e2-0123456789abcdef"
        )
    if run is None:
        raise ValueError(
            f"the store {store.folder} has no run {word}: `normviz runs` lists those it has, and "
            "--data names another folder"
        )
    if not len(store.steps(run).step):
        raise ValueError(f"run {word} is {run.status} and has no steps to replay")
    return run


# The files of the folder.

PICTURE_WIDTH = 760

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


def site(
    duels: Sequence[SiteDuel], title: str, url: str = "", live: Literal["", "folder", "file"] = ""
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files. `url` is the folder's final address, if known: previews of
    links need the absolute address of their picture. `live` adds a page that trains, whose models are files
    beside it or all in one file."""
    scripts = {f"{name}-{version(text)}.js": text for name, text in SCRIPTS.items()}
    yield from ((name, text.encode()) for name, text in scripts.items())
    cards: dict[str, list[str]] = {}
    tour = [f"{duel.name}.html" for duel in duels if duel.group == TOUR]
    for duel in duels:
        lanes = names.with_names(duel.lanes)
        yield (
            f"{duel.name}.png",
            picture(
                charts.loss.chart(lanes), "png", width=PICTURE_WIDTH, config=charts.theme(False)
            ),
        )
        description = " ".join(filter(None, (duel.words, _outcome(duel))))
        at = tour.index(f"{duel.name}.html") if duel.group == TOUR else None
        text = replay(
            duel.lanes, duel.probe, title=f"NormViz: {duel.title}", words=description, scripts=tuple(scripts),
            head=_tags(duel.title, description, url, f"{duel.name}.html", f"{duel.name}.png",
                       thumb.finding(lanes)),
            up="index.html", before=tour[at - 1] if at else "",
            after=tour[at + 1] if at is not None and at + 1 < len(tour) else "",
        )  # fmt: skip
        yield f"{duel.name}.html", text.encode()
        cards.setdefault(duel.group, []).append(_card(duel, lanes))
    groups = "\n".join(
        f"<h2>{escape(group)}</h2>\n<ul>\n{''.join(some)}</ul>" for group, some in cards.items()
    )
    first = duels[0].name if duels else ""
    head = _tags(title, WORDS, url, "index.html", f"{first}.png")
    if live:
        yield from trained.live_page(
            [duel.lanes for duel in duels],
            _tags(trained.LIVE_TITLE, trained.WORDS, url, "live.html", f"{first}.png"),
            one_file=live == "file", up="index.html", scripts=tuple(scripts),
        )  # fmt: skip
        groups = f'<p><a href="live.html">{trained.LIVE_TITLE}</a></p>\n{groups}'
    page = INDEX.format(title=escape(title), words=escape(WORDS), groups=groups, head=head)
    yield "index.html", page.encode()


def _tags(title: str, words: str, url: str, file: str, image: str, alt: str = "") -> str:
    """The tags of a page `file` of the folder at `url`, with its picture beside it."""
    return tags(title, words, urljoin(url, file) if url else "", urljoin(url, image), alt)


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
    return " ".join(f"{lane.letter}: {lane.verdict}." for lane in duel.lanes)


def _card(duel: SiteDuel, lanes: Sequence[Lane]) -> str:
    alt = escape(thumb.finding(lanes))
    drawn = thumb.svg(lanes).replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
    return (
        f'<li>{drawn}<a href="{duel.name}.html">{escape(duel.title)}</a>'
        f"<p>{escape(_outcome(duel))}</p></li>\n"
    )
