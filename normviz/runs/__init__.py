"""What a run recorded: one type for runs that train, are stored, ship or are exported. Torch-free."""

from .recording import UNWATCHED, Recording, RecordingBuilder, Steps, collect, empty
from .run import DONE, OPEN, SHIPPED, STATUSES, Run, Status

__all__ = [
    "DONE",
    "OPEN",
    "SHIPPED",
    "STATUSES",
    "UNWATCHED",
    "Recording",
    "RecordingBuilder",
    "Run",
    "Status",
    "Steps",
    "collect",
    "empty",
]
