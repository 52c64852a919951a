"""Locations of folders: the user's data folder, and folders that ship with the product."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

VARIABLE = "NORMVIZ_HOME"


class Unusable(Exception):
    """A folder, the store or the environment can't be used; the sentence says why."""


class FolderError(Unusable, ValueError):
    """A given folder can't be used; the sentence says which, why, and how to mend it."""


def folder() -> Path:
    """The data folder, which may be missing: $NORMVIZ_HOME, else the platform's folder for user data."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else user_data_path("normviz", appauthor=False)


def home() -> Path:
    """The data folder, created if missing. Raises FolderError."""
    return made(folder(), f"set {VARIABLE} to another folder")


def made(folder: Path, mend: str) -> Path:
    """A given folder, created if missing. `mend` says how to choose another one.

    Raises FolderError.
    """
    folder = expanded(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FolderError(f"the folder {str(folder)!r} can't be made ({why}): {mend}") from None
    return folder


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
