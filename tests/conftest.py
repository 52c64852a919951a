"""What all tests share: one thread, a data folder of their own, and a tiny run."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import bytecode_kit  # noqa: F401 (before all that is compiled)
import pytest
from hypothesis import settings

from normviz import RunConfig
from normviz.home import VARIABLE
from normviz.runs.store import Store

os.environ["CUDA_VISIBLE_DEVICES"] = ""
"""No test, and no process of one, trains on a GPU by accident: its numbers are others."""

settings.register_profile("normviz", deadline=None, derandomize=True, database=None)
settings.load_profile("normviz")


def pytest_configure(config: pytest.Config) -> None:
    """The fixtures of these kits, except in the process that hands out the tests and runs none: it can
    do so some seconds earlier without PyTorch, Streamlit and Playwright."""
    runs_none = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if not runs_none or config.getoption("collectonly"):
        for kit in ("backend_kit", "page_kit", "browser_kit", "anatomy_kit"):
            config.pluginmanager.import_plugin(kit)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than cores: a test with a browser or a server waits half of its time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests begin first, so that no worker is left alone with one at the end."""
    long = {
        item.path for item in items if {"browser", "slow"} & {m.name for m in item.iter_markers()}
    }
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Collections look at what came later."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test ever touches the data folder of the person who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Results depend on the number of threads, so every test begins and ends with one."""
    import torch

    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def by_eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Estimates are those of a machine without the fast engine."""
    from normviz.studies.claims import record

    monkeypatch.setattr("normviz.config.engine_here", lambda: ("eager", ""))
    yield
    record._estimated.cache_clear()


@pytest.fixture
def tiny() -> RunConfig:
    """Two blocks of width 16 on eight tokens, 20 steps: about 0.1 s."""
    return RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=20)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path)
