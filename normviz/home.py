"""Where things lie: the user's data folder, and the folders that ship with the product."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

VARIABLE = "NORMVIZ_HOME"


def home() -> Path:
    """The data folder: $NORMVIZ_HOME, else the platform's place for user data. Made if missing."""
    chosen = os.environ.get(VARIABLE)
    folder = Path(chosen).expanduser() if chosen else user_data_path("normviz", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def shipped(name: str) -> Path:
    """A folder that ships with the product (`app`, `assets`): in the wheel, or in the checkout."""
    here = Path(__file__).parent
    return here / name if (here / name).is_dir() else here.parent / name
