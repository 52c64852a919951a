"""Symbols for tensors: which operations each was made by, from the stream that entered its block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Symbol:
    """A symbol for a tensor."""


@dataclass(frozen=True)
class Stream(Symbol):
    """The input of a block."""


@dataclass(frozen=True)
class Normed(Symbol):
    """The output of a norm; `name` is the path of its module, or a call of a function."""

    name: str
    of: Symbol


@dataclass(frozen=True)
class Made(Symbol):
    """Any other result of some tensors; `by` is what kind of operation made it, where that matters."""

    of: tuple[Symbol, ...]
    by: str = ""


@dataclass(frozen=True)
class Sum(Symbol):
    """first + second."""

    first: Symbol
    second: Symbol


@dataclass(frozen=True)
class Scaled(Symbol):
    """A tensor times a number or a vector; `by` is that number, or the name of the parameter."""

    of: Symbol
    by: str
    number: bool = False


@dataclass(frozen=True)
class Viewed(Symbol):
    """The same values in another shape, such as heads."""

    of: Symbol


def bare(symbol: Symbol) -> Symbol:
    """The symbol without changes of shape around it."""
    while isinstance(symbol, Viewed):
        symbol = symbol.of
    return symbol


def same(a: Symbol, b: Symbol) -> bool:
    """Whether two symbols are the same apart from shapes."""
    a, b = bare(a), bare(b)
    if a is b:
        return True
    if isinstance(a, Normed) and isinstance(b, Normed):
        return a.name == b.name and same(a.of, b.of)
    if isinstance(a, Sum) and isinstance(b, Sum):
        return same(a.first, b.first) and same(a.second, b.second)
    return isinstance(a, Stream) and isinstance(b, Stream)


def sources(symbol: Symbol, until: Callable[[Symbol], bool] = lambda _: False) -> Iterator[Symbol]:
    """A symbol and all that it was computed from, each once, back to those where `until` is true."""
    todo, seen = [symbol], set[int]()
    while todo:
        part = todo.pop()
        if id(part) in seen or until(part):
            continue
        seen.add(id(part))
        yield part
        todo += read_by(part)


def read_by(symbol: Symbol) -> tuple[Symbol, ...]:
    """What a symbol was computed from in one operation."""
    match symbol:
        case Made(of=parts):
            return parts
        case Sum(first, second):
            return first, second
        case Normed(of=of) | Scaled(of=of) | Viewed(of=of):
            return (of,)
    return ()
