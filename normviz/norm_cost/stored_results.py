"""Measurements that are kept: those made here, one a setting and machine, and the one that ships."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from .result import ADAPTER, Measurement, Row
from .variants import CASES, KEYS

SHIPPED = Path(__file__).with_name("shipped.json")
MOST = 1e15
"""No count or time of a measurement comes near; tables and charts can show what is below."""


def write(measurement: Measurement, path: Path) -> None:
    """As JSON, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(ADAPTER.dump_json(measurement, indent=1))
    os.replace(part, path)


def keep(measurement: Measurement, folder: Path) -> Path:
    """Into a data folder; an older one of the same machine and setting goes."""
    path = folder / "cost" / f"{_name(measurement)}.json"
    path.parent.mkdir(exist_ok=True)
    write(measurement, path)
    return path


def _name(measurement: Measurement) -> str:
    it = measurement.setting
    machine = re.sub(r"\W+", "-", measurement.machine.lower()).strip("-")
    return f"{it.device}-{it.threads}t-w{it.width}-n{it.tokens}-{machine}"


def kept(folder: Path) -> list[Measurement]:
    """Those of a data folder, the newest first; files that are not measurements are left out."""
    found = [_read(path) for path in (folder / "cost").glob("*.json")]
    return sorted((m for m in found if m is not None), key=lambda m: m.when, reverse=True)


def shipped() -> Measurement:
    """The one that ships with NormViz."""
    return ADAPTER.validate_json(SHIPPED.read_bytes())


def _read(path: Path) -> Measurement | None:
    try:
        found = ADAPTER.validate_json(path.read_bytes())
        return found if _is_whole(found) else None
    except (OSError, ValueError, OverflowError):  # of another release, or damaged
        return None


def _is_whole(it: Measurement) -> bool:
    """Whether it has each row once, numbers that can be told, and the time in the one form that sorts.

    Raises ValueError for what is no time.
    """
    rows = sorted((row.context, row.passes, row.variant) for row in it.rows)
    when = datetime.fromisoformat(it.when)
    return (
        rows == sorted((*case, key) for case in CASES for key in KEYS)
        and when.tzinfo is not None
        and when.astimezone(UTC).isoformat(timespec="seconds") == it.when
        and all(0 <= number < MOST for row in it.rows for number in _numbers(row))
        and 0 <= (it.load or 0.0) < MOST
        and 0 < it.rounds < MOST
    )


def _numbers(row: Row) -> tuple[float, ...]:
    its = row.ratio
    return (
        row.seconds, its.median, its.low, its.high, row.kernels, row.bytes, row.operations
    )  # fmt: skip
