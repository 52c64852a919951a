"""Which pairs are tried where all pairs would prove little more, other values of a setting, and the name of a
case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, TypeVar

from normviz import RunConfig
from normviz.catalog import FAMILIES
from normviz.config import DEFAULTS, SETTINGS

T = TypeVar("T")
BESIDE: dict[str, dict[str, Any]] = {
    "text": {"task": "text"}, "mask": {"task": "masked"}, "patch_norm": {"family": "vit"},
    "task": {"seq_len": 8}, "lr_edits": {"steps": 5}, "loops": {"depth": 2},
}  # fmt: skip
"""What else is set where a setting is not at its default."""
OF_FORM = {"text": "0123456789abcdef" * 2, "lr_edits": ((3, 0.1),)}


def others(name: str) -> list[Any]:
    """The values of a setting but its default: all choices, or of a number those of an axis of a map."""
    setting = SETTINGS[name]
    if setting.choices is not None:
        values = setting.choices.keys()
    elif setting.range is not None:
        words = (setting.axis or "").split(",")
        values = [getattr(RunConfig(**{name: word}), name) for word in words]
    else:
        values = [OF_FORM[name]]
    return [value for value in values if value != DEFAULTS[name]]


def changes(*without: str) -> list[dict[str, Any]]:
    """What makes another decoder of one: each setting at each other choice, or at another number, and what
    goes with it. Without these settings, those that tests cross on their own, and a text and a GPU."""
    found = []
    for name, setting in SETTINGS.items():
        if name in (*without, "family", "scheme", "norm", "init", "patch_norm", "text", "device"):
            continue
        values = others(name) if setting.choices is not None else others(name)[:1]
        if name == "task":
            values = [key for key in values if key in FAMILIES["decoder"].tasks and key != "text"]
        found += [{name: value, **BESIDE.get(name, {})} for value in values]
    return found


def pairs(some: Sequence[str], others: Sequence[T], each: int = 2) -> list[tuple[str, T]]:
    """Each of `some` with `each` of the others, and each of the others with `each` of `some` or more: those
    with the lowest hashes."""

    def drawn(pair: tuple[str, T]) -> bytes:
        return sha256(f"{pair[0]} {pair[1]}".encode()).digest()

    chosen = [pair for a in some for pair in sorted([(a, b) for b in others], key=drawn)[:each]]
    met = [pair for b in others for pair in sorted([(a, b) for a in some], key=drawn)[:each]]
    return chosen + [pair for pair in met if pair not in chosen]


@contextmanager
def case(*names: object) -> Iterator[None]:
    """One case of several in a test: what fails in it names the case."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case of {' '.join(map(str, names))}")
        raise
