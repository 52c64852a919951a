"""A reserve on the disk, for storing that a run failed because the disk is full.

SQLite appends every change to a log. On a full disk that fails too, and a failed run could not be
marked as failed. So a file of zeros is kept, and deleted when that space is needed.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

BYTES = 512 * 1024
SCARCE_BYTES = 4 * BYTES
"""With less free space the page shows a sentence, and no new reserve is made."""


def _file(folder: Path) -> Path:
    return folder / "held-back.room"


def hold(folder: Path) -> None:
    """Make the reserve, where there is enough free space and no reserve yet."""
    file = _file(folder)
    with suppress(OSError):
        if (not file.exists() or file.stat().st_size < BYTES) and free(folder) > SCARCE_BYTES:
            file.write_bytes(bytes(BYTES))


def give_up(folder: Path) -> bool:
    """Delete the reserve; returns whether there was one."""
    try:
        _file(folder).unlink()
    except OSError:
        return False
    return True


def free(folder: Path) -> int:
    """Free bytes on the disk of a folder. Raises OSError where the folder can't be read."""
    return shutil.disk_usage(folder).free


def scarce(folder: Path) -> str | None:
    """A sentence where too little space is free to store runs; None where there is enough."""
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
