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
from normviz.app.session import policy as session_policy

from normviz import policy
from normviz.home import home
from normviz.policy import STORE, SWITCH, from_environment
from normviz.runs.store import Store

SUPERVISOR = """
import json, sys
from dataclasses import replace
from normviz import policy
policy.SHARED = replace(policy.SHARED, **json.loads(sys.argv[1]))
from normviz.execution.supervisor import serve
sys.exit(serve(int(sys.argv[2]) or None))
"""


def turn_on(patch: pytest.MonkeyPatch, *stores: Store, **limits: Any) -> None:
    """The server of this process begins again as a shared one, with some limits of the test's own, and so do
    these stores."""
    patch.setenv(SWITCH, "1")
    patch.setattr(policy, "SHARED", replace(policy.SHARED, **limits))
    chosen = from_environment()
    patch.setattr(session_policy, "_chosen", chosen)
    for store in stores:
        patch.setattr(store, "policy", chosen)
    if (backend := sys.modules.get("normviz.app.session.backend")) is not None:
        backend.forget()


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
