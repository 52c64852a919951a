"""A placement of one's own: the slots of a sublayer as a short text, which works wherever a placement's key
does.

    own:norm_in:norm_main:skip_gain=2L^0.25:final_norm

`own:`, and words with ":" between them, in any order. A word is a field of `Slots` or `Scheme`: a norm by its
name alone, a gain with its value. It holds in both branches; with `attention.` or `ffn.` before it, in one.

    value   a number; a number times L or b, the depth and the block, to a power: 2, L^-0.5, 2L^0.25 (that
            is (2L)^0.25); with ~sublayer or ~channel it is learned, and starts there: 0.1~channel

The record's key is the one spelling of what a text says: defaults are left out, words have one order, and
what the catalogue has is called by its key there (`schemes`). A text cannot say: a wiring that changes from
block to block, several streams, gains that rise, and rules for the weights but `weight_gain`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, get_args

from .registry import cut, meant
from .scheme import (
    BRANCHES,
    NORMED,
    ONE,
    Branch,
    Constant,
    Gain,
    GainSlot,
    Learned,
    Matrix,
    Place,
    Scheme,
    Slots,
    plain,
)

PREFIX = "own:"
LONGEST = 600
"""Characters of a text at most."""
NORMS: tuple[str, ...] = tuple(NORMED)
GAINS: dict[GainSlot, str] = {
    "stream_gain": "r",
    "embed_gain": r"\lambda",
    "input_gain": "s",
    "skip_gain": "a",
    "block_gain": "c",
    "branch_gain": "g",
    "main_gain": "m",
}
"""The gains, with their letters in formulas."""
FLAGS = ("branch_reads", "shares_norm")
ENDS = ("embed_norm", "final_norm")
WEIGHTS = "weight_gain"
"""Multiplies the initial matrices of values, outputs and FFN, as DeepNorm's does."""
WORDS = (*NORMS, *GAINS, *FLAGS, WEIGHTS, *ENDS)
ONLY: dict[str, Branch] = {
    "norm_qkv": "attention",
    "block_gain": "ffn",
    "branch_reads": "ffn",
    "shares_norm": "ffn",
}
"""Words of one branch. What enters a block is what its attention reads anyway."""
MOST, STEEPEST = 1000.0, 2.0
"""The largest number of a gain, and the largest power, up or down."""
VALUE = re.compile(
    r"(?P<number>\d{1,4}(?:\.\d{1,6})?)?(?P<of>[Lb]?)(?:\^(?P<power>-?\d(?:\.\d{1,4})?))?"
    r"(?P<learned>~sublayer|~channel)?",
    re.ASCII,
)
LEARNED: dict[str | None, Learned] = {None: "", "~sublayer": "sublayer", "~channel": "channel"}
FORM = (
    f"a number from 0 to {MOST:g}, or one times L or b to a power from -{STEEPEST:g} to {STEEPEST:g}, as in "
    "2, L^-0.5, 2L^0.25, and ~sublayer or ~channel behind it where it is learned"
)
ABOUT = (
    f"A placement of your own, from its slots, as in {PREFIX}norm_in:norm_main:skip_gain=2. Words are "
    f"{', '.join(WORDS)}; a gain's value is {FORM}. Before a word, attention. or ffn. is for one branch."
)


class OwnError(ValueError):
    """One sentence: what was given, what is allowed and how to mend it."""


@dataclass(frozen=True)
class Amount:
    """A gain as it is written: (number of)^power, where `of` is "", "L" or "b"."""

    number: float
    of: str = ""
    power: float = 1
    learned: Learned = ""

    def at(self, place: Place) -> Gain:
        """The gain at a place."""
        base = {"": 1, "L": place.depth, "b": place.block}[self.of]
        return Gain(float((_whole(self.number) * base) ** _whole(self.power)), self.learned)

    def __str__(self) -> str:
        number = "" if self.of and self.number == 1 else _digits(self.number)
        power = "" if self.power == 1 else f"^{_digits(self.power)}"
        return f"{number}{self.of}{power}" + (f"~{self.learned}" if self.learned else "")

    @property
    def latex(self) -> str:
        """Its definition in LaTeX."""
        if self.learned:
            return rf"\text{{learned, starts at {self.start}}}"
        return self.start

    @property
    def start(self) -> str:
        """Its value in LaTeX, whether or not it is learned."""
        number = "" if self.of and self.number == 1 else _digits(self.number)
        if self.power == 1:
            return number + self.of
        base = f"({number}{self.of})" if number else self.of
        return f"{base}^{{{_digits(self.power)}}}"

    @property
    def code(self) -> str:
        """Its definition in Python as a function of L and b."""
        if not self.of:
            return repr(float(self.number))
        base = self.of if self.number == 1 else f"{_digits(self.number)} * {self.of}"
        power = _digits(self.power)
        if self.power == 1:
            return base
        return f"({base}) ** {power}" if " " in base else f"{base}**{power}"


Value = bool | Amount
Words = Mapping[tuple[Branch | None, str], Value]
"""What a text says: (branch, word) -> value; the branch is None for words about the whole model."""


def is_own(key: object) -> bool:
    """Whether it is the text of a placement of one's own, well formed or not."""
    return isinstance(key, str) and (key.startswith(PREFIX) or key == PREFIX[:-1])


def read(text: str) -> Scheme:
    """The record of a text. Raises OwnError with one sentence for one that says nothing that can be built."""
    return record(parsed(text))


def parsed(text: str) -> dict[tuple[Branch | None, str], Value]:
    """What a text says, checked. Raises OwnError."""
    if len(text) > LONGEST:
        raise OwnError(f"it has {len(text)} characters, allowed are {LONGEST}: leave out words")
    words: dict[tuple[Branch | None, str], Value] = {}
    for part in text.removeprefix(PREFIX[:-1]).removeprefix(":").split(":"):
        if not part.strip():
            continue
        for key, value in _word(part.strip()):
            if key in words:
                raise OwnError(f"it names {_named(*key)} twice: name it once")
            words[key] = value
    words = {key: value for key, value in words.items() if value != _default(key[1])}
    for sentence in _nonsense(words):
        raise OwnError(sentence)
    return words


def _word(part: str) -> Iterator[tuple[tuple[Branch | None, str], Value]]:
    """The entries of one word."""
    name, equals, value = part.partition("=")
    where, dot, name = name.rpartition(".")
    branch = next((each for each in BRANCHES if each == where), None)
    if dot and branch is None:
        raise OwnError(
            f"{cut(part)} is in {cut(where)}, allowed are attention and ffn: write ffn.{name[:20]}"
        )
    if name not in WORDS:
        raise OwnError(
            f"{cut(name)} is no slot, allowed are {', '.join(WORDS)}.{meant(name, WORDS)}"
        )
    amount = _value(name, equals, value)
    if name in ENDS or name == WEIGHTS:
        if branch:
            raise OwnError(f"{name} is of the whole model: write it without {branch}.")
        yield (None, name), amount
        return
    only = ONLY.get(name)
    if branch and only and branch != only:
        why = "in attention x is what entered the block" if only == "ffn" else "an FFN has none"
        raise OwnError(f"{name} is of {only.replace('ffn', 'the FFN')} alone ({why}): write {name}")
    for each in (only,) if only else (branch,) if branch else BRANCHES:
        yield (each, name), amount


def _value(name: str, equals: str, text: str) -> Value:
    if name == "branch_reads":
        if text != "block":
            raise OwnError(f"branch_reads is {cut(text)}, allowed is branch_reads=block")
        return True
    if name not in GAINS and name != WEIGHTS:
        if equals:
            raise OwnError(f"{name} has the value {cut(text)}, and takes none: write {name}")
        return True
    match = VALUE.fullmatch(text)
    if not match or not (match["number"] or match["of"]) or (match["power"] and not match["of"]):
        raise OwnError(f"{name} is {cut(text)}, allowed is {FORM}")
    number, power = float(match["number"] or 1), float(match["power"] or 1)
    amount = Amount(number, match["of"], power, LEARNED[match["learned"]])
    if amount.number > MOST or abs(amount.power) > STEEPEST or not amount.power:
        raise OwnError(f"{name} is {cut(text)}, allowed is {FORM}")
    if amount.number == 0 and amount.of:
        raise OwnError(f"{name} is {cut(text)}, which is 0 everywhere: write {name}=0")
    if name == WEIGHTS and (amount.learned or amount.number == 0):
        raise OwnError(
            f"{name} is {cut(text)}, but it scales the start alone: give a number above 0"
        )
    return amount


ZEROS = ("embed_gain", "skip_gain", "block_gain")
"""Gains that may be 0: a path that is not there."""


def _nonsense(words: Words) -> Iterator[str]:
    """Sentences about what can be written and makes no sense."""
    for (branch, name), value in words.items():
        if isinstance(value, Amount) and value.number == 0 and not _may_be_zero(name, value):
            also = ", or let it start there: 0~channel" if name == "branch_gain" else ""
            yield f"{_named(branch, name)} is 0, so nothing passes: give a number above 0{also}"
    for name in GAINS:
        both = [gain for b in BRANCHES if isinstance(gain := words.get((b, name)), Amount)]
        if len({bool(gain.learned) for gain in both}) > 1:
            yield (
                f"{name} is learned in one branch and a constant in the other: make both the same kind"
            )
        if any(gain.of == "b" for gain in both) and (len(both) < 2 or len(set(both)) > 1):
            yield (
                f"{name} depends on the block b in one branch alone: give both the same value, or use L"
            )
    for branch in BRANCHES:
        if (branch, "norm_skip") in words and words.get((branch, "skip_gain")) == Amount(0):
            gain, norm = _named(branch, "skip_gain"), _named(branch, "norm_skip")
            yield f"{gain} is 0, so {norm} norms a path that is not there: leave out one of them"
    if ("ffn", "shares_norm") in words:
        yield from _not_shared(words)


def _may_be_zero(name: str, amount: Amount) -> bool:
    return name in ZEROS or (name == "branch_gain" and amount.learned != "")


def _not_shared(words: Words) -> Iterator[str]:
    """Why attention and the FFN cannot read one norm."""
    if ("ffn", "branch_reads") not in words:
        yield "shares_norm needs an FFN that reads what attention read: add branch_reads=block"
    if any((branch, "norm_in") not in words for branch in BRANCHES):
        yield "shares_norm shares the norm before the branch, which is not there: add norm_in"
    if any((branch, "input_gain") in words for branch in BRANCHES):
        yield "shares_norm gives both branches one norm, and input_gain scales it: leave out one of them"


def spelled(words: Mapping[tuple[Branch | None, str], Value | str]) -> str:
    """The one spelling of what words say; a value may be a text that was not read yet."""
    parts: list[str] = []
    for name in WORDS:
        ways = {b: words[b, name] for b in (None, *BRANCHES) if (b, name) in words}
        whole = set(ways) in ({None}, set(BRANCHES), {ONLY.get(name)})
        if ways and whole and len(set(ways.values())) == 1:
            parts.append(_spelled(name, next(iter(ways.values()))))
            continue
        parts += [f"{branch}.{_spelled(name, value)}" for branch, value in ways.items()]
    return PREFIX + ":".join(parts)


def _spelled(name: str, value: Value | str) -> str:
    if name == "branch_reads":
        return f"{name}=block"
    return name if value is True else f"{name}={value}"


def record(words: Words) -> Scheme:
    """The record of checked words."""
    key = spelled(words)
    weights = words.get((None, WEIGHTS))

    def slots(place: Place) -> Slots:
        return Slots(
            **{
                name: _slot(name, value, place)
                for (branch, name), value in words.items()
                if branch == place.branch
            }
        )

    return Scheme(
        key=key,
        label=label(key),
        order=10_000,
        family="Your own",
        sentence=f"A placement built from its slots: {', '.join(key.removeprefix(PREFIX).split(':'))}.",
        trouble="The catalogue does not have it: nothing is known of it here but what you measure.",
        source="built here",
        slots=slots,
        final_norm=(None, "final_norm") in words,
        embed_norm=(None, "embed_norm") in words,
        weight_gain=_weights(weights) if isinstance(weights, Amount) else plain,
        constants=tuple(_constants(words)),
    )


def label(key: str) -> str:
    """A name for people: "Own: in + main + skip=2"."""
    return f"Own: {' + '.join(map(_short, key.removeprefix(PREFIX).split(':'))) or 'no norm'}"


def _short(word: str) -> str:
    name, equals, value = word.partition("=")
    if name == "branch_reads":
        return "reads block"
    name = name.replace(".", " ").replace("norm_", "").removesuffix("_norm").removesuffix("_gain")
    return f"{name}{equals}{value}"


def _slot(name: str, value: Value, place: Place) -> Any:
    if name == "branch_reads":
        return "block"
    return value.at(place) if isinstance(value, Amount) else value


def _weights(amount: Amount) -> Callable[[Place, Matrix], float]:
    def gain(place: Place, matrix: Matrix) -> float:
        return 1.0 if matrix == "query_key" else amount.at(place).value

    return gain


def _constants(words: Words) -> Iterator[Constant]:
    """Names of the gains that are no plain number."""
    for name, symbol in GAINS.items():
        amounts = [gain for b in BRANCHES if isinstance(gain := words.get((b, name)), Amount)]
        alike = len(set(amounts)) == 1
        if amounts and amounts[0].learned:
            yield Constant(
                name,
                symbol,
                amounts[0].latex if alike else r"\text{learned}",
                amounts[0].code if alike and amounts[0].of else "",
            )
        elif len(amounts) == 2 and alike and amounts[0].of:
            yield Constant(name, symbol, amounts[0].latex, amounts[0].code)
    if isinstance(weights := words.get((None, WEIGHTS)), Amount):
        yield Constant(WEIGHTS, r"\beta", weights.latex)


USUAL: dict[str, Gain] = {name: getattr(Slots(), name) for name in GAINS}
"""The gains that are not named."""


def _default(name: str) -> Amount:
    """What a gain is that is not named, as it would be written."""
    return Amount(USUAL.get(name, ONE).value)


def _digits(number: float) -> str:
    """A number as a text has it: without an exponent, and nothing lost of what `VALUE` reads."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _whole(number: float) -> float:
    """A whole number as int: what the catalogue's formulas compute with."""
    return int(number) if number == int(number) else number


def _named(branch: Branch | None, name: str) -> str:
    return f"{branch}.{name}" if branch and name not in ONLY else name


# Placements of the catalogue as texts.

DEPTHS = (1, 2, 5, 12, 24, 48)
"""Depths at which placements are compared."""
MATRICES: tuple[Matrix, ...] = get_args(Matrix)
FORMULAS = tuple(
    Amount(number, of, power)
    for of in "Lb"
    for number in (1, 2, 4, 8)
    for power in (1, -1, 0.5, -0.5, 0.25, -0.25)
)
"""Gains that depend on the place, as papers have them."""


def same(scheme: Scheme, other: Scheme) -> bool:
    """Whether two placements are one: the same slots, starts and rules at every place."""
    return _whole_model(scheme) == _whole_model(other) and all(
        scheme.slots(place) == other.slots(place)
        and all(scheme.weight_gain(place, m) == other.weight_gain(place, m) for m in MATRICES)
        for place in _places()
    )


def _whole_model(s: Scheme) -> tuple[object, ...]:
    """What of a placement is not about places."""
    return (
        s.final_norm, s.embed_norm, s.norm, s.logit_gain, s.constraint, s.embedding_std, s.profiled, s.streams
    )  # fmt: skip


@lru_cache(maxsize=1)
def _places() -> tuple[Place, ...]:
    return tuple(
        Place(block, depth, branch)
        for depth in DEPTHS
        for block in range(1, depth + 1)
        for branch in BRANCHES
    )


@lru_cache(maxsize=128)
def words_of(scheme: Scheme) -> Words | None:
    """What a text would say of a placement; None for one that no text can give."""
    if is_own(scheme.key):
        return parsed(scheme.key)
    words: dict[tuple[Branch | None, str], Value] = {
        (None, name): True for name in ENDS if getattr(scheme, name)
    }
    weights = _amount({p: Gain(scheme.weight_gain(p, "value")) for p in _places()}, ONE)
    if weights is not None:
        words[None, WEIGHTS] = weights
    for branch in BRANCHES:
        slots = {place: scheme.slots(place) for place in _places() if place.branch == branch}
        first = next(iter(slots.values()))
        for name in (*NORMS, "shares_norm"):
            if getattr(first, name):
                words[branch, name] = True
        if first.branch_reads == "block":
            words[branch, "branch_reads"] = True
        for name in GAINS:
            gains = {place: getattr(each, name) for place, each in slots.items()}
            if (amount := _amount(gains, USUAL[name])) is not None:
                words[branch, name] = amount
    try:
        words = parsed(spelled(words))
    except OwnError:
        return None
    return words if same(record(words), scheme) else None


def _amount(gains: Mapping[Place, Gain], usual: Gain) -> Amount | None:
    """How gains at all places are written; None where they are as usual, or cannot be."""
    first = next(iter(gains.values()))
    if set(gains.values()) == {usual} or first.learned == "block":
        return None
    amounts = (
        replace(amount, learned=first.learned) for amount in (Amount(first.value), *FORMULAS)
    )
    return next((a for a in amounts if all(a.at(p) == gain for p, gain in gains.items())), None)
