"""Suggestions of changes to a duel: words after "Try next:", with their lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..catalog import CELLS, PLACEMENTS
from ..config import ConfigError, RunConfig
from ..runs.lane import LETTERS
from .presets import Lanes

MOST = 3
HIGH, DEEP = 0.1, 24
SHORT, LONG = 16, 64
"""Time steps of a recurrent net."""


@dataclass(frozen=True)
class Suggestion:
    """A change, in words that follow "Try next:", and the lanes that it opens."""

    text: str
    lanes: Lanes


def suggestions(lanes: Lanes) -> tuple[Suggestion, ...]:
    """Up to three changes that suit these lanes, the most informative first."""
    unlike = len(set(lanes))  # no suggestion makes two lanes equal
    changes = (s for s in _all(lanes) if s.lanes != lanes and len(set(s.lanes)) >= unlike)
    return tuple(islice(changes, MOST))


def _all(lanes: Lanes) -> Iterator[Suggestion]:
    first = lanes[0]
    # Changes to one lane that may help it to train.
    for i, lane in enumerate(lanes):
        name = f"{LETTERS[i]} {PLACEMENTS.label(lane.scheme)}"
        if lane.scheme in ("post", "none") and lane.init == "xavier":
            yield from _one(lanes, i, f"start {name} from PyTorch's smaller weights", init="torch")
        if lane.scheme == "pre" and lane.lr >= HIGH and lane.qk_norm == "off":
            yield from _one(lanes, i, f"give {name} QK-norm", qk_norm="on")
        if lane.scheme == "pre" and lane.lr >= HIGH:
            yield from _one(lanes, i, f"turn {name} into Peri-LN", scheme="peri")
    # Changes to all lanes that test whether the difference remains.
    if first.scheme in CELLS:
        yield from _every(lanes, f"read sequences of {LONG} steps", seq_len=LONG)
        yield from _every(lanes, f"read sequences of {SHORT} steps", seq_len=SHORT)
        kind = "LSTM" if first.family == "rnn" else "RNN"
        yield from _made(
            lanes, f"turn all into an {kind}", lambda _, lane: lane.replace(family=kind.lower())
        )
    elif first.lr < HIGH:
        yield from _every(lanes, f"turn the learning rate up to {HIGH:g}", lr=HIGH, lr_edits=())
    if first.depth < DEEP and first.scheme not in CELLS:
        yield from _every(lanes, f"go {DEEP} blocks deep", depth=DEEP)
    if first.task == "markov":
        yield from _every(lanes, "train on English prose", task="prose")
    seed = first.init_seed + 1
    yield from _every(lanes, f"draw other weights (seed {seed}): does it hold?", init_seed=seed)
    yield from _every(lanes, "exchange LayerNorm for RMSNorm", norm="rmsnorm")
    if first.scheme not in CELLS:
        yield from _every(lanes, "go back to 12 blocks", depth=12)


def _one(lanes: Lanes, at: int, text: str, **changes: Any) -> Iterator[Suggestion]:
    yield from _made(lanes, text, lambda i, lane: lane.replace(**changes) if i == at else lane)


def _every(lanes: Lanes, text: str, **changes: Any) -> Iterator[Suggestion]:
    yield from _made(lanes, text, lambda _, lane: lane.replace(**changes))


def _made(
    lanes: Lanes, text: str, change: Callable[[int, RunConfig], RunConfig]
) -> Iterator[Suggestion]:
    """The suggestion, unless the limits forbid it."""
    try:
        yield Suggestion(text, tuple(change(i, lane) for i, lane in enumerate(lanes)))
    except ConfigError:
        return
