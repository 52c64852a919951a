"""The log of supervisor and workers: one line of JSON per event on standard error, through `logging`.

    {"time": "2026-11-21T12:00:00.123Z", "level": "info", "event": "handed out", "run": 12, ...}

Visitors appear as the short hash in the store; texts and settings do not appear. Except on a shared
server only errors are logged, because the log goes to the user's own terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from ..policy import Policy
from ..runs import Run

LOG = logging.getLogger("normviz.execution")
BAD = ("died", "failed")
"""Events that are warnings."""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, with the traceback, if any, as a field."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as one line of JSON."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{at}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def begin(policy: Policy) -> None:
    """Write this process's events to standard error: all of a shared server, else only errors."""
    if not LOG.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.INFO if policy.is_shared else logging.WARNING)


def event(name: str, run: int | None = None, **more: object) -> None:
    """Log an event; fields that are None are left out."""
    fields = {name: value for name, value in {"run": run, **more}.items() if value is not None}
    level = logging.WARNING if name in BAD else logging.INFO
    LOG.log(level, name, extra={"fields": fields})


def exception(run: int) -> None:
    """Log the error that is being handled, with its traceback, as one line."""
    LOG.error("error", exc_info=True, extra={"fields": {"run": run}})


def ended(run: Run | None) -> None:
    """Log how a run ended."""
    if run is not None and run.ended is not None:
        name = "failed" if run.status == "failed" else "ended"
        event(name, run.id, status=run.status, visitor=run.visitor, why=run.message)
