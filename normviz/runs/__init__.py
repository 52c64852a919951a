"""What a run recorded: one type for runs that train, are stored, ship or are exported. Torch-free."""

from .recording import (
    DONE,
    OPEN,
    STATUSES,
    UNWATCHED,
    Recording,
    RecordingBuilder,
    Status,
    Steps,
    collect,
    empty,
)

__all__ = [
    "DONE",
    "OPEN",
    "STATUSES",
    "UNWATCHED",
    "Recording",
    "RecordingBuilder",
    "Status",
    "Steps",
    "collect",
    "empty",
]
