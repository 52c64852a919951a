"""Which pairs are tried where all pairs would prove little more, and the name of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


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
