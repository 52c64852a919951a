"""Measurements that are kept: those made here, one a setting and machine, and the one that ships."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .result import ADAPTER, Measurement

SHIPPED = Path(__file__).with_name("shipped.json")


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
        return ADAPTER.validate_json(path.read_bytes())
    except (OSError, ValueError):  # of another release, or damaged
        return None
