"""Results say whether they were trained in C++ or with PyTorch's own operations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from normviz import RunConfig, train
from normviz.export import replay
from normviz.result import collect
from normviz.runs import Recording
from normviz.runs.engines import computed_by
from normviz.runs.lane import Lane
from normviz.runs.names import settings

TINY = RunConfig(depth=1, width=8, heads=2, seq_len=4, batch=2, steps=3)
IN_CPP, BY_TORCH = "Computed in NormViz's engine in C++.", "Computed with PyTorch's own operations."
MIXED = "1 of these 3 {} was computed with PyTorch's own operations, the others in NormViz's engine in C++."


def by(engine: str, config: RunConfig = TINY) -> Recording:
    it = collect(train(config))
    assert it.started is not None
    return replace(it, started=replace(it.started, engine=engine))


@pytest.mark.parametrize(
    ("engines", "sentence"),
    [
        ([], ""),
        (["tape", "tape"], IN_CPP),
        (["eager", "eager"], BY_TORCH),
        (["tape", "eager", "tape"], MIXED.format("cells")),
        (
            ["eager", "tape", "eager"],
            "2 of these 3 cells were computed with PyTorch's own operations, the other in NormViz's engine "
            "in C++.",
        ),
    ],
)
def test_a_sentence_says_which_engines_computed(engines: list[str], sentence: str) -> None:
    assert computed_by(engines, "cells") == sentence


def exported() -> list[Lane]:
    """Two lanes, one of them with two seeds, and a lane that was not trained."""
    seeds = by("tape"), by("tape", TINY.replace(init_seed=1))
    post = TINY.replace(scheme="post")
    return [Lane("A", TINY, seeds), Lane("B", post, (by("eager", post),))]


@pytest.mark.slow
def test_saved_charts_of_a_replay_say_the_engine_of_every_seed() -> None:
    lanes = exported()
    (line,) = [line for line in replay(lanes).splitlines() if line.strip().startswith("name: ")]
    caption = json.loads(line.partition("caption: ")[2].removesuffix("});").strip())
    shared = settings([lane.config for lane in lanes])
    assert caption == ["Pre-LN against Post-LN", shared, MIXED.format("runs")]
