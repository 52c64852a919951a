"""An address of the Duel page: a preset, a step of the tour or settings, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from normviz import links
from normviz.catalog import PROBES
from normviz.config import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS, numbered
from normviz.limits import SEEDS
from normviz.links import (  # fmt: skip
    BESIDE,
    CURSOR,
    DUEL,
    VIEW,
    Codec,
    Link,
    Params,
    Problem,
    as_params,
    cut,
)
from normviz.player import VIEWS, View

PRESET = Codec(("preset",))
PROBE = "grad_block"
HEAT: View = "heat"
"""The quantity and the chart that a duel shows where its link names none."""
SEEDS_SHOWN = ("1", str(SEEDS))


@dataclass(frozen=True)
class DuelLink:
    """What an address asks of the Duel page.

    lanes     the lanes to show; none where the link has problems
    is_named  whether it names settings, a preset or a step of the tour: without them it asks for the duel
              that the page opens with
    link      the link of settings or of a preset, with its problems; None where it names neither
    story     the step of the tour, from 1; 0 without one
    probe     the quantity, and `view` the chart, that the page shows
    seeds     runs of each lane from as many seeds are shown
    beside    the key of an observed run; empty without one
    cursor    the step ("at") and the layer at which the charts start
    notices   a sentence for each part that is not used
    """

    lanes: tuple[RunConfig, ...]
    is_named: bool = True
    link: Link | None = None
    story: int = 0
    probe: str = PROBE
    view: View = HEAT
    seeds: int = 1
    beside: str = ""
    cursor: dict[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def decode(params: Params) -> DuelLink:
    """Read the parameters of an address. Never raises for what they hold."""
    link, word = _link(params), _word(params, "story")
    story = numbered(word) or 0
    step = STEPS[story - 1] if story and link is None else None
    lanes = link.lanes if link else step.lanes() if step else PRESETS["hero"].lanes()
    refusals = _notices(params)
    if word and not story:
        refusals.append(
            f"The link names step {cut(word)} of the tour, which has steps 1 to {len(STEPS)}."
        )
    cursor, wrong = _cursor(params, lanes or PRESETS["hero"].lanes())
    probe, view, seeds = (_word(params, name) for name in VIEW)
    return DuelLink(
        lanes,
        is_named=link is not None or bool(story),
        link=link,
        story=story,
        probe=probe if probe in PROBES else step.probe if step else PROBE,
        view=view if view in VIEWS else HEAT,
        seeds=SEEDS if seeds == str(SEEDS) else 1,
        beside=_word(params, BESIDE),
        cursor=cursor,
        notices=(*refusals, *wrong),
    )


def params(
    lanes: Sequence[RunConfig],
    story: int = 0,
    beside: str = "",
    seeds: int = 1,
    *,
    probe: str = PROBE,
    view: str = HEAT,
    cursor: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """The parameters of a duel and its view, without what a link means anyway."""
    choices = {
        "story": (str(story), "0"), "probe": (probe, PROBE), "view": (view, HEAT),
        "seeds": (str(seeds), "1"), BESIDE: (beside, ""),
    }  # fmt: skip
    words = {name: word for name, (word, usual) in choices.items() if word != usual}
    at = {name: str(value) for name, value in (cursor or {}).items()}
    return as_params(lanes) | words | at


def _word(params: Params, name: str) -> str:
    return next(iter(params.get(name, ())), "")


def _link(params: Params) -> Link | None:
    """The link of a preset or of settings."""
    if "preset" not in params:
        return links.decode(params) if DUEL.reads(params) else None
    key, problems = _word(params, "preset"), PRESET.problems(params)
    if DUEL.given(params):
        problems.append("the link names a preset and settings, allowed is one of them")
    if key not in PRESETS:
        problems.append(f"the link names the {PRESETS.unknown(key).removesuffix('.')}")
    if problems:
        return Link(problems=tuple(map(Problem, problems)))
    return Link(PRESETS[key].lanes())


def _cursor(params: Params, lanes: Sequence[RunConfig]) -> tuple[dict[str, int], list[str]]:
    """The step and the layer that a link sets the cursor to, and a sentence for each that no lane has."""
    most = {
        "at": max(lane.steps for lane in lanes) - 1,
        "layer": max(lane.depth for lane in lanes),
    }
    cursor: dict[str, int] = {}
    wrong = []
    for name in CURSOR:
        word = _word(params, name)
        is_whole = word.isascii() and word.isdecimal() and len(word) < 10
        if is_whole and int(word) <= most[name]:
            cursor[name] = int(word)
        elif word:
            wrong.append(
                f"The link sets {name} to {cut(word)}, allowed is a whole number from 0 to "
                f"{max(0, most[name])}: not used."
            )
    return cursor, wrong


def _notices(params: Params) -> list[str]:
    """A sentence for each unknown value of a view parameter, and for names that are not settings."""
    sentences = [
        f"The link gives {name} {len(params[name])} times, allowed is once: the first one is used."
        for name in (*VIEW, *CURSOR, BESIDE, "story")
        if len(params.get(name, ())) > 1
    ]
    probe, view, seeds = (_word(params, name) for name in VIEW)
    if probe and probe not in PROBES:
        sentences.append(f"The link names {PROBES.unknown(probe[:40])} The page shows {PROBE}.")
    if view and view not in VIEWS:
        sentences.append(
            f"The link names the view {cut(view)}, allowed are {', '.join(VIEWS)}. The page shows {HEAT}."
        )
    if seeds and seeds not in SEEDS_SHOWN:
        sentences.append(
            f"The link asks for {cut(seeds)} seeds, allowed is {' or '.join(SEEDS_SHOWN)}. The page "
            f"shows {SEEDS_SHOWN[0]}."
        )
    return sentences + DUEL.others(params)
