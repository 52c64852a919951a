"""Cost of what a model writes: the CPU time of a whole run on prose that records it, over that of one that
records the same layers without it, in pairs one after the other.

    python -m tests.bench.writing          # 7 pairs with each engine
"""

from __future__ import annotations

import time
from functools import partial

import torch
import typer

from normviz import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.training.engine import Choice
from normviz.training.events import Started
from normviz.training.loop import train
from normviz.training.schedule import recorded, written

from .kit import interleaved, median_range

ENGINES: tuple[Choice, ...] = ("tape", "eager")


def main(rounds: int = 7, steps: int = 200) -> None:
    """The first lane of the preset `prose`, on the CPU with one thread; a pair before the others warms up."""
    torch.set_num_threads(1)
    config = PRESETS["prose"].lanes()[0].replace(steps=steps)
    print(f"prose, {config.depth} blocks, {steps} steps, written at {len(written(config))} of them")
    for engine in ENGINES:
        kinds = {
            kind: partial(_seconds, config, engine, kind == "with") for kind in ("with", "without")
        }
        pairs = zip(*interleaved(kinds, rounds + 1).values(), strict=True)
        more = [100 * (a / b - 1) for a, b in pairs][1:]
        print(f"  {engine}: {median_range(more, 1)} % more CPU time, {rounds} pairs", flush=True)


def _seconds(config: RunConfig, engine: Choice, writes: bool) -> float:
    """CPU seconds of a run after its model is built. One whose records are named does not write."""
    record = None if writes else recorded(config)
    events = train(config, record=record, engine=engine, device="cpu")
    started = next(events)
    assert isinstance(started, Started)
    assert started.engine == engine, started.why
    began = time.process_time()
    for _ in events:
        pass
    return time.process_time() - began


if __name__ == "__main__":
    typer.run(main)
