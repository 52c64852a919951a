"""Cells that a GPU trains together; here a CPU does, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from normviz import RunConfig
from normviz.cores import Gpu, on_gpu
from normviz.execution import Began, Ended, Executor, cell
from normviz.execution.cell import measure, measure_stack
from normviz.runs.store import Store
from normviz.studies.maps import Cluster, Done, Reused, drive, make, ray, stacks, sweep
from normviz.studies.maps.drive import device_of
from normviz.studies.maps.stacks import Stacks, seconds_on_gpus, stacks_of
from normviz.training import stacked
from normviz.training.events import OutOfMemory

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=12)
TWO = (Gpu("H", 80.0, "4"), Gpu("H", 80.0, "7"))
GRID = make(TINY, {"depth": (2, 3), "lr": (1e-3, 3e-3)}, 2)


class Here(Executor[Any]):
    """`Local` without a process."""

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: dict[Any, Any],
        *_: object,
        environments: Sequence[dict[str, str]] = (),
    ) -> None:
        self.function, self.tasks, self.environments = function, tasks, environments

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Any]:
        for task, arguments in self.tasks.items():
            yield Began(task)
            yield Ended(task, self.function(*arguments))

    def close(self) -> list[Ended[Any]]:
        return []


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, which the CPU is."""
    there(monkeypatch, *TWO[:1])
    monkeypatch.setattr("normviz.training.loop.find_device", lambda name: torch.device("cpu"))
    monkeypatch.setattr("normviz.training.loop.name_of", lambda device: on_gpu("H"))
    monkeypatch.setattr("normviz.training.stacked.name_of", lambda device: on_gpu("H"))
    for module in (drive, stacks):
        monkeypatch.setattr(module, "Local", Here)


def there(monkeypatch: pytest.MonkeyPatch, *gpus: Gpu) -> None:
    """This machine has these GPUs."""
    monkeypatch.setattr(drive, "has_gpu", lambda: bool(gpus))
    monkeypatch.setattr(stacks, "gpus", lambda: gpus)


@pytest.mark.usefixtures("gpu")
def test_cells_of_a_stack_are_those_cells_alone() -> None:
    configs = [TINY, TINY.replace(lr=1e-3), TINY.replace(scheme="none", lr=10.0)]
    configs[2] = configs[0].replace(init_seed=3)
    for own, config in zip(measure_stack(configs), configs, strict=True):
        alone = measure(config)
        assert (own.config, own.status, own.message) == (config, alone.status, alone.message)
        assert own.steps.layer_steps.tolist() == alone.steps.layer_steps.tolist()
        assert own.final == pytest.approx(alone.final, rel=1e-3)
        assert own.started is not None and own.started.engine == "stacked" and own.seconds > 0


@pytest.mark.usefixtures("gpu")
def test_cells_that_can_not_be_a_stack_train_alone() -> None:
    configs = [TINY.replace(scheme="branchnorm", init_seed=i) for i in (0, 1)]
    for own in measure_stack(configs):
        assert own.started is not None and own.started.engine != "stacked"
        assert own.status == "finished"


@pytest.mark.usefixtures("gpu")
def test_a_stack_that_is_too_large_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, whole = list[int](), stacked.together

    def together(configs: Any, *more: Any) -> Any:
        sizes.append(len(configs))
        if len(configs) > 2:
            raise OutOfMemory("cuda")
        return whole(configs, *more)

    monkeypatch.setattr(stacked, "together", together)
    found = measure_stack([TINY.replace(init_seed=i) for i in range(5)])
    assert [it.config.init_seed for it in found] == list(range(5))
    assert {it.status for it in found} == {"finished"} and sizes == [5, 2, 3, 2]


@pytest.mark.usefixtures("gpu")
def test_a_grid_trains_in_stacks_of_a_shape(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "device_of", lambda *_: "cuda")
    news = list(sweep(store, GRID))
    done = [it for it in news if isinstance(it, Done)]
    assert {it.cell for it in done} == set(GRID.cells) and len(done) == len(GRID.cells)
    assert {it.measured.started.engine for it in done if it.measured.started} == {"stacked"}
    assert all(it.measured.id for it in done)
    assert {it.measured.started.device for it in done if it.measured.started} == {on_gpu("H")}
    assert sorted(map(len, stacks_of(GRID.cells))) == [4, 4]
    assert all(isinstance(it, Reused) for it in sweep(store, GRID))
    there(monkeypatch, Gpu("other", 24.0, "0"))
    assert all(isinstance(it, Done | Began) for it in sweep(store, GRID))


def test_a_grid_is_spread_over_the_gpus_that_are_alike(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    there(monkeypatch, *TWO, Gpu("smaller", 8.0, "9"))
    monkeypatch.setattr(stacks, "Local", Here)
    cells = make(TINY, {"lr": (1e-3, 3e-3)}, 3).cells
    local: Any = Stacks(cells, store.folder).stacks
    assert [it["CUDA_VISIBLE_DEVICES"] for it in local.environments] == ["4", "7"]
    assert [len(stack) for stack in local.tasks] == [3, 3]
    assert {cell for stack in local.tasks for cell in stack} == set(cells)
    assert [len(it) for it in stacks_of(cells[:2], 5)] == [1, 1]
    assert [len(it) for it in stacks_of(GRID.cells, 2)] == [4, 4]
    assert seconds_on_gpus(GRID.cells, 2) == pytest.approx(seconds_on_gpus(GRID.cells, 1) / 2)


def test_results_of_a_gpu_and_of_a_cpu_are_no_one_grid(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    one = measure(GRID.cells[0].config)
    assert one.started is not None
    store.keep_all([replace(one, started=replace(one.started, device="cuda"))], "sweep")
    monkeypatch.setattr(drive, "Local", Here)
    news = list(sweep(store, GRID))  # by a machine without a GPU
    assert sum(isinstance(it, Done) for it in news) == len(GRID.cells)
    assert not any(isinstance(it, Reused) for it in news)


@pytest.mark.usefixtures("gpu")
def test_results_in_tf32_and_others_are_no_one_grid(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "device_of", lambda *_: "cuda")
    monkeypatch.setattr("normviz.training.stacked.name_of", lambda _: on_gpu("H", tf32=True))
    list(sweep(store, GRID))
    assert not any(isinstance(it, Reused) for it in sweep(store, GRID))


def test_after_an_error_of_cuda_a_cell_is_tried_in_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = list[int]()
    monkeypatch.setattr(cell.os, "_exit", ended.append)
    for error in (OutOfMemory("cuda"), ValueError("no"), RuntimeError("CUDA error: misaligned")):
        assert cell.sentence_of(error) and not ended[:-1]
    assert ended == [1]


def test_what_waits_for_a_run_is_warmed_up_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[RunConfig]()
    monkeypatch.setattr("normviz.training.loop.train", lambda config: begun.append(config) or ())
    cell.warm.__wrapped__()
    assert [config.device for config in begun] == ["cpu"]


def test_a_grid_has_one_device(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    assert device_of(GRID.cells, [], 1) == "cpu"
    there(monkeypatch, *TWO[:1])
    assert device_of(GRID.cells, [], 1) == "cpu"
    large = make(TINY.replace(width=128, depth=12, steps=200), {"lr": (1e-3, 3e-3)}, 5).cells
    assert device_of(large, [], 2) == "cuda"
    store.keep_all([measure(TINY)], "sweep")
    assert device_of(large, list(store.results(TINY.key)), 2) == "cpu"
    named = make(TINY.replace(device="cuda"), {"lr": (1e-3, 3e-3)}).cells
    assert device_of(named, [], 1) == "cuda"


class Ray:
    """A Ray that does each task when it is handed, in this process; `shares` are those of a GPU."""

    def __init__(self) -> None:
        self.shares = list[float]()

    def remote(self, **_: object) -> Any:
        return lambda function: SimpleNamespace(options=partial(self.options, function))

    def options(self, function: Callable[..., Any], num_gpus: float) -> Any:
        def remote(*arguments: Any) -> Any:
            self.shares.append(num_gpus)
            end = Future[Any]()
            end.set_result(function(*arguments))
            return SimpleNamespace(future=lambda: end)

        return SimpleNamespace(remote=remote)

    def shutdown(self) -> None:
        pass


@pytest.mark.usefixtures("gpu")
def test_on_ray_a_task_is_a_cell_or_a_stack_with_its_share_of_a_gpu(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "train_cell", lambda it: measure(RunConfig.model_validate_json(it)))
    monkeypatch.setattr(
        ray, "train_stack", lambda all: [ray.train_cell(canonical) for canonical in all]
    )
    cluster: Any = Cluster.__new__(Cluster)
    cluster.ray, cluster.cores, cluster.gpus, cluster.at_most = Ray(), 8, 1, None
    grid = make(TINY.replace(steps=2), {"device": ("cpu", "cuda"), "lr": (1e-3, 3e-3)})
    news = list(sweep(store, grid, cluster=cluster))
    done = [it.cell for it in news if isinstance(it, Done) and it.measured.id]
    began = [it.task for it in news if isinstance(it, Began)]
    assert sorted(cluster.ray.shares) == [0.0, 0.0, 1 / 8]
    assert set(done) == set(began) == set(grid.cells) and len(done) == len(began) == 4
