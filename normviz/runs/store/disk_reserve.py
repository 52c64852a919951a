"""A little room on the disk, held back for the sentences that say that the disk is full.

SQLite writes even a changed word behind its log. Where the disk is full that fails too, and a run
that failed could not be said to have failed. So a file of zeros is kept, and given up for that.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

BYTES = 512 * 1024
SCARCE_BYTES = 4 * BYTES
"""With less free the page says so, and nothing is held back anew."""


def _file(folder: Path) -> Path:
    return folder / "held-back.room"


def hold(folder: Path) -> None:
    """Hold room back, where there is enough and none is held yet."""
    file = _file(folder)
    with suppress(OSError):
        if (not file.exists() or file.stat().st_size < BYTES) and free(folder) > SCARCE_BYTES:
            file.write_bytes(bytes(BYTES))


def give_up(folder: Path) -> bool:
    """Let go of it; whether there was any."""
    try:
        _file(folder).unlink()
    except OSError:
        return False
    return True


def free(folder: Path) -> int:
    """Bytes that are free on the disk of a folder."""
    return shutil.disk_usage(folder).free


def scarce(folder: Path) -> str | None:
    """A sentence where so little is free that runs can't be kept; None where there is room."""
    try:
        left = free(folder)
    except OSError:
        return None
    if left > SCARCE_BYTES:
        return None
    return (
        f"The disk of this server's store is full ({left / 1024:,.0f} KiB free): what is stored can be "
        "looked at, and new runs fail until there is room"
    )
