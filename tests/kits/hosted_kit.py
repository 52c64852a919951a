"""A hosted server for tests: its switch, tighter limits, and a supervisor of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from normviz import hosted
from normviz.home import home
from normviz.hosted import STORE, SWITCH

SUPERVISOR = """
import json, sys
from dataclasses import replace
from normviz import hosted
hosted.LIMITS = replace(hosted.LIMITS, **json.loads(sys.argv[1]))
from normviz.execution.supervisor import serve
sys.exit(serve(int(sys.argv[2]) or None))
"""


def turn_on(patch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Hosted mode in this process, with some limits of the test's own."""
    patch.setenv(SWITCH, "1")
    patch.setattr(hosted, "LIMITS", replace(hosted.LIMITS, **limits))


def cookies(name: str) -> dict[str, str]:
    """What a visitor's browser sends to a server of this test's data folder."""
    from normviz.app.session import visitor

    cookie, signer = visitor._signer(home())
    return {"cookie": f"{cookie}={signer.sign(name).decode()}"}


@contextmanager
def supervisor(
    folder: Path,
    grace: float,
    store_mb: int = 500,
    said: Path | None = None,
    slots: int = 0,
    **limits: Any,
) -> Iterator[int]:
    """A supervisor of a hosted server with a grace period, and other limits, of its own; yields its
    process.

    Without `slots` it trains as many runs at once as there are cores, up to its limit.
    """
    environment = {**os.environ, "NORMVIZ_HOME": str(folder), SWITCH: "1", STORE: str(store_mb)}
    with open(said or os.devnull, "wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, json.dumps({"grace": grace, **limits}), str(slots)],
            stdin=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait(20)
