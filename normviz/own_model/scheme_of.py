"""Which placement of the catalogue a traced stack has.

Every scheme's record gives the symbol of its block, with its gains at that depth. A traced block and a
scheme agree if both are the same when written out: the same terms, norms, branches and gains, in any order
of addition. Where no scheme agrees exactly, the judge's rules name the placement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ..catalog import SCHEMES
from ..catalog.scheme import BRANCHES, Gain, Place, Scheme, Slots
from .judge import Sublayer, Undecided, placement
from .placement import (
    LENGTH,
    OTHER,
    ROLES,
    ROOT,
    STATISTIC,
    BlockTrace,
    StackTrace,
    is_state,
    role_of,
)
from .symbols import Made, Normed, Scaled, Stream, Sum, Symbol, Viewed, bare

FAR = 1000
"""Blocks of a stack up to which its form is compared with the catalogue's."""


@dataclass(frozen=True)
class Named:
    """A stack's placement: a key of the catalogue, other keys with the same forward pass, and whether all
    gains agree too. Without a key, `why` is the reason."""

    key: str | None
    alike: tuple[str, ...] = ()
    exact: bool = False
    why: str = ""


def scheme_of(each: StackTrace) -> Named:
    """Name the placement of a stack."""
    blocks = each.blocks
    if not blocks or each.stream is None:
        return Named(
            None, why="no tensor that enters its blocks has the shape of one that leaves them"
        )
    final = each.final_norm is not None or each.goes_on == "blocks" or each.alone
    ends = (final, each.embed_norm is not None)
    if each.mixes:
        return Named(None, why=each.mixes)
    if each.between is None and each.stream.rivals == 0:
        forms = tuple(_written(block.result, qk_names(block)) for block in blocks)
        keys = [
            s.key for s in _one_stream() if _ends(s) == ends and _forms(s.key, len(blocks)) == forms
        ]
        if keys:
            return Named(keys[0], tuple(keys[1:]), True)
        told = _by_rules(each)
        if told.key is None:  # attention with a learned temperature, whose placement has a record
            forms = tuple(form.replace(f" | {INNER_GAIN}", "") for form in forms)
            for s in _one_stream():
                if _ends(s) == ends and _forms(s.key, len(blocks)) == forms:
                    return Named(s.key)
        return told
    return _by_rules(each)


def _by_rules(each: StackTrace) -> Named:
    """By the judge's rules, which leave gains aside."""
    keys: dict[str, None] = {}
    reasons: dict[str, None] = {}
    for block in each.blocks[1 if _starts_normed(each) else 0 :]:
        try:
            keys[key_of(block)] = None
        except Undecided as error:
            reasons[str(error)] = None
    if reasons:
        many = f"; {len(reasons) - 1} more reasons in other blocks" if len(reasons) > 1 else ""
        return Named(None, why=next(iter(reasons)) + many)
    if each.between is not None:
        return Named(None, why=f"a norm stands between its blocks, {each.between}")
    if len(keys) > 1:
        labels = ", ".join(SCHEMES.label(key) for key in keys)
        return Named(None, why=f"its blocks differ: {labels}")
    (key,) = keys
    if key == "sandwich" and each.embed_norm is not None:
        key = "peri"
    return Named(key)


def _starts_normed(each: StackTrace) -> bool:
    """Whether the first block is as the second one, but for a norm that the embedding's norm stands for."""
    first, second = each.blocks[0], each.blocks[min(1, len(each.blocks) - 1)]
    before = bare(first.before) if first.before is not None else None
    if not isinstance(before, Normed) or first.judged is None or second.judged is None:
        return False
    first_shapes, second_shapes = (
        [_shape(s) for s in block.judged.sublayers] for block in (first, second) if block.judged
    )
    without = [(False, *shape[1:]) if n == 0 else shape for n, shape in enumerate(second_shapes)]
    return first_shapes == without and first_shapes != second_shapes


def _shape(sublayer: Sublayer) -> tuple[bool, bool, bool]:
    """Whether a sublayer has a norm before each branch, after each, and on the sum."""
    return (
        all(b.norm_in for b in sublayer.branches),
        all(b.norm_out for b in sublayer.branches),
        sublayer.norm_main is not None,
    )


def key_of(block: BlockTrace) -> str:
    """The key of one block, gains aside. Raises Undecided."""
    if block.judged is None:
        raise Undecided(block.why)
    key = placement(block.judged)
    roots = [b.root for s in block.judged.sublayers for b in s.branches]
    if key == "none" and set().union(*(inner_norms(root) for root in roots)) - {"attention"}:
        raise Undecided(
            "no norm stands on the stream or around a branch, and some stand inside of branches"
        )
    if key == "pre" and all(
        _norm_before_last(b.root) for s in block.judged.sublayers for b in s.branches
    ):
        return "subln"
    return key


def _norm_before_last(root: Symbol | None) -> bool:
    """Whether the last matrix of a branch reads the output of a norm inside of the branch."""
    match root:
        case Made(of=(read,), by="linear"):
            read = bare(read)
            while isinstance(read, Scaled):
                read = bare(read.of)
            return isinstance(read, Normed) and not is_state(read)
    return False


def _ends(scheme: Scheme) -> tuple[bool, bool]:
    return scheme.final_norm, scheme.embed_norm


@cache
def _one_stream() -> tuple[Scheme, ...]:
    return tuple(s for s in SCHEMES if s.streams == "one")


@cache
def _forms(key: str, depth: int) -> tuple[str, ...]:
    """A scheme's blocks, written out."""
    return tuple(_written(block_of(key, b, depth)) for b in range(1, min(depth, FAR) + 1))


# A scheme's block as a symbol.


def block_of(key: str, block: int, depth: int) -> Symbol:
    """The symbol of a block (1..depth) of a scheme of one stream."""
    scheme, x = SCHEMES[key], Stream()
    result: Symbol = x
    shared: Symbol | None = None
    for number, branch in enumerate(BRANCHES):
        slots = scheme.slots(Place(block, depth, branch))
        result, shared = _sublayer(result, x, slots, number, block, shared)
    return result


def _sublayer(
    x: Symbol, entered: Symbol, slots: Slots, number: int, block: int, shared: Symbol | None
) -> tuple[Symbol, Symbol]:
    """The state after a sublayer, and what its norm before the branch gave."""
    at = f"sublayer {number}"
    u = _times(x, slots.stream_gain, f"{at} stream")
    if not slots.embed_gain.is_zero:
        embedding = entered if block == 1 else Made((), "outside")
        u = Sum(u, _times(embedding, slots.embed_gain, f"{at} embed"))
    u = Normed(f"{at} fork", u) if slots.norm_fork else u
    source = entered if slots.branch_reads == "block" else u
    given = Normed(f"{at} in", source) if slots.norm_in else source
    given = shared if slots.shares_norm and shared is not None else given
    f = _branch(_times(given, slots.input_gain, f"{at} input"), slots, number, block)
    f = Normed(f"{at} out", f) if slots.norm_out else f
    skip: Symbol = Normed(f"{at} skip", u) if slots.norm_skip else u
    result = _mixed(skip, f, slots, at)
    if not slots.block_gain.is_zero:
        again = _times(entered, slots.block_gain, f"{at} block")
        result = again if result is None else Sum(result, again)
    assert result is not None
    if slots.gate:
        result = Sum(result, Scaled(Scaled(result, "gate", True), "-1", True))
    result = Normed(f"{at} main", result) if slots.norm_main else result
    return _times(result, slots.main_gain, f"{at} main"), given


def _mixed(skip: Symbol, f: Symbol, slots: Slots, at: str) -> Symbol:
    gain = f"{at} branch" if slots.branch_gain.learned != "block" else "branch"
    if slots.mix in ("lerp", "variance"):  # both factors are made of one parameter
        return Sum(Scaled(skip, gain), Scaled(f, gain))
    if slots.shifts:
        skip, f = Sum(skip, Made((), "shift")), Made((f,))
    f = _times(f, slots.branch_gain, gain)
    return f if slots.skip_gain.is_zero else Sum(_times(skip, slots.skip_gain, f"{at} skip"), f)


def _branch(given: Symbol, slots: Slots, number: int, block: int) -> Symbol:
    """A sublayer's branch, with what its record has inside."""
    hidden: Symbol = Made((given,), "linear")
    if number == 0:
        values: Symbol = Normed("v", hidden) if slots.norm_qkv else hidden
        if not slots.qk_gain.is_one:
            hidden = Scaled(hidden, "qk")
        if slots.first_value and block > 1:
            values = Sum(values, Made((), "outside"))
        hidden = Made((hidden, values), "attention")
        if slots.head_gain:
            hidden = Scaled(hidden, "heads")
    elif not slots.hidden_gain.is_one:
        hidden = Scaled(hidden, "hidden")
    if slots.norm_inner:
        hidden = Normed("inner", hidden)
    return Made((hidden,), "linear")


def _times(symbol: Symbol, gain: Gain, label: str) -> Symbol:
    """A symbol times a gain of the record."""
    if gain.is_one or (gain.ramp and not gain.learned):
        return symbol
    if gain.learned:
        return Scaled(symbol, label, gain.learned != "channel")
    return Scaled(symbol, f"{gain.value:.6g}", True)


# A block written out.


def written(block: BlockTrace) -> str:
    """A traced block in words: written out with what its branches are, without its norms of queries and
    keys."""
    return _Writer(frozenset(qk_names(block)), True).whole(block.result)


def _written(symbol: Symbol, ignored: Iterable[str] = ()) -> str:
    """A symbol written out without what its branches are, to compare it with another one."""
    return _Writer(frozenset(ignored)).whole(symbol)


OPERATIONS = {
    "attention", "linear", "softmax", "part", "tokens", "hidden", "zeros", "own", STATISTIC, ROOT, LENGTH,
}  # fmt: skip
"""What operations in a branch are called, beside its norms, gains and values from outside."""


INNER_GAIN = "learned gain"
"""What is written of a learned gain inside of a branch."""
GAIN = re.compile(r"\[([^\[\]]*) (number|vector)\]")
"""A learned gain in a text, with its name."""


class _Writer:
    """Writes symbols so that equal computations are equal texts: terms sorted, learned gains numbered in
    the order of that text. A placement is the same whatever its branches are, so only `roles` tells."""

    def __init__(self, ignored: frozenset[str], roles: bool = False) -> None:
        self.ignored, self.roles = ignored, roles
        self.norms: dict[str, list[str]] = {}
        self.memo: dict[int, list[tuple[str, str]]] = {}

    def whole(self, symbol: Symbol) -> str:
        """The text with numbers in place of the gains' names."""
        known: dict[str, int] = {}
        return GAIN.sub(
            lambda match: f"[{known.setdefault(match[1], len(known) + 1)} {match[2]}]",
            self.state(symbol),
        )

    def state(self, symbol: Symbol) -> str:
        each = [f"{factor}{atom}" for factor, atom in self.terms(symbol)]
        return " + ".join(sorted(each, key=_nameless))

    def terms(self, symbol: Symbol) -> list[tuple[str, str]]:
        """Factor and atom of each term."""
        if id(symbol) not in self.memo:
            self.memo[id(symbol)] = self._terms(symbol)
        return self.memo[id(symbol)]

    def _terms(self, symbol: Symbol) -> list[tuple[str, str]]:
        match symbol:
            case Viewed(of=of):
                return self.terms(of)
            case Sum(first, second):
                return self.terms(first) + self.terms(second)
            case Scaled(of=of, by=by, number=number):
                inner = self.terms(of)
                return [(_product(self.factor(by, number), factor), atom) for factor, atom in inner]
            case Normed(name=name, of=of):
                return [("", self.norm(name, self.state(of)))]
            case Stream():
                return [("", "x")]
        return [("", self.branch(symbol))]

    def norm(self, name: str, of: str) -> str:
        """The norm of a state; a second one of the same state has a mark."""
        known = self.norms.setdefault(of, [])
        if name not in known:
            known.append(name)
        return "N" + "'" * known.index(name) + f"({of})"

    def factor(self, by: str, number: bool) -> str:
        if (value := as_number(by)) is not None:
            return f"{value:.4g}"
        return f"[{by.removeprefix('1/')} {'number' if number else 'vector'}]"

    def branch(self, symbol: Symbol) -> str:
        seen: set[int] = set()
        inputs: set[str] = set()
        labels: set[str] = set()
        self._walk(symbol, "", inputs, labels, seen)
        role = ROLES.get(role_of(labels), OTHER)[0] if self.roles else "B"
        inside = sorted(labels - OPERATIONS)
        return f"{role}({', '.join(sorted(inputs))}{' | ' if inside else ''}{', '.join(inside)})"

    def _walk(
        self, symbol: Symbol, above: str, inputs: set[str], labels: set[str], seen: set[int]
    ) -> None:
        if id(symbol) in seen:
            return
        seen.add(id(symbol))
        if is_state(symbol):
            inputs.add(self.state(symbol))
            return
        match symbol:
            case Made(of=parts, by=by):
                labels.add(by) if by else None
                for part in parts:
                    self._walk(part, by or above, inputs, labels, seen)
            case Normed(name=name, of=of):
                if name not in self.ignored:
                    labels.add(f"norm before {above or 'the end'}")
                self._walk(of, above, inputs, labels, seen)
            case Sum(first, second):
                self._walk(first, above, inputs, labels, seen)
                self._walk(second, above, inputs, labels, seen)
            case Scaled(of=of, by=by):
                if as_number(by) is None:
                    labels.add(INNER_GAIN)
                self._walk(of, above, inputs, labels, seen)
            case Viewed(of=of):
                self._walk(of, above, inputs, labels, seen)


def as_number(by: str) -> float | None:
    """The number that a gain is; None for a learned one."""
    try:
        return float(by)
    except ValueError:
        return None


def _product(left: str, right: str) -> str:
    """Two factors as one, numbers multiplied."""
    numbers, learned = 1.0, []
    for part in [*left.split(" * "), *right.split(" * ")]:
        part = part.removesuffix(" ").removesuffix("*").strip()
        if part and (value := as_number(part)) is not None:
            numbers *= value
        elif part:
            learned.append(part)
    text = [f"{numbers:.4g}"] if abs(numbers - 1) > 1e-6 else []
    return "".join(f"{part} * " for part in [*text, *sorted(learned, key=_nameless)])


def _nameless(text: str) -> str:
    """A text without the names of its gains, to sort by."""
    return GAIN.sub(r"[\2]", text)


# Norms inside of a branch.


def inner_norms(root: Symbol | None) -> set[str]:
    """What the norms inside of a branch stand before: "linear", "attention"."""
    labels: set[str] = set()
    writer = _Writer(frozenset())
    if root is not None:
        writer._walk(root, "", set(), labels, set())
    return {label.removeprefix("norm before ") for label in labels if label.startswith("norm")}


def qk_norms(block: BlockTrace) -> list[tuple[Normed, int]]:
    """The norms of queries and keys, each with the number of channels that its operand has in a head."""
    norms: dict[int, tuple[Normed, int]] = {}
    for product in block.products:
        sides = [_operand(product.left), _operand(product.right)]
        if not (sides[0] and sides[1]):  # weights times values, or a norm on one side alone
            continue
        for norm in (*sides[0], *sides[1]):
            norms[id(norm)] = (norm, product.shapes[0][-1])
    return [*norms.values()]


def qk_names(block: BlockTrace) -> set[str]:
    """Names of the norms of queries and keys of a block."""
    return {norm.name for norm, _ in qk_norms(block)}


def _operand(symbol: Symbol) -> list[Normed] | None:
    """The norms that one operand of a product passed after its last matrix; None for weights."""
    norms: list[Normed] = []
    todo, seen = [symbol], set[int]()
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case Made(by="softmax") | Made(by="attention"):
                return None
            case Made(by="linear"):
                continue
            case Made(of=parts):
                todo += parts
            case Normed(of=of):
                if not is_state(part):
                    norms.append(part)
                    todo.append(of)
            case Sum(first, second):
                todo += [first, second]
            case Scaled(of=of) | Viewed(of=of):
                todo.append(of)
    return norms
