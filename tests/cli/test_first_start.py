"""The first start as a newcomer does it: in a terminal, with a home folder that knows nothing yet."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browser_kit import answers, free_port, wait_for


@pytest.mark.slow
def test_a_first_start_in_a_terminal_asks_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "normviz", "app", "--port", str(port), "--data", str(tmp_path / "data")],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "HOME": str(tmp_path), "BROWSER": "true"},
    )  # fmt: skip
    try:
        wait_for(lambda: answers(f"http://localhost:{port}/_stcore/health"))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(theirs)
        os.close(ours)
