"""Names of a duel and of its lanes: the placements, and what else differs between the lanes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..config import SETTINGS, RunConfig, seeds_of
from ..links import FIELDS, shown
from ..observed import Observed, Settings, label
from .engines import computed_by
from .lane import Lane

LONGEST = 80
"""Characters of a file's name before its suffix."""
NAMED = 2
"""Settings in a lane's name at most; further ones are counted."""
UNNAMED = ("scheme", "lr_edits", "text")
OFF = ("off", None)
"""Values that are not named: a lane without QK-norm is a lane with nothing more to say."""


def difference(config: Settings, others: Sequence[Settings]) -> str:
    """The lane's values of the settings that differ between the lanes, for example "warm-up 200": first
    those that tell lanes of one placement apart, then those that the first lane has otherwise; as many as
    no other lane of its placement has. Empty if the placement alone differs. A run that was observed has
    no settings: beside lanes that have some it is "observed"."""
    if isinstance(config, Observed):
        return "observed" if any(not isinstance(lane, Observed) for lane in others) else ""
    lanes = [lane for lane in others if not isinstance(lane, Observed)]
    words = _differing(config, lanes)
    alike = [_differing(lane, lanes) for lane in lanes if lane.scheme == config.scheme]
    apart = [each for each in alike if each != words]
    named = NAMED
    while named < len(words) and any(each[:named] == words[:named] for each in apart):
        named += 1
    more = f" and {len(words) - named} more" if len(words) > named else ""
    return ", ".join(words[:named]) + more


def _differing(config: RunConfig, lanes: Sequence[RunConfig]) -> list[str]:
    """The values of the settings that differ between the lanes, in the order in which they are named."""
    alike = [lane for lane in lanes if lane.scheme == config.scheme]
    fields = [
        name
        for name in FIELDS
        if name not in UNNAMED and len({getattr(lane, name) for lane in (config, *lanes)}) > 1
    ]
    fields.sort(
        key=lambda name: (
            len({getattr(lane, name) for lane in alike}) < 2,
            bool(lanes) and getattr(config, name) == getattr(lanes[0], name),
        )
    )
    return [_words(name, config) for name in fields if getattr(config, name) not in OFF]


def lane_name(
    letter: str, config: Settings, among: Sequence[Settings], repeated: bool = False
) -> str:
    """ "B  Post-LN, warm-up 200": the name of one lane among all lanes of its duel; with its seed where it
    is `repeated` from others."""
    name = f"{letter}  {', '.join(filter(None, (label(config), difference(config, among))))}"
    if repeated and "seed" not in name and isinstance(config, RunConfig):
        return f"{name}, {seeds_of(config)}"
    return name


def with_names(lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes, each with the name that says what differs between them."""
    among = [lane.config for lane in lanes]
    return [
        replace(lane, name=lane_name(lane.letter, lane.config, among, bool(lane.repeats)))
        for lane in lanes
    ]


def placements(lanes: Sequence[Settings]) -> list[str]:
    """The lanes' placements; "Post-LN with warm-up 200" where two lanes have the same one."""
    labels = [_bracketed(label(lane)) for lane in lanes]
    if len(set(labels)) == len(labels):
        return labels
    differences = (difference(lane, lanes) for lane in lanes)
    return [
        f"{label} with {words}" if words else label
        for label, words in zip(labels, differences, strict=True)
    ]


def title(lanes: Sequence[Settings]) -> str:
    """ "Pre-LN against Post-LN"."""
    return " against ".join(placements(lanes))


def file_name(lanes: Sequence[Settings]) -> str:
    """What files of a duel are called: "normviz-pre-ln-against-post-ln"."""
    words = re.sub(r"[^a-z0-9]+", "-", title(lanes).lower()).strip("-")
    return f"normviz-{words}"[:LONGEST].rstrip("-")


def in_file(scheme: str) -> str:
    """A placement's key as a part of a file's name; one of the visitor's own has signs that none may have."""
    return re.sub(r"[^\w.-]+", "-", scheme)[:LONGEST]


def settings(lanes: Sequence[Settings], repeats: Sequence[Settings] = ()) -> str:
    """What the runs were trained with, in words, with every value where lanes differ, and the seeds of their
    repeats."""
    configs = [lane for lane in lanes if isinstance(lane, RunConfig)]
    if len(configs) < len(lanes):
        each = dict.fromkeys(f"{lane.depth} blocks, width {lane.width}" for lane in lanes)
        return "; ".join(each)
    named = {
        "depth": "{} blocks",
        "width": "width {}",
        "norm": "{}",
        "init": "{} initialisation",
        "task": "{}",
        "lr": "learning rate {}",
        "warmup": "warm-up {}",
        "steps": "{} steps",
    }
    if not any(config.warmup for config in configs):
        del named["warmup"]
    each = [
        words.format(" / ".join(dict.fromkeys(shown(name, getattr(c, name)) for c in configs)))
        for name, words in named.items()
    ]
    seeded = [*configs, *(lane for lane in repeats if isinstance(lane, RunConfig))]
    return ", ".join((*each, " / ".join(dict.fromkeys(map(seeds_of, seeded)))))


def caption(
    lanes: Sequence[Settings], engines: Iterable[str], repeats: Sequence[Settings] = ()
) -> list[str]:
    """What saved charts say, a line each: the duel, its settings with the seeds of its repeats, and the
    engines of its runs."""
    return [line for line in (title(lanes), settings(lanes, repeats), computed_by(engines)) if line]


def _bracketed(name: str) -> str:
    """A name as it stands in a sentence: "Parallel (two norms)" for "Parallel, two norms"."""
    first, comma, rest = name.partition(", ")
    return f"{first} ({rest})" if comma else name


def _words(name: str, config: Settings) -> str:
    """ "warm-up 200"; a choice of norm or initialisation is a name that needs no title before it."""
    value = shown(name, getattr(config, name))
    if name == "init":
        return f"{_bracketed(value)} init"
    if name in ("qk_norm", "v_norm", "attn_gate"):
        return f"{SETTINGS[name].title} ({value[:1].lower()}{value[1:]})"
    return value if name in ("norm", "family") else f"{SETTINGS[name].title} {value}"
