"""A finished duel to take away: tables, configs, a script in plain PyTorch, pictures. Torch-free."""

from .archive import KINDS, Kind, archive
from .config_json import Configs, read_configs, write_configs
from .figure import figure
from .pictures import picture
from .replay import replay
from .script import script
from .tables import COLUMNS, Column, tables

__all__ = [
    "COLUMNS",
    "KINDS",
    "Column",
    "Configs",
    "Kind",
    "archive",
    "figure",
    "picture",
    "read_configs",
    "replay",
    "script",
    "tables",
    "write_configs",
]
