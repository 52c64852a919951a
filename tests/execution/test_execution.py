"""Tasks in child processes: results, errors, stray output, stops and deaths, on both sides."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import termios
import time
import types
from pathlib import Path

import execution_kit as kit
import pytest
from backend_kit import wait_for

from normviz.execution import Began, Ended, Local
from normviz.execution.child import Child


@pytest.fixture(autouse=True)
def _kit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In child processes too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "kits"))


def ended(executor: Local) -> dict[object, Ended]:
    with executor:
        return {event.task: event for event in executor.events() if isinstance(event, Ended)}


def test_one_child_takes_all_tasks_in_order(tmp_path: Path) -> None:
    with Local(kit.double, {n: (n,) for n in (3, 1, 2)}, tmp_path) as executor:
        events, pids = [], set[int]()
        for event in executor.events():
            events.append(event)
            pids.update(executor.pids)
    assert events == [Began(3), Ended(3, 6), Began(1), Ended(1, 2), Began(2), Ended(2, 4)]
    assert len(pids) == 1


def test_stray_output_is_no_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(Local(kit.prints, {1: (1,), 2: (2,)}, tmp_path)) == {
        1: Ended(1, 1),
        2: Ended(2, 2),
    }
    out, err = capfd.readouterr()
    assert out == "" and err.count("a stray line") == 2


def test_an_error_is_the_problem_of_its_task_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = ended(Local(kit.fails, {n: (n,) for n in range(3)}, tmp_path))
    assert found[0].problem == "the width is 7, allowed is a multiple of 32"
    assert found[1].problem == "its process gave no result: KeyError: 'x'"
    assert "its process gave no result: " in (found[2].problem or "")
    assert "multiple of 32" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("tries", [1, 2])
def test_a_death_is_an_end(tmp_path: Path, tries: int) -> None:
    once = {task: (str(tmp_path / task),) for task in ("one", "other")}
    found = ended(Local(kit.dies, once, tmp_path, tries=tries))
    if tries == 1:
        assert {event.problem for event in found.values()} == {"its process was killed by signal 9"}
    else:
        assert {event.result for event in found.values()} == {"the second time"}
    (left,) = ended(Local(kit.exits, {1: (7,)}, tmp_path, tries=tries)).values()
    assert left.problem == "its process ended with exit code 7" + (", twice" if tries == 2 else "")


@pytest.mark.slow
def test_a_stop_ends_a_task_inside_one_long_call(tmp_path: Path) -> None:
    """One that by itself would never end."""
    executor = Local(kit.computes, {1: (), 2: ()}, tmp_path, processes=2)
    asked: list[float] = []

    def stop() -> bool:
        return bool(asked)

    with executor:
        for event in executor.events(stop):
            assert isinstance(event, Began)
            pids = executor.pids
            time.sleep(0.5)  # they compute
            asked.append(time.monotonic())
    assert time.monotonic() - asked[-1] < 30
    assert len(pids) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def unread(child: Child) -> bool:
    """Whether more than the message that the task has arrived waits in its pipe."""
    waits = fcntl.ioctl(child.pipe.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(waits, sys.byteorder) > 4


def test_a_result_that_nobody_read_is_handed_over_at_the_end(tmp_path: Path) -> None:
    executor = Local(kit.double, {1: (1,), 2: (2,)}, tmp_path, processes=2)
    events = executor.events()
    assert {next(events), next(events)} == {Began(1), Began(2)}
    wait_for(lambda: all(unread(child) for child in executor._children), "both results")
    assert executor.close() == [Ended(1, 2), Ended(2, 4)]
    assert executor.close() == []


DRIVER = """
import sys
from pathlib import Path
import execution_kit as kit
from normviz.execution import Local
executor = Local(kit.sleeps, {1: (600,)}, Path(sys.argv[1]))
for event in executor.events():
    print(*executor.pids, flush=True)
"""


@pytest.mark.slow
def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    """Even where that is killed."""
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        child = int(driver.stdout.readline())
        time.sleep(0.5)  # it sleeps
        assert os.path.exists(f"/proc/{child}")
        driver.kill()
    wait_for(lambda: not os.path.exists(f"/proc/{child}"), "its end", 10.0)


def test_a_page_is_not_run_again_in_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit puts a page in the place of the main module, which `multiprocessing` would run."""
    page, mark = tmp_path / "page.py", tmp_path / "mark"
    page.write_text(f"open({str(mark)!r}, 'w')")
    main = types.ModuleType("__main__")
    main.__file__ = str(page)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert ended(Local(kit.double, {1: (1,)}, tmp_path))[1].result == 2
    assert not mark.exists()


@pytest.mark.slow
def test_what_a_visitor_waits_for_has_full_priority_and_other_tasks_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    own = os.nice(0)
    patient = ended(Local(kit.surroundings, {1: ()}, tmp_path))
    urgent = ended(Local(kit.surroundings, {1: ()}, tmp_path, urgent=True))
    assert patient[1].result == (min(19, own + 15), "1", False)
    assert urgent[1].result == (own, None, False)
