"""An example as a link: every setting in plain text, plus a version.

    v=1&x=1,2,3;4,5,6&gamma=1,1,1&beta=0,0,0&eps=1e-05&row=1&feature=2&try=none&...

Semicolons separate rows, commas separate numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...catalog.setting import Range
from ...links import VERSION, Codec, Params, Problem, query
from .example import (
    FEATURES,
    RANGES,
    ROWS,
    Example,
    HandError,
    Matrix,
    Row,
    number,
    written,
)

SPELT = {"try": "experiment"}
"""Names in a link that differ from the example's fields, because those would be Python keywords."""
NUMBERS = ("eps", "row", "feature", "amount", "padding", "passes", "momentum")
WHOLE = ("row", "feature", "padding", "passes")
NAMES = (
    "x", "gamma", "beta", "eps", "row", "feature", "try", "amount", "padding", "masked", "mode",
    "passes", "momentum",
)  # fmt: skip
CODEC = Codec(
    NAMES,
    {
        "x": "1,2,3,6;2,0,-1,3;4,4,2,-2;1,-2,0,5", "eps": "1e-05", "row": "1", "feature": "1", "try": "none",
        "padding": "2", "masked": "0", "mode": "train", "passes": "10", "momentum": "0.1",
    },
)  # fmt: skip
ANY = Range(-1e9, 1e9)


@dataclass(frozen=True)
class OpenedExample:
    """An example read from a link, or its problem."""

    example: Example | None = None
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def as_params(example: Example) -> dict[str, str]:
    """The query parameters of an example: all its settings."""
    words = {name: _word(getattr(example, SPELT.get(name, name))) for name in NAMES}
    return CODEC.params(words, always=NAMES)


def encode(example: Example) -> str:
    """The query string of an example."""
    return query(as_params(example))


def decode(params: Params, offers: bool = True) -> OpenedExample:
    """Read an example from query parameters. Never raises because of their content.

    With `offers`, a problem has a link with a mended value where one exists.
    """
    if problems := CODEC.problems(params):
        return OpenedExample(problems=tuple(map(Problem, problems)))
    try:
        example = _example(CODEC.words(params))
    except HandError as error:
        return OpenedExample(problems=(_problem(error, CODEC.given(params), offers),))
    return OpenedExample(example, notices=tuple(CODEC.others(params)))


def _example(words: dict[str, str]) -> Example:
    """Raises HandError for the first value that is not allowed. Where γ is not named it is ones, where β is
    not zeros, and where the amount is not that of the experiment."""
    x = _matrix(words["x"])
    features = len(x[0])
    fields: dict[str, Any] = {"gamma": (1.0,) * features, "beta": (0.0,) * features}
    for name in ("gamma", "beta"):
        if name in words:
            fields[name] = _row(words[name], name)
    for name in NUMBERS:
        if name in words:
            value = number(words[name], name, RANGES.get(name, ANY))
            fields[name] = int(value) if name in WHOLE and value == int(value) else value
    fields |= {"masked": _flag(words["masked"]), "mode": words["mode"][:24]}
    example = Example(x, **fields)
    tried = words["try"][:24]
    return example.replace(experiment=tried) if "amount" in words else example.trying(tried)


def _matrix(text: str) -> Matrix:
    if text.count(";") >= 100:
        raise HandError(f"x has {text.count(';') + 1} rows, allowed is {ROWS.text()}", "x")
    return tuple(_row(row, f"row {i}", "x") for i, row in enumerate(text.split(";"), 1))


def _row(text: str, where: str, field: str = "") -> Row:
    words = text.split(",")
    if len(words) not in FEATURES:
        raise HandError(
            f"{where} has {len(words)} numbers, allowed is {FEATURES.text()}", field or where
        )
    return tuple(number(word, f"{where}, feature {i}") for i, word in enumerate(words, 1))


def _flag(word: str) -> bool:
    if word not in ("0", "1"):
        raise HandError(f"masked is {word[:24]!r}, allowed is 0 or 1", "masked")
    return word == "1"


def _problem(error: HandError, words: dict[str, str], offers: bool) -> Problem:
    """The sentence, with a link to the nearest allowed number if that link opens."""
    name = error.field
    if not offers or name not in NUMBERS or error.nearest is None:
        return Problem(str(error))
    mended = {"v": str(VERSION), **words, name: written(error.nearest)}
    if decode({key: [word] for key, word in mended.items()}, offers=False).problems:
        return Problem(str(error))
    return Problem(str(error), query(mended), f"{name} = {mended[name]}")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        parts = [_word(part) for part in value]
        return (";" if value and isinstance(value[0], tuple) else ",").join(parts)
    return value if isinstance(value, str) else written(value)
