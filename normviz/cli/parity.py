"""The table of `normviz list --parity`: what each record was held against."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog import NORMS, SCHEMES
from ..catalog.parity import TOLERANCE, differences
from ..catalog.scheme import Scheme

NO_ORACLE = "no public oracle: checked against its formula by an independent twin"


def table() -> str:
    """Schemes with their tolerance and what was measured; norms with their oracle."""
    return "\n".join([*_schemes(), *_norms()])


def _schemes() -> Iterator[str]:
    measured = differences()
    yield f"{'scheme':16} {'tolerance':>9} {'measured':>8}  held against"
    for scheme in SCHEMES:
        for i, (oracle, difference) in enumerate(_rows(scheme, measured)):
            key = "" if i else scheme.key
            yield f"{key:16} {TOLERANCE:9.0e} {difference:>8}  {oracle}"
    yield (
        "Tolerance and measured: the largest difference of streams, logits and gradients in "
        "float64, as a share of the largest number. Wiring and norms are the other side's own; "
        "where its attention or FFN is of another kind, ours stands in."
    )


def _rows(scheme: Scheme, measured: dict[str, dict[str, float]]) -> list[tuple[str, str]]:
    """Of each oracle, or of the twin, whose difference the tests bound but nothing stores."""
    rows = [(name, f"{value:.1e}") for name, value in measured.get(scheme.key, {}).items()]
    return rows or [(NO_ORACLE, "")]


def _norms() -> Iterator[str]:
    yield f"{'norm':20} held against"
    for norm in NORMS:
        yield f"{norm.key:20} {norm.oracle or NO_ORACLE}"
