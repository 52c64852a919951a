"""Sentences about the outputs, computed from the numbers, so they hold for every example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...catalog import NORMS
from ...formats import listed
from .example import brief
from .steps import KEYS, Work

REFUSED = "PyTorch refuses to train on it (it wants more than 1 value per channel); Keras gives β."


def lead(hand_work: Work) -> str:
    """The experiment and the norms that it changes, in one or two sentences."""
    experiment = hand_work.example.experiment
    if experiment == "none":
        return "The outline marks what each norm averages for the selected cell."
    if experiment == "neighbour" and hand_work.example.rows == 1:
        return "One row has no neighbour: add a row to the table."
    changed = [key for key in KEYS if hand_work.moved(key)[_others(hand_work)].any()]
    whose = "the other rows' outputs" if experiment == "neighbour" else "the outputs"
    if not changed:
        return f"{_done(hand_work)} No norm changes {whose}."
    return f"{_done(hand_work)} {listed([NORMS.label(key) for key in changed])} {_verb(changed)} {whose}."


def _done(hand_work: Work) -> str:
    """The change that the experiment makes to the table."""
    example = hand_work.example
    if example.experiment == "neighbour":
        at = (example.neighbour - 1, hand_work.feature)
        old, new = brief(float(hand_work.before.x[at])), brief(float(hand_work.after.x[at]))
        return f"Row {example.neighbour}, feature {example.feature} goes from {old} to {new}."
    if example.experiment == "padding":
        zeros = f"{_count(example.padding, 'row')} of zeros {'comes' if example.padding == 1 else 'come'}"
        return f"{zeros} after the sequence, {'masked' if example.masked else 'and count'}."
    if example.experiment == "alone":
        return f"Row {example.row} comes without the other rows."
    does = "grows by" if example.experiment == "shift" else "is multiplied by"
    return f"Every number {does} {brief(example.amount)}."


ELSEWHERE = (
    ("Decoder and ViT", "a token or a patch of one sequence"),
    ("RNN and LSTM", "one time step of one sequence: the norm is computed again at each step"),
    ("Graph network", "a node"),
    ("MLP", "an example of the batch"),
)
"""What a row of the table is in each kind of net."""


def seen(hand_work: Work, key: str) -> str:
    """The effect of a norm here, in one or two sentences."""
    text = (
        _level(hand_work, key) if hand_work.example.experiment == "none" else _moves(hand_work, key)
    )
    if key == "batchnorm":
        text += _about_batch(hand_work)
    return text


def mode(hand_work: Work) -> str:
    """BatchNorm's running statistics in eval mode; empty in training mode."""
    if hand_work.example.mode == "train":
        return ""
    statistics, at = hand_work.running, hand_work.feature
    own, feature = statistics.seen, hand_work.example.feature
    if statistics.rows < 2:
        return (
            "Eval: there was no training, because PyTorch refuses a batch of one row: the running "
            "statistics are at their start, mean 0 and variance 1."
        )
    text = (
        f"Eval: for feature {feature} BatchNorm uses the running mean "
        f"{brief(float(statistics.mean[at]))} and variance {brief(float(statistics.variance[at]))}; the "
        f"training batch has {brief(float(own[0][at]))} and {brief(float(own[1][at]))}. "
        f"{_count(statistics.passes, 'pass', 'passes')} {'leaves' if statistics.passes == 1 else 'leave'} "
        f"{100 * statistics.start:.3g} % of their start, 0 and 1."
    )
    if not statistics.passes:
        return text
    return (
        f"{text} By Keras' convention the variance would be {brief(float(statistics.biased[at]))}."
    )


def _level(hand_work: Work, key: str) -> str:
    """Mean and RMS of the values that a norm standardizes."""
    done, row, feature = hand_work.now[key], hand_work.row, hand_work.feature
    if done.axis == "row":
        what, values = f"row {hand_work.example.row}", done.hat[row]
    else:
        what, values = f"feature {hand_work.example.feature}", done.hat[:, feature]
    level = f"mean {_near(values.mean())} and RMS {_near(np.sqrt((values**2).mean()))}"
    return f"x̂ of {what} has {level}."


def _moves(hand_work: Work, key: str) -> str:
    """How many outputs of a norm change, in which rows and by how much."""
    moved, change = hand_work.moved(key), hand_work.change(key)
    real = np.array([row > 0 for row in hand_work.after.rows])
    total = int(real.sum()) * hand_work.example.features
    n, most = int(moved.sum()), float(change.max(initial=0.0))
    if not n:
        trace = f" by more than {brief(most)}" if most > 1e-12 else ""
        return f"None of {_count(total, 'output')} moves{trace}."
    text = (
        f"{n} of {_count(total, 'output')} {'moves' if n == 1 else 'move'}, by up to {brief(most)}"
    )
    if hand_work.example.experiment != "neighbour":
        return f"{text}."
    rows = _moved_rows(hand_work, key)
    touched = [row for row in rows if row == hand_work.example.neighbour]
    others = [row for row in rows if row != hand_work.example.neighbour]
    if not others:
        return f"{text}, all in row {touched[0]} itself."
    also = f"row {hand_work.example.neighbour} itself and in " if touched else ""
    return f"{text}, in {also}{_rows(others)}, whose inputs did not change."


def _moved_rows(hand_work: Work, key: str) -> list[int]:
    """Rows of the table in which a norm's output changes."""
    moved = hand_work.moved(key)
    return [row for i, row in enumerate(hand_work.after.rows) if moved[i].any()]


def _about_batch(hand_work: Work) -> str:
    """A sentence that concerns BatchNorm alone; may be empty."""
    example, key = hand_work.example, "batchnorm"
    if example.experiment == "alone" and hand_work.refused:
        return f" One row has variance 0, so x̂ is 0 and y is β whatever x is. {REFUSED}"
    if hand_work.refused:
        return f" Only one row counts. {REFUSED}"
    if example.experiment == "neighbour" and example.mode == "train":
        past = [row for row in _moved_rows(hand_work, key) if row < example.neighbour]
        if past:
            return (
                f" Read as positions of a text, {_rows(past)} "
                f"{'has' if len(past) == 1 else 'have'} seen the future."
            )
    if example.experiment == "padding" and example.mode == "train":
        return _padded(hand_work)
    return ""


def _padded(hand_work: Work) -> str:
    """The effect of padding on the statistics of the selected feature."""
    was, now = (
        (
            worked["batchnorm"].mean[0, hand_work.feature],
            worked["batchnorm"].square[0, hand_work.feature],
        )
        for worked in (hand_work.was, hand_work.now)
    )
    mean, variance = (
        f"{brief(float(old))} to {brief(float(new))}" for old, new in zip(was, now, strict=True)
    )
    if np.array_equal(was, now):
        return f" Mean and variance of feature {hand_work.example.feature} stay what they were."
    return f" The mean of feature {hand_work.example.feature} goes from {mean}, its variance from {variance}."


def _others(hand_work: Work) -> list[int]:
    """Rows whose inputs the experiment left alone, or all if it changed all."""
    left = hand_work.example.neighbour if hand_work.example.experiment == "neighbour" else 0
    return [i for i, row in enumerate(hand_work.after.rows) if row and row != left]


def _verb(keys: Sequence[str]) -> str:
    return "alone changes" if len(keys) == 1 else "change"


def _rows(rows: Sequence[int]) -> str:
    return f"row{'s' * (len(rows) > 1)} {listed([*map(str, rows)])}"


def _count(n: int, singular: str, plural: str = "") -> str:
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


def _near(value: float) -> str:
    """A number, with rounding errors of about 1e-12 near 0 and 1 removed."""
    return brief(float(np.round(value, 12)))
