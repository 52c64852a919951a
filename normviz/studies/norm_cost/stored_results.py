"""Stored measurements: those of this machine, one per setting, and the shipped one."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from .result import ADAPTER, Measurement, Row
from .variants import CASES, CONTROL, LIBRARY, REFERENCE

SHIPPED = Path(__file__).with_name("shipped.json")
MOST = 1e15
"""Larger than any real count or time; smaller numbers fit in tables and charts."""


def write(measurement: Measurement, path: Path) -> None:
    """Write it as JSON, atomically."""
    part = path.with_suffix(".part")
    part.write_bytes(ADAPTER.dump_json(measurement, indent=1))
    os.replace(part, path)


def keep(measurement: Measurement, folder: Path) -> Path:
    """Store it in a data folder, replacing an older one of the same machine and setting."""
    path = folder / "cost" / f"{_name(measurement)}.json"
    path.parent.mkdir(exist_ok=True)
    write(measurement, path)
    return path


def _name(measurement: Measurement) -> str:
    setting = measurement.setting
    machine = re.sub(r"\W+", "-", measurement.machine.lower()).strip("-")
    return f"{setting.device}-{setting.threads}t-w{setting.width}-n{setting.tokens}-{machine}"


def measurements(folder: Path) -> list[Measurement]:
    """The measurements of a data folder, newest first. Skips files that are not measurements."""
    parsed_files = [_read(path) for path in (folder / "cost").glob("*.json")]
    return sorted((m for m in parsed_files if m is not None), key=lambda m: m.when, reverse=True)


def shipped() -> Measurement:
    """The measurement that ships with NormViz."""
    return ADAPTER.validate_json(SHIPPED.read_bytes())


def _read(path: Path) -> Measurement | None:
    try:
        measurement = ADAPTER.validate_json(path.read_bytes())
        return measurement if _is_whole(measurement) else None
    except (OSError, ValueError, OverflowError):  # from another release, or damaged
        return None


def _is_whole(measurement: Measurement) -> bool:
    """Whether it has each row of its variants once, numbers in range, and a time in sortable form.

    Raises ValueError if the time can't be parsed.
    """
    rows = sorted((row.context, row.passes, row.variant) for row in measurement.rows)
    when = datetime.fromisoformat(measurement.when)
    return (
        {REFERENCE, CONTROL, LIBRARY} <= {*measurement.variants}
        and rows == sorted((*case, key) for case in CASES for key in measurement.variants)
        and when.tzinfo is not None
        and when.astimezone(UTC).isoformat(timespec="seconds") == measurement.when
        and all(0 <= number < MOST for row in measurement.rows for number in _numbers(row))
        and 0 <= (measurement.load or 0.0) < MOST
        and 0 < measurement.rounds < MOST
    )


def _numbers(row: Row) -> tuple[float, ...]:
    its = row.ratio
    return (
        row.seconds, its.median, its.low, its.high, row.kernels, row.bytes, row.operations
    )  # fmt: skip
