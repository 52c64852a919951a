"""A check of the CUDA path, and prototypes of two engines that the package does not have.

`python -m tests.bench.gpu OUT` runs it on a machine with a GPU. `captured` starts a step's kernels by one
CUDA graph, `stacked` trains runs of one shape together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from unittest.mock import patch

from normviz.config import RunConfig
from normviz.model.data import Task
from normviz.model.flat import Flat
from normviz.model.transformer import Transformer
from normviz.training import loop
from normviz.training.engine import Engine
from normviz.training.events import Event


def train_by(
    make: Callable[[RunConfig, Transformer, Flat], Engine],
    config: RunConfig,
    record: Collection[int] | None = None,
    begun: tuple[Transformer, Task] | None = None,
) -> Generator[Event]:
    """`train` with the engine that `make` gives, which `train` can't choose."""
    run = loop.train(config, record=record, begun=begun, engine="eager")
    with patch.object(loop, "choose", lambda _, *of: (make(*of), "")):
        first = next(run)
    yield first
    yield from run
