"""The duels of a site: all shipped ones, and the stored runs named on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..catalog import SCHEMES
from ..config import RunConfig
from ..frames import Frames
from ..limits import MAX_LANES
from ..presets import PRESETS
from ..store import Run, Store
from ..tour import STEPS, Told
from .lane import ExportLane, stored_lane

KEY = re.compile(r"e\d+-[0-9a-f]{16}")
NUMBER = re.compile(r"\d{1,18}")


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
    lanes: tuple[ExportLane, ...]
    probe: str | None = None


def shipped_duels(store: Store) -> list[SiteDuel]:
    """All presets, and the steps of the tour. Raises ValueError if one of their runs is not stored."""
    frames = Frames(store)
    found = [
        SiteDuel(
            preset.key, "Duels", preset.question, preset.sentence,
            _lanes([_known(store, config) for config in preset.lanes()], frames),
        )
        for preset in PRESETS
    ]  # fmt: skip
    for number, step in enumerate(STEPS, start=1):
        runs = [_known(store, config) for config in step.lanes()]
        told = tuple(Told(run, frames.steps(run), frames.verdict(run)) for run in runs)
        words = " ".join(filter(None, (step.where(), step.caption(told))))
        found.append(
            SiteDuel(
                f"tour-{number}-{step.key}", "The tour", f"{number}. {step.title}",
                words.replace("**", ""), _lanes(runs, frames), step.probe,
            )
        )  # fmt: skip
    return found


def chosen_duels(store: Store, words: Sequence[str]) -> list[SiteDuel]:
    """One duel per word: the number or key of a run, or up to four of them separated by commas.

    Raises ValueError with a sentence.
    """
    frames, found = Frames(store), dict[str, SiteDuel]()
    for word in words:
        runs = [_named(store, part.strip()) for part in word.split(",")]
        if len(runs) > MAX_LANES:
            raise ValueError(f"{word!r} names {len(runs)} runs, allowed are up to {MAX_LANES}")
        name = f"run-{'-'.join(str(run.id) for run in runs)}"
        title = " against ".join(SCHEMES.label(run.config.scheme) for run in runs)
        found[name] = SiteDuel(name, "Chosen runs", title, "", _lanes(runs, frames))
    return list(found.values())


def _lanes(runs: Sequence[Run], frames: Frames) -> tuple[ExportLane, ...]:
    return tuple(stored_lane(name, run, frames) for name, run in zip("ABCD", runs, strict=False))


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
            "or its key, such as e1-0123456789abcdef"
        )
    if run is None:
        raise ValueError(
            f"the store {store.folder} has no run {word}: `normviz runs` lists those it has, and "
            "--data names another folder"
        )
    if not len(store.steps(run).step):
        raise ValueError(f"run {word} is {run.status} and has no steps to replay")
    return run
