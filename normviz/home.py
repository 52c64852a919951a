"""Locations of folders: the user's data folder, and folders that ship with the product."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from platformdirs import user_data_path

VARIABLE = "NORMVIZ_HOME"
PRIVATE = 0o700
"""Permissions of a data folder: it holds texts and what models write of them."""
KEY_BYTES = 32
LOCK_SECONDS = 10.0


class Unusable(Exception):
    """A folder, the store or the environment can't be used; the sentence says why."""


class FolderError(Unusable, ValueError):
    """A given folder can't be used; the sentence says which, why, and how to mend it."""


def folder() -> Path:
    """The data folder, which may be missing: $NORMVIZ_HOME, else the platform's folder for user data."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else user_data_path("normviz", appauthor=False)


def home() -> Path:
    """The data folder, created if missing. Its owner alone can read it; a folder that $NORMVIZ_HOME names
    and that was there before keeps its permissions. Raises FolderError."""
    path = made(folder(), f"set {VARIABLE} to another folder", PRIVATE)
    if not os.environ.get(VARIABLE):
        with suppress(OSError):  # it is another user's
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)
    return path


def made(folder: Path, mend: str, mode: int = 0o777) -> Path:
    """A given folder, created with the permissions `mode` if missing. `mend` says how to choose another one.

    Raises FolderError.
    """
    folder = expanded(folder)
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FolderError(f"the folder {str(folder)!r} can't be made ({why}): {mend}") from None
    return folder


def secret(folder: Path) -> bytes:
    """The secret key of a data folder, which all servers of the folder share. Made if missing.

    Raises FolderError.
    """
    file = folder / "visitors.key"
    try:
        with FileLock(folder / "visitors.lock", timeout=LOCK_SECONDS):
            key = file.read_bytes() if file.exists() else b""
            if len(key) != KEY_BYTES:
                key = secrets.token_bytes(KEY_BYTES)
                write_private(file, key)
            return key
    except OSError as error:
        raise FolderError(
            f"the secret key can't be kept in {str(file)!r} ({error.strerror or error}): set "
            f"{VARIABLE} to a folder that can be written"
        ) from None


def write_private(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, so that its owner alone can read it. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def expanded(path: Path) -> Path:
    """The path, with ~ and ~name expanded. Raises FolderError for an unknown user."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise FolderError(
            f"{str(path)!r} is in the home folder of a user whom this machine does not know: write "
            "the whole path, or ./~ for a folder that is called so"
        ) from None


def shipped(name: str) -> Path:
    """A folder that ships with the product (`app`, `assets`): in the wheel, or in the checkout."""
    here = Path(__file__).parent
    return here / name if (here / name).is_dir() else here.parent / name
