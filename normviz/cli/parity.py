"""The table of `normviz list --parity`: the reference that each record was tested against."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalog import NORMS, SCHEMES
from ..catalog.choices import Choice
from ..catalog.models import TOLERANCE, differences
from ..catalog.scheme import Scheme
from ..catalog.setting import FORMULA
from ..config import CHOICES, SETTINGS

NO_ORACLE = "no public oracle: checked against its formula by an independent twin"


def table() -> str:
    """Schemes with their tolerance and measured difference; norms and settings with their reference."""
    return "\n".join([*_schemes(), *_norms(), *_settings()])


def _schemes() -> Iterator[str]:
    measured = differences()
    yield f"{'scheme':16} {'tolerance':>9} {'measured':>8}  tested against"
    for scheme in SCHEMES:
        for i, (oracle, difference) in enumerate(_rows(scheme, measured)):
            key = "" if i else scheme.key
            yield f"{key:16} {TOLERANCE:9.0e} {difference:>8}  {oracle}"
    yield (
        "Tolerance and measured: the largest difference of streams, logits and gradients in "
        "float64, as a share of the largest number. Wiring and norms are the reference's own; "
        "if its attention or FFN is of another kind, ours replaces it."
    )


def _rows(scheme: Scheme, measured: dict[str, dict[str, float]]) -> list[tuple[str, str]]:
    """(reference, measured difference); the twin's difference is bounded by tests and not stored."""
    rows = [(name, f"{value:.1e}") for name, value in measured.get(scheme.key, {}).items()]
    return rows or [(NO_ORACLE, "")]


def _norms() -> Iterator[str]:
    yield f"{'norm':20} tested against"
    for norm in NORMS:
        yield f"{norm.key:20} {norm.oracle or NO_ORACLE}"


def _settings() -> Iterator[str]:
    yield f"{'setting':28} tested against"
    for field, registry in CHOICES.items():
        for record in registry:
            if isinstance(record, Choice) and field != "device":
                yield f"{f'{field}={record.key}':28} {record.oracle or FORMULA}"
    for field, setting in SETTINGS.items():
        if setting.oracle:
            yield f"{field:28} {setting.oracle}"


def against(field: str, record: Any) -> str:
    """The end of a record's line in `normviz list`: what the tests compare it with, or nothing."""
    oracle = getattr(record, "oracle", None)
    return "" if oracle is None or field == "device" else f" (tested against {oracle or FORMULA})"
