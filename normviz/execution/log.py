"""What supervisor and workers say: one line of JSON an event on standard error, through `logging`.

    {"time": "2026-11-21T12:00:00.123Z", "level": "info", "event": "handed out", "run": 12, ...}

Visitors appear as the short hash that the store has, texts and settings not at all. Outside of hosted
mode only what went wrong is said: who runs NormViz for themselves has a terminal to read.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from .. import hosted
from ..runs.store import Run

LOG = logging.getLogger("normviz.execution")
BAD = ("died", "failed")
"""Events that are warnings."""


class Lines(logging.Formatter):
    """A record as one line of JSON; a traceback, where there is one, is a field of it."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said: dict[str, Any] = {
            "time": f"{at}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "said", {}),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def begin() -> None:
    """Write this process's events to standard error."""
    if not LOG.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(Lines())
        LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.WARNING if hosted.limits() is None else logging.INFO)


def say(event: str, run: int | None = None, **more: object) -> None:
    """Say an event; what is None is left out."""
    said = {name: value for name, value in {"run": run, **more}.items() if value is not None}
    level = logging.WARNING if event in BAD else logging.INFO
    LOG.log(level, event, extra={"said": said})


def broke(run: int) -> None:
    """Say the error that is being handled, with its traceback, as one line."""
    LOG.error("error", exc_info=True, extra={"said": {"run": run}})


def ended(run: Run | None) -> None:
    """Say what became of a run."""
    if run is not None and run.ended is not None:
        event = "failed" if run.status == "failed" else "ended"
        say(event, run.id, status=run.status, visitor=run.visitor, why=run.message)
