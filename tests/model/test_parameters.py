"""The parameters that the records promise are those that the models have."""

from __future__ import annotations

from functools import cache

import pytest
from crossing_kit import with_schemes

from normviz import RunConfig
from normviz.anatomy import added
from normviz.catalog import NORMS, SCHEMES
from normviz.limits import parameters_per_block
from normviz.model.families import build
from normviz.model.marks import mark_of


def beyond(config: RunConfig) -> int:
    """Parameters of a model, less those of the same model without norms and gains."""
    return count(config) - count(config.replace(scheme="none"))


@cache
def count(config: RunConfig) -> int:
    return sum(p.numel() for p in build(config, 8).parameters())


@pytest.mark.parametrize(
    ("scheme", "norm"), with_schemes([["layernorm"], ["scalenorm", "seednorm"], ["none"]])
)
def test_of_every_placement(scheme: str, norm: str) -> None:
    config = RunConfig(scheme=scheme, norm=norm, depth=5, width=16, heads=2, ffn_ratio=3)
    assert sum(one.parameters for one in added(config, 8)) == beyond(config)


@pytest.mark.parametrize("norm", NORMS.keys())
def test_of_every_norm(norm: str) -> None:
    config = RunConfig(scheme="normformer", norm=norm, depth=2, width=16, heads=2)
    assert sum(one.parameters for one in added(config, 8)) == beyond(config)


@pytest.mark.parametrize("scheme", SCHEMES.keys())
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_estimates_count_the_matrices_of_a_block(scheme: str, activation: str) -> None:
    config = RunConfig(scheme=scheme, activation=activation, depth=2)
    matrices = {f"{name}.weight" for name in ("qkv", "out", "up", "down", "gate")}
    have = sum(p.numel() for p in build(config, 8).blocks[1].parameters() if mark_of(p) in matrices)
    assert have == parameters_per_block(config)
