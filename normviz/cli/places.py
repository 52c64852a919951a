"""Folders and files of a command line: checked before anything runs, and written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog.families import either
from ..home import PRIVATE, expanded, made

if TYPE_CHECKING:
    import pandas as pd

    from ..runs.store import Store

TABLES, PICTURES = (".parquet", ".csv"), (".svg", ".png")


def data_folder(given: Path | None) -> Path | None:
    """The folder of --data, created if missing; None for the default. Raises FolderError."""
    return None if given is None else made(given, "choose another with --data", PRIVATE)


def stored(given: Path | None) -> Store:
    """The store of --data, whose folder must exist. Raises FolderError or StoreError."""
    from ..runs.store import Store

    return Store(None if given is None else expanded(given))


def is_folder(path: Path) -> bool:
    """Whether the path is a folder; False where `Path.is_dir` raises (a long name, no permission)."""
    return os.path.isdir(path)


def check_file(path: Path | None, suffixes: Sequence[str], option: str) -> None:
    """Raises ValueError with a sentence if the file can't be written."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise ValueError(
            f"{option} is {str(path)!r}, allowed is a name ending in {either(suffixes)}"
        )
    if not is_folder(path.parent):
        raise ValueError(f"{option} names the folder {str(path.parent)!r}, which does not exist")
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"{option} {str(path)!r} can't be written: {why}") from None


def write_table(rows: pd.DataFrame, path: Path) -> None:
    """Rows as CSV or Parquet, by the file's suffix."""
    if path.suffix == ".csv":
        rows.to_csv(path, index=False, na_rep="nan")
    else:
        rows.to_parquet(path, index=False)


def write_picture(spec: dict[str, Any], lines: Sequence[str], path: Path) -> None:
    """A chart with lines on its origin, as SVG or PNG by the file's suffix."""
    from ..charts import theme
    from ..export.pictures import captioned, picture

    kind = "svg" if path.suffix == ".svg" else "png"
    path.write_bytes(picture(captioned(spec, lines), kind, config=theme(False)))
