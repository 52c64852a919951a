"""Who holds a lock file is seen: by any number at once, and no more once it is dead."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backend_kit import wait_for
from filelock import FileLock

from normviz.runs.store.lock_file import is_held

HOLDER = """
import sys
from filelock import FileLock

with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_any_number_looks_at_once(tmp_path: Path) -> None:
    """None of them takes another one for the holder."""
    path = tmp_path / "x.lock"
    path.touch()
    with ThreadPoolExecutor(32) as pool:
        looks = [pool.submit(is_held, path) for _ in range(2000)]
        assert not any(look.result() for look in looks)
        with FileLock(path):
            looks = [pool.submit(is_held, path) for _ in range(200)]
            assert all(look.result() for look in looks)


def test_where_locks_can_not_be_shared_it_is_seen_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = tmp_path / "x.lock"
    assert not is_held(path)
    with FileLock(path):
        assert is_held(path)
    assert not is_held(path)


@pytest.mark.slow
def test_a_killed_process_has_let_go(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert is_held(path)
        process.kill()
        wait_for(lambda: not is_held(path), "the file to be free")
