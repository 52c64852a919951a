"""The questions of the guide, the options of each, and a visitor's answers as a link.

depth=16&tuned=no&precision=bf16&start=existing&model=bert
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cache
from math import log

from ...catalog.models import census
from ...catalog.registry import Registry, meant
from ...links import Codec, Params, cut
from ...studies.maps.link import standard

MAP, DEEPER, MODERN = "xavier", "deep", "modern"
"""The map of the guide; the one of more depths, with the same norm and at the rates that are compared; and
the one with RMSNorm and QK-norm, at one depth."""
GUESSES = (0.001, 0.003, 0.01, 0.03)
"""The learning rates at which placements are compared at every depth: from about a third of the lowest rate
that is the best one of a placement at some depth, to three times the highest."""


@dataclass(frozen=True)
class Option:
    """An answer that a visitor can choose."""

    key: str
    label: str


@dataclass(frozen=True)
class Answers:
    """A visitor's answers, as keys of `options`. `model` counts only where `start` is existing."""

    depth: str = "16"
    tuned: str = "no"
    precision: str = "bf16"
    start: str = "scratch"
    model: str = "bert"


NAMES = tuple(field.name for field in fields(Answers))
SECTION = "section"
"""The parameter of a link that leads to a part of the page, as in section=cost."""
SECTIONS = ("cost",)
CODEC = Codec(NAMES, asdict(Answers()), (SECTION,), version="")
TITLES = {
    "start": "Do you have a model?", "model": "Which model?", "depth": "How many blocks?",
    "tuned": "Tune the learning rate?", "precision": "Precision?",
}  # fmt: skip


@cache
def depths(*keys: str) -> tuple[int, ...]:
    """The depths that these maps measured, by default both of the guide's, ascending."""
    grids = [standard(key).grid for key in keys or (MAP, DEEPER)]
    return tuple(sorted({cell.config.depth for grid in grids for cell in grid.cells}))


def map_of(depth: int) -> str:
    """The guide's map that measured a depth."""
    return MAP if depth in depths(MAP) else DEEPER


def nearest(depth: int) -> str:
    """The answer to the question of the depth that is nearest to a number of blocks, by ratio."""
    if depth > max(depths()):
        return "more"
    return str(min(depths(), key=lambda measured: abs(log(measured / depth))))


@cache
def options(name: str) -> Registry[Option]:
    """The options of a question."""
    given: dict[str, dict[str, str]] = {
        "depth": {str(depth): str(depth) for depth in depths()}
        | {"more": f"more than {max(depths())}"},
        "tuned": {"no": "No, one guess", "yes": "Yes"},
        "precision": {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8"},
        "start": {"scratch": "No, from scratch", "existing": "Yes, an existing one"},
        "model": {key: key for key in sorted({model.model for model in census().models})},
    }
    return Registry(name, (Option(key, label) for key, label in given[name].items()))


def as_params(answers: Answers) -> dict[str, str]:
    """The query parameters of the answers."""
    names = NAMES if answers.start == "existing" else NAMES[:-1]
    return CODEC.params({name: getattr(answers, name) for name in names}, always=names)


def decode(params: Params) -> tuple[Answers, tuple[str, ...]]:
    """The answers of a link, and a sentence for each part of it that is not used."""
    taken: dict[str, str] = {}
    sentences: list[str] = []
    for name, word in CODEC.given(params).items():
        if len(params[name]) > 1:
            sentences.append(
                f"The link gives {name} {len(params[name])} times, allowed is once: the first one is used."
            )
        if word in options(name):
            taken[name] = word
        elif word:
            allowed = (
                ", ".join(options(name).keys()) if name != "model" else "a model of the census"
            )
            sentences.append(
                f"The link gives {name} {cut(word)}, allowed is {allowed}: the page shows "
                f"{CODEC.pinned[name]}.{options(name).meant(word)}"
            )
    for word in params.get(SECTION, ()):
        if word not in SECTIONS:
            sentences.append(
                f"The link gives {SECTION} {cut(word)}, allowed is {', '.join(SECTIONS)}: the page begins as "
                f"usual.{meant(word[:40], SECTIONS)}"
            )
    return Answers(**{**CODEC.pinned, **taken}), (*sentences, *CODEC.others(params))


def measured_at(answers: Answers) -> int:
    """The depth that is nearest to the answers, of those measured."""
    return max(depths()) if answers.depth == "more" else int(answers.depth)
