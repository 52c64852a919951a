"""A limit on how often the same line is logged, so that a script can't fill a disk with refusals."""

from __future__ import annotations

import logging
import time
from collections import Counter

from streamlit.runtime.scriptrunner_utils import script_run_context

LINES, SECONDS = 20, 60.0
"""Lines of one kind in a time. A kind is a message before values are put into it."""


class LogLimit(logging.Filter):
    """Lets so many lines of a kind pass, and says once that others are left out."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._lines = Counter[tuple[str, str]]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is logged."""
        if time.monotonic() - self._began > SECONDS:
            self._began = time.monotonic()
            self._lines.clear()
        kind = record.name, str(record.msg)[:80]
        self._lines[kind] += 1
        if self._lines[kind] == LINES:
            record.msg = f"{record.msg} (further lines like this one are left out for a minute)"
        return self._lines[kind] <= LINES


def install() -> None:
    """Put the limit on everything that logs by now. Call when the server starts."""
    # A file that is made at a click belongs to no page, of which Streamlit would warn each time.
    logging.getLogger(script_run_context.__name__).setLevel(logging.ERROR)
    limit = LogLimit()
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    handlers = {handler for logger in loggers for handler in logger.handlers} | {logging.lastResort}
    for handler in handlers:
        if handler is not None:
            handler.addFilter(limit)
