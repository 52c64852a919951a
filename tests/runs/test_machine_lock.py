"""Training and timing take turns: never both, nobody waits for ever, and the dead let go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backend_kit import wait_for

from normviz.runs.store.machine_lock import MachineLock, is_timing

HOLDER = """
import sys
from pathlib import Path
from normviz.runs.store.machine_lock import MachineLock

turn = MachineLock(Path(sys.argv[1]), alone=sys.argv[2] == "alone")
assert turn.take()
print("held", flush=True)
sys.stdin.read()
"""


def holder(folder: Path, kind: str) -> subprocess.Popen[str]:
    """Another process that holds a turn until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(folder), kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_any_number_looks_at_once(tmp_path: Path) -> None:
    """None of them takes another one for the holder."""
    with ThreadPoolExecutor(32) as pool:
        (tmp_path / "timing.lock").touch()
        looks = [pool.submit(is_timing, tmp_path) for _ in range(2000)]
        assert not any(look.result() for look in looks)
        alone = MachineLock(tmp_path, alone=True)
        assert alone.wait(10.0)
        looks = [pool.submit(is_timing, tmp_path) for _ in range(200)]
        assert all(look.result() for look in looks)
        alone.leave()


def test_where_locks_can_not_be_shared_it_is_seen_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    alone = MachineLock(tmp_path, alone=True)
    assert not is_timing(tmp_path)
    assert alone.take() and is_timing(tmp_path)
    alone.leave()
    assert not is_timing(tmp_path)


def test_who_times_is_alone(tmp_path: Path) -> None:
    alone = MachineLock(tmp_path, alone=True)
    assert alone.take() and alone.take()  # the second time it is held already
    assert is_timing(tmp_path)
    assert not MachineLock(tmp_path).take()
    assert not MachineLock(tmp_path, alone=True).take()
    alone.leave()
    assert not is_timing(tmp_path)
    assert MachineLock(tmp_path).take()


def test_a_claim_lets_nothing_new_begin(tmp_path: Path) -> None:
    """Else short runs that come one after the other would keep a timing waiting for ever."""
    training, alone, late = (
        MachineLock(tmp_path),
        MachineLock(tmp_path, alone=True),
        MachineLock(tmp_path),
    )
    assert training.take()
    assert not alone.take()
    assert not late.take()
    assert training.take()  # it goes on
    training.leave()
    assert alone.take() and not late.take()
    alone.leave()
    assert late.take()


def test_a_turn_that_was_not_had_can_be_given_up(tmp_path: Path) -> None:
    training, alone = MachineLock(tmp_path), MachineLock(tmp_path, alone=True)
    assert training.take()
    assert not alone.wait(0.05)
    alone.leave()
    assert not is_timing(tmp_path)
    assert not alone.wait(60, otherwise=lambda: True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alone", "beside others"])
def test_a_killed_process_has_let_go(tmp_path: Path, kind: str) -> None:
    with holder(tmp_path, kind) as process:
        other = MachineLock(tmp_path, alone=kind != "alone")
        assert not other.take()
        os.kill(process.pid, signal.SIGKILL)
        wait_for(other.take, "the turn")
        other.leave()
