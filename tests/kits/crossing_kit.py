"""Which pairs of a scheme and another setting are tried, where all pairs would prove little more.

A scheme and a norm meet in two places: `make_norm` builds the norm for some width, whatever the scheme is,
and `wire.started` scales what it learns. So a pair fails by itself only where a scheme asks something special
of its norms (another kind of stream, norms inside a branch, a smaller start), or where a norm is special to
every scheme (it is none, or it learns nothing). Norms of queries, keys and values meet the scheme in
attention alone.

`with_schemes` therefore tries each scheme of `SPECIAL` with every option, and every other scheme with one
option of each kind, in rotation: every scheme meets every kind of option, and every option meets every kind
of stream and of slot. Full crossings remain in `training/test_tape.py`, where the memory plan of the compiled
program depends on the pair, and for links, where a pair takes a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from normviz.catalog import NORMS, QK_NORMS, SCHEMES, V_NORMS
from normviz.catalog.scheme import Place, Scheme

T = TypeVar("T")


def _asks(scheme: Scheme) -> tuple[object, ...]:
    """What a scheme asks of norms and of attention, besides norms of the stream's width in a row."""
    slots = [
        scheme.slots(Place(b, 3, branch)) for b in (1, 2, 3) for branch in ("attention", "ffn")
    ]
    return (
        scheme.streams,
        scheme.constraint,
        any(s.norm_inner for s in slots),
        any(s.norm_qkv for s in slots),
        any(s.unit_qk for s in slots),
        any(s.head_gain for s in slots),
        any(s.shares_norm for s in slots),
        any(s.first_value for s in slots),
        {s.gamma_in for s in slots} != {1.0},
        {s.gamma_out for s in slots} != {1.0},
    )


SPECIAL = tuple({_asks(scheme): scheme.key for scheme in reversed(list(SCHEMES))}.values())
"""The first scheme of each kind of stream, of constraint and of slot."""

NORM_KINDS = (
    ("none",),
    tuple(norm.key for norm in NORMS if not norm.learns and norm.key != "none"),
    tuple(norm.key for norm in NORMS if norm.learns),
)
ATTENTION_KINDS = tuple(tuple((qk.key, v.key) for qk in QK_NORMS) for v in V_NORMS)
"""Pairs of a QK-norm and a norm of values, without the latter and with it."""


def with_schemes(kinds: Sequence[Sequence[T]]) -> list[tuple[str, T]]:
    """Pairs of a scheme's key and an option, of options that come in kinds."""
    return [
        (scheme, option)
        for i, scheme in enumerate(SCHEMES.keys())
        for n, kind in enumerate(kinds)
        for option in (kind if scheme in SPECIAL else [kind[(i + n) % len(kind)]])
    ]


@contextmanager
def case(*names: object) -> Iterator[None]:
    """One case of several in a test: what fails in it names the case."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case of {' '.join(map(str, names))}")
        raise
