"""The parameters that the records promise are those that the models have."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from crossing_kit import case, pairs

from normviz import RunConfig
from normviz.catalog import NORMS, SCHEMES
from normviz.config import parameters_per_block
from normviz.lessons.anatomy import added
from normviz.model.families import build
from normviz.model.marks import mark_of


def beyond(config: RunConfig) -> int:
    """Parameters of a model, less those of the same model without norms and gains."""
    return count(config) - count(config.replace(scheme="none"))


@cache
def count(config: RunConfig) -> int:
    return sum(p.numel() for p in build(config, 8).parameters())


@pytest.mark.slow
def test_of_every_placement_and_norm() -> None:
    """NormFormer has all kinds of slots but one, so it meets every norm."""
    everywhere = [("normformer", norm) for norm in NORMS.keys()]  # noqa: SIM118
    for scheme, norm in {*pairs(SCHEMES.keys(), NORMS.keys()), *everywhere}:
        config = RunConfig(scheme=scheme, norm=norm, depth=5, width=16, heads=2, ffn_ratio=3)
        with case(scheme, norm):
            assert sum(one.parameters for one in added(config, 8)) == beyond(config)


def test_estimates_count_the_matrices_of_a_block() -> None:
    matrices = {f"{name}.weight" for name in ("qkv", "out", "up", "down", "gate")}
    for scheme, activation in product(SCHEMES.keys(), ("relu", "swiglu")):
        config = RunConfig(scheme=scheme, activation=activation, depth=2, width=16)
        found = [p for p in build(config, 8).blocks[1].parameters() if mark_of(p) in matrices]
        with case(scheme, activation):
            assert sum(p.numel() for p in found) == parameters_per_block(config)
