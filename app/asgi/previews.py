"""The previews of stored duels: drawn once, kept in memory, and never more than the server can spare.

A preview takes about three seconds of one core. So one is drawn at a time, in another process, and few
a minute, whatever clients ask for. A request beyond that gets none for now.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from normviz import links
from normviz.config import RunConfig
from normviz.export import preview
from normviz.lessons.tour import STEPS
from normviz.limits import MAX_LANES
from normviz.runs.frames import Frames
from normviz.runs.lane import LETTERS, Lane, stored_lane
from normviz.runs.names import title
from normviz.runs.store import Store

from ..session import duel_link
from ..session.backend import opened
from ..session.pages import DUEL

A_MINUTE = 10
"""Previews that are drawn in a minute, at most."""
WAITING = 3
"""Previews that wait to be drawn, at most."""
MOST_BYTES = 16 * 2**20
"""Of all previews in memory; one takes about 0.4 megabytes."""

T = TypeVar("T")
log = logging.getLogger(__name__)
_threads = ThreadPoolExecutor(2, thread_name_prefix="normviz-preview")
"""They read links and the store: a slow disk must not hold up what else the server answers."""


async def in_thread(work: Callable[..., T], *given: object) -> T:
    """Run `work` in one of the threads that read for previews."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *given)


@dataclass(frozen=True)
class LinkedDuel:
    """What an address leads to. `lanes` is empty unless every lane has a stored result that the page
    shows at once; `key` names what is drawn of them."""

    title: str
    words: str
    query: str = ""
    lanes: tuple[Lane, ...] = ()
    key: tuple[object, ...] = ()
    probe: str = duel_link.PROBE


def read(params: dict[str, list[str]]) -> LinkedDuel:
    """The duel of an address and its stored results. Never raises for what a link holds."""
    asked = duel_link.decode(params)
    if not asked.lanes:
        return LinkedDuel(DUEL.name, DUEL.words)
    query = links.query(duel_link.params(asked.lanes, probe=asked.probe))
    step = STEPS[asked.story - 1] if asked.story else None
    named = f"The tour: {step.title}" if step and asked.link is None else title(asked.lanes)
    if step and step.question:  # the answer is to be guessed
        return LinkedDuel(named, DUEL.words)
    it = opened()
    found = lanes(asked.lanes, it.store, it.frames)
    if not found or all(asked.probe not in lane.recording.probes for lane in found):
        return LinkedDuel(named, DUEL.words, query)
    key = (asked.probe, *(lane.key for lane in found))
    return LinkedDuel(named, preview.outcome(found), query, found, key, asked.probe)


def lanes(configs: Sequence[RunConfig], store: Store, frames: Frames) -> tuple[Lane, ...]:
    """The lanes with their stored results; none if one of them has none with a step."""
    runs = [store.latest(config.key) for config in configs[:MAX_LANES]]
    done = [run for run in runs if run is not None and run.is_done]
    if len(done) < len(configs):
        return ()
    found = tuple(stored_lane(name, run, frames) for name, run in zip(LETTERS, done, strict=False))
    return found if all(len(lane.recording.steps) for lane in found) else ()


class Previews:
    """Draws previews and keeps the latest. Used from the event loop and from script threads."""

    def __init__(self, draw: Callable[..., preview.Preview] = preview.draw) -> None:
        self._draw = draw
        self._kept: OrderedDict[tuple[object, ...], preview.Preview] = OrderedDict()
        self._coming: dict[tuple[object, ...], Future[preview.Preview | None]] = {}
        self._begun: deque[float] = deque(maxlen=A_MINUTE)
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="normviz-draw")

    def kept(self, duel: LinkedDuel) -> preview.Preview | None:
        """The duel's preview, if it is drawn."""
        with self._lock:
            if duel.key not in self._kept:
                return None
            self._kept.move_to_end(duel.key)
            return self._kept[duel.key]

    def request(self, duel: LinkedDuel) -> Future[preview.Preview | None] | None:
        """Draw the duel's preview; None if it is drawn, or too many are, or it has no stored result."""
        if not duel.lanes or self.kept(duel) is not None:
            return None
        if duel.key in self._coming:
            return self._coming[duel.key]
        now = time.monotonic()
        full = len(self._begun) == A_MINUTE and now - self._begun[0] < 60
        if full or len(self._coming) >= WAITING:
            return None
        self._begun.append(now)
        coming = self._coming[duel.key] = self._thread.submit(self._make, duel)
        return coming

    def _make(self, duel: LinkedDuel) -> preview.Preview | None:
        try:
            drawn = self._draw(duel.lanes, duel.probe)
            with self._lock:
                self._kept[duel.key] = drawn
                while sum(one.nbytes for one in self._kept.values()) > MOST_BYTES:
                    self._kept.popitem(last=False)
            return drawn
        except (ValueError, OSError) as error:
            log.warning("the preview of %s: %s", duel.query, error)
            return None
        finally:
            self._coming.pop(duel.key, None)


PREVIEWS = Previews()
"""Of this server."""
