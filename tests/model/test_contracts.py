"""What every scheme and norm of the registries keeps, besides its formula and its probes.

`test_probes` has the probes: every site, inert, and the gradients that plain autograd gives.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from crossing_kit import case, pairs
from peek import model_seen, steps_of

from normviz import RunConfig
from normviz.catalog import NORMS, QK_NORMS, SCHEMES
from normviz.links import decode, encode
from normviz.training import loop
from normviz.training.events import Step

SMALL = RunConfig(depth=5, width=16, heads=2, seq_len=8, batch=4, steps=3)

# Depth


@pytest.mark.slow
def test_a_step_of_one_block_is_finite() -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        with case(scheme):
            config = SMALL.replace(scheme=scheme, depth=1, init="gpt2", steps=2)
            steps = steps_of(config, record=())
            assert np.isfinite([(e.loss, e.grad_norm) for e in steps]).all() and len(steps) == 2


# Everything learns


def with_gradients(config: RunConfig) -> tuple[set[str], list[set[str]]]:
    """Names of all parameters, and of those with a gradient other than zero in each step."""
    found: list[set[str]] = []
    with model_seen() as models:
        for event in loop.train(config, record=()):
            if isinstance(event, Step):
                assert np.isfinite([event.loss, event.grad_norm]).all()
                named = models[0].named_parameters()
                found.append({name for name, p in named if p.grad is not None and p.grad.any()})
    return {name for name, _ in models[0].named_parameters()}, found


COPIES = ("hyper", "manifold", "permuted", "kronecker", "unmixed")
AT_FIRST = {"resp_zero": "norm_out", "rezero": "branch_gain", "skipinit": "branch_gain"}
"""What alone has a gradient in the blocks of a scheme that starts as the identity."""
RISING = {
    "prores": "",
    "prores_sandwich": "",
    "prores_post": "norm_main",
    "branchnorm": "norm_main",
}
"""The same of schemes whose branches are off in step 0."""


@pytest.mark.slow
def test_every_parameter_learns_within_three_finite_steps() -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        names, steps = with_gradients(SMALL.replace(scheme=scheme))
        inside = {name for name in steps[0] if name.startswith("blocks.")}
        with case(scheme):
            assert set().union(*steps) == names
            if scheme in RISING:
                assert inside == {
                    name for name in names if RISING[scheme] and RISING[scheme] in name
                }
            elif SCHEMES[scheme].streams in COPIES:  # what depends on the token starts at 0
                assert {n for n in names - steps[0] if "gain_scale" not in n} == set()
            elif scheme in AT_FIRST:
                assert inside == {name for name in names if AT_FIRST[scheme] in name}
            else:
                assert steps[0] == names


@pytest.mark.slow
def test_every_parameter_of_a_norm_learns_within_three_steps() -> None:
    choices = [{"norm": norm.key} for norm in NORMS] + [{"qk_norm": one.key} for one in QK_NORMS]
    for change in choices:
        names, steps = with_gradients(SMALL.replace(scheme="peri", **change))
        with case(change):
            assert set().union(*steps) == names


# Round trips


def test_survives_json_and_a_link() -> None:
    for scheme, norm in pairs(SCHEMES.keys(), NORMS.keys()):
        with case(scheme, norm):
            config = RunConfig(scheme=scheme, norm=norm)
            again = RunConfig(**json.loads(config.canonical()))
            assert again == config
            assert again.key == config.key
            lanes = (config, RunConfig(scheme="post"))
            assert decode(encode(lanes)).lanes == lanes
