"""The duel that an address leads to, and what of it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from normviz import links
from normviz.config import RunConfig
from normviz.export import preview
from normviz.lessons.tour import STEPS
from normviz.runs.lane import LETTERS, Lane, stored_lane
from normviz.runs.names import title
from normviz.runs.store import pictures
from normviz.runs.store.pictures import Picture

from ..session import duel_link
from ..session.backend import SharedBackend, opened
from ..session.pages import DUEL


@dataclass(frozen=True)
class LinkedDuel:
    """What an address leads to: a title, words and a link of its settings. `lanes` and `picture` are of
    stored results that the page shows at once; `is_usual`: with the quantity of the picture."""

    title: str
    words: str
    query: str = ""
    lanes: tuple[Lane, ...] = ()
    picture: Picture | None = None
    is_usual: bool = True


def find(params: dict[str, list[str]]) -> LinkedDuel:
    """The duel of an address and its stored results. Never raises for what a link holds."""
    asked = duel_link.decode(params)
    if not asked.lanes:
        return LinkedDuel(DUEL.name, DUEL.words)
    step = STEPS[asked.story - 1] if asked.story else None
    named = f"The tour: {step.title}" if step and asked.link is None else title(asked.lanes)
    if step and step.question:  # the answer is to be guessed
        return LinkedDuel(named, DUEL.words)
    query = links.query(duel_link.params(asked.lanes))
    backend = opened()
    lanes = _ended(asked.lanes, backend)
    if not lanes:
        return LinkedDuel(named, DUEL.words, query)
    picture = pictures.of(backend.store, [run.id for lane in lanes for run in lane.recordings])
    return LinkedDuel(
        named, preview.outcome(lanes), query, lanes, picture, asked.probe == preview.PROBE
    )


def _ended(configs: Sequence[RunConfig], backend: SharedBackend) -> tuple[Lane, ...]:
    """The lanes with their stored results; none if one of them has none with a step."""
    runs = [backend.store.latest(config.key) for config in configs]
    done = [run for run in runs if run is not None and run.is_done]
    if len(done) < len(configs):
        return ()
    lanes = tuple(
        stored_lane(letter, run, backend.frames) for letter, run in zip(LETTERS, done, strict=False)
    )
    return lanes if all(len(lane.recording.steps) for lane in lanes) else ()
