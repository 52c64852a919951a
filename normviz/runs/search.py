"""A visitor's search text as clauses for the store.

    post-ln depth 24 lr=0.01 diverged

A word matches part of the name of a placement, norm, initialisation, task, optimizer or schedule, a state, or
the number of a run. A setting's name followed by a value, as in a link or as people write it, matches
that value. The name alone of a setting that is a number matches runs in which it is not at its default.
`observed` matches runs of own models, `model gpt` those whose model's name has these letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..config import CHOICES, DEFAULTS, RANGES, SETTINGS
from . import SHIPPED
from .store import MODEL, Clause, Condition

NAMED = ("scheme", "norm", "init", "task", "optimizer", "schedule")
STATES = {
    "waiting": "queued", "queued": "queued", "training": "running", "running": "running",
    "paused": "paused", "finished": "finished", "diverged": "diverged", "stopped": "stopped",
    "failed": "failed",
}  # fmt: skip
OBSERVED = "observed"
MAX_WORDS = 20
MIN_PART = 3
"""Least number of letters that abbreviate a state; fewer would be ambiguous."""


@dataclass(frozen=True)
class Search:
    """`clauses` are joined by AND; `unknown` are the words that match nothing; `too_long` is a sentence
    if there are too many words, and then no run matches."""

    clauses: tuple[Clause, ...]
    unknown: tuple[str, ...] = ()
    too_long: str | None = None


def _titles() -> dict[tuple[str, ...], str]:
    """The title of each setting, as words, to its field."""
    called = {tuple(setting.title.casefold().split()): name for name, setting in SETTINGS.items()}
    return called | {(name,): name for name in SETTINGS}


TITLES = _titles()
LONGEST = max(map(len, TITLES))


def search(text: str) -> Search:
    """Parse a search text. Never raises: an unknown word is a clause that no run matches, and so are
    more than MAX_WORDS words."""
    words = text.casefold().replace("=", " ").split()
    if len(words) > MAX_WORDS:
        problem = (
            f"the search has {len(words):,} words, allowed are up to {MAX_WORDS}: leave some out"
        )
        return Search(((),), too_long=problem)
    clauses: list[Clause] = []
    unknown: list[str] = []
    at = 0
    while at < len(words):
        used, clause = _setting(words, at) or (1, _word(words[at]))
        clauses.append(clause)
        if not clause:
            unknown.append(" ".join(words[at : at + used]))
        at += used
    return Search(tuple(clauses), tuple(unknown))


def _setting(words: list[str], at: int) -> tuple[int, Clause] | None:
    """The setting at this position, if there is one: the number of words it takes, and its clause."""
    if words[at] == MODEL:
        named = words[at + 1 : at + 2]
        how = (
            Condition(MODEL, (named[0],), "contains") if named else Condition("origin", (OBSERVED,))
        )
        return 1 + len(named), (how,)
    for n in range(LONGEST, 0, -1):
        name = TITLES.get(tuple(words[at : at + n]))
        if name is None:
            continue
        if at + n < len(words) and (clause := _value(name, words[at + n])):
            return n + 1, clause
        if name in RANGES:
            return n, (Condition(name, (DEFAULTS[name],), "is not"),)
    return None


def _value(name: str, word: str) -> Clause:
    """The clause of a setting's value; empty if it can't be one."""
    if name in CHOICES:
        keys = _keys(name, word)
        return (Condition(name, keys),) if keys else ()
    if name == "text":
        return _text(word)
    if name not in RANGES:
        return ()
    if word in ("off", "none"):
        return (Condition(name, (None,)),)
    try:
        return (Condition(name, (float(word),)),)
    except ValueError:
        return ()


def _keys(name: str, word: str) -> tuple[str, ...]:
    """The choice whose key equals the word, else those whose key or label contains it."""
    return (word,) if word in CHOICES[name] else _parts(name, word)


def _text(word: str) -> Clause:
    """The clause of the beginning of a text's hash."""
    word = word.rstrip("….")
    return (Condition("text", (word,), "starts"),) if re.fullmatch("[0-9a-f]{8,}", word) else ()


def _word(word: str) -> Clause:
    """All clauses that one word may mean."""
    named = [Condition(name, keys) for name in NAMED if (keys := _parts(name, word))]
    if len(word) >= MIN_PART:
        states = {status for state, status in STATES.items() if state.startswith(word)}
        named += [Condition("status", tuple(sorted(states)))] if states else []
        named += [Condition("origin", SHIPPED)] if "shipped".startswith(word) else []
        named += [Condition("origin", (OBSERVED,))] if OBSERVED.startswith(word) else []
    if re.fullmatch(r"#?\d{1,15}", word):
        named.append(Condition("id", (int(word.lstrip("#")),)))
    if re.fullmatch(r"[eo]\d+-[0-9a-f]+", word):
        named.append(Condition("key", (word,), "starts"))
    return (*named, *_text(word))


def _parts(name: str, word: str) -> tuple[str, ...]:
    """The choices whose key or label contains the word."""
    return tuple(r.key for r in CHOICES[name] if word in r.key or word in r.label.casefold())
