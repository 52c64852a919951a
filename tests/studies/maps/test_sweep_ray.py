"""Sweeps on a real Ray cluster of two nodes on this machine, and what becomes of them when one of
the nodes, the cluster or the person at the terminal goes away."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from backend_kit import losses, wait_for
from ray_kit import Driver, Nodes, free_port, head
from task_kit import WORDS

from normviz import RunConfig
from normviz.home import VARIABLE
from normviz.model import texts
from normviz.model.characters import TextError
from normviz.runs.store import Store, cells
from normviz.runs.store.cells import OpenCells
from normviz.studies.maps import Cluster, SweepError, make, missing
from normviz.studies.maps.ray import Tasks, gpu_share, normviz_cells, tasks_of

pytestmark = pytest.mark.slow

CELL = {"depth": 4, "width": 16, "heads": 2, "seq_len": 8, "batch": 4}
TINY = [f"{key}={value}" for key, value in CELL.items()]
RATES = [1e-3, 3e-3, 1e-2]
LONG = "steps=2000"
"""Cells of about a second: time enough to kill somebody."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A cluster that outlives the death of its second node."""
    with head() as nodes:
        yield nodes


def open_cells(store: Store, *configs: RunConfig) -> OpenCells | None:
    """Those that wait or train, as a page asks for them."""
    return cells.opened(store, [config.key for config in configs], "a")


def rates(n: int) -> str:
    return f"lr={','.join(map(str, RATES[:n]))}"


def same_as_here(store: Store, config: RunConfig) -> None:
    """The store has the cell once, bit for bit what this process gives."""
    (run,) = store.results(config.key)
    assert (run.status, run.origin) == ("finished", "sweep")
    assert store.steps(run).loss.tolist() == losses(config)


def test_the_death_of_a_node_loses_nothing(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a text, which this machine alone has."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    base = RunConfig(**CELL, task="text", text=texts.add(WORDS), steps=2000)
    store, grid = Store(tmp_path), make(base, {"lr": RATES[:2]}, seeds=2)
    n = len(grid.cells)
    other = nodes.join()
    other.wait()
    words = (*TINY, LONG, rates(2), "seeds=2", "task=text", f"text={base.text}")
    with Driver(nodes.folder, tmp_path, *words, "--on", f"ray:{nodes.address}") as driver:
        wait_for(lambda: len(missing(store, grid)) < n and other.stopped(), "cells on both")
        assert missing(store, grid)
        opened = open_cells(store, *(cell.config for cell in grid.cells))
        assert opened is not None and opened.running and not opened.may_stop
        assert opened.runs.keys() == {cell.key for cell in missing(store, grid)}
        other.kill()
        code, out, err = driver.end()
    assert code == 0, err
    assert f"{n} of {n}  " in err and "in 2 processes" in err
    assert out.startswith("loss of the last tenth") and "train up to lr" in out
    assert open_cells(store, *(cell.config for cell in grid.cells)) is None
    for cell in grid.cells:
        same_as_here(store, cell.config)
    assert retried(nodes.folder) >= 1


def retried(folder: Path) -> int:
    """Cells that Ray ran again, by its own log of what the driver handed it."""
    logs = folder.glob("session_2*/logs/python-core-driver-*.log")
    lines = [line for log in logs for line in log.read_bytes().splitlines()]
    return sum(b"Will resubmit task" in line and b"normviz_cell" in line for line in lines)


def test_ctrl_c_keeps_what_has_ended_and_ends_the_rest(nodes: Nodes, tmp_path: Path) -> None:
    store, grid = Store(tmp_path), make(RunConfig(**CELL, steps=2000), {"lr": RATES})
    words = (*TINY, LONG, rates(3), "--on", f"ray:{nodes.address}")
    with Driver(nodes.folder, tmp_path, *words) as driver:
        wait_for(lambda: len(missing(store, grid)) < 3 and nodes.head.training(), "a cell")
        driver.process.send_signal(signal.SIGINT)
        code, _, err = driver.end()
    assert code == 130, err
    assert err.endswith("normviz: stopped; the same command runs what is missing\n")
    kept = 3 - len(missing(store, grid))
    assert 1 <= kept < 3
    assert (
        err.count(" of 3  ") <= kept
    )  # told after it is stored, and not at all if Ctrl-C comes between
    wait_for(lambda: not nodes.head.training(), "the end of the cell in progress")


def test_a_lost_cluster_gets_a_sentence(nodes: Nodes, tmp_path: Path) -> None:
    """The last test on this cluster. Its cell takes a minute, so that it does not end before the cluster."""
    impatient = "from normviz.studies.maps import ray\nray.PATIENCE = 1.0"
    size = {"depth": 16, "width": 64, "steps": 20_000}
    words = (*(f"{key}={value}" for key, value in size.items()), "--on", f"ray:{nodes.address}")
    with Driver(nodes.folder, tmp_path, *words, before=impatient) as driver:
        wait_for(nodes.head.training, "a cell in progress")
        nodes.kill()
        code, _, err = driver.end()
    assert code == 2, err
    # Ray writes to standard error too, also after it.
    (said,) = [line for line in err.splitlines() if line.startswith("normviz: ")]
    assert "has no node that can train" in said and "`ray start --head`" in said
    assert open_cells(Store(tmp_path), RunConfig(**size)) is None


def test_what_goes_wrong_on_a_node_is_said() -> None:
    with pytest.raises(SweepError, match=r"^\S+ has NormViz \S+ \(engine \d+\)$") as other:
        normviz_cells("NormViz 9.9 (engine 99)", [RunConfig().canonical()], None)
    errors = pytest.importorskip("ray").exceptions
    tasks, (cell,) = Tasks.__new__(Tasks), make(RunConfig(**CELL), {}).cells
    tasks.cluster = cast("Cluster", SimpleNamespace(ray=sys.modules["ray"]))

    def told(error: Exception) -> str | None:
        end = Future[object]()
        end.set_exception(error)
        return tasks._ended((cell,), end).problem

    def raised(error: Exception) -> Exception:
        return errors.RayTaskError("normviz_cells", "Traceback", error).as_instanceof_cause()

    said = r"this machine \(SweepError: \S+ has NormViz .*\): all need NormViz"
    with pytest.raises(SweepError, match=said):
        told(raised(other.value))
    with pytest.raises(SweepError, match=r"\(No module named 'normviz'\)"):
        told(raised(RuntimeError("Traceback\n\nNo module named 'normviz'")))
    assert told(raised(TextError("no room for a text"))) == "no room for a text"
    assert "gave no result: WorkerCrashedError" in (told(errors.WorkerCrashedError()) or "")


def test_cells_with_a_gpu_are_stacks_that_take_a_share_of_it() -> None:
    base = RunConfig(**CELL, steps=5)
    cells = make(base.replace(device="cuda"), {"lr": RATES}, seeds=2).cells
    assert [len(task) for task in tasks_of(cells, 1)] == [6]
    assert [len(task) for task in tasks_of(cells, 4)] == [1, 2, 1, 2]
    large = make(RunConfig(depth=24, width=512, heads=8, batch=64, device="cuda"), {}).cells
    assert gpu_share(cells[:1]) == 1 / 8 and gpu_share(large) == 1 / 2
    alone = make(base, {"lr": RATES}).cells
    assert [gpu_share(task) for task in tasks_of(alone, 4)] == [0.0] * 3
    cluster = Cluster.__new__(Cluster)
    cluster.cores, cluster.gpus = 64, 4
    assert cluster.at_once(cells) == 4 and cluster.at_once(alone) == 3
    assert list(cluster.fitting([large] * 20)) == [large] * 8
    cluster.cores = 2
    assert cluster.at_once(alone) == 2


def test_an_address_where_nobody_answers_is_said_at_once() -> None:
    address = f"127.0.0.1:{free_port()}"
    said = rf"no Ray cluster answers at {address} \(.*`ray start --head`"
    with pytest.raises(SweepError, match=said):
        Cluster(address)


def test_without_ray_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SweepError, match=r"`pip install -r requirements.txt -e '.\[cluster\]'`"):
        Cluster("local")
