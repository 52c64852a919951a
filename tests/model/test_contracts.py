"""What every scheme and norm of the registries keeps, besides its formula and its probes.

`test_probes` has the probes: every site, inert, and the gradients that plain autograd gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from crossing_kit import case
from model_kit import batch, shaken
from peek import model_seen, streams
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import NORMS, QK_NORMS, SCHEMES
from normviz.links import decode, encode
from normviz.training import loop
from normviz.training.events import Diverged, Step

ALL_SCHEMES = pytest.mark.parametrize("scheme", SCHEMES.keys())
ONE_STREAM = pytest.mark.parametrize("scheme", [s.key for s in SCHEMES if s.streams == "one"])
SMALL = RunConfig(depth=5, width=16, heads=2, seq_len=8, batch=4, steps=3)

# Without a branch


class Block:
    """What a block's path around its branches may use: its two norms of each slot, its numbers."""

    def __init__(self, params: dict[str, Tensor], b: int, depth: int, embedding: Tensor) -> None:
        self.params, self.b, self.L, self.embedding = params, b, depth, embedding

    def learned(self, name: str) -> Tensor:
        return self.params[f"blocks.{self.b - 1}.{name}.weight"]

    def norm(self, slot: str, x: Tensor) -> Tensor:
        """RMSNorm, by hand."""
        return self.learned(slot) * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()

    def main(self, x: Tensor, attention: Any = 1.0, ffn: Any = 1.0) -> Tensor:
        """Post-LN without branches, with its skip paths multiplied."""
        x = self.norm("attention.norm_main", attention * x)
        return self.norm("ffn.norm_main", ffn * x)


def same(x: Tensor, _: Block) -> Tensor:
    return x


def post(x: Tensor, B: Block) -> Tensor:
    return B.main(x)


def deepnorm(x: Tensor, B: Block) -> Tensor:
    alpha = (2 * B.L) ** 0.25
    return B.main(x, alpha, alpha)


def admin(x: Tensor, B: Block) -> Tensor:
    return B.main(x, B.learned("attention.skip_gain"), B.learned("ffn.skip_gain"))


def keel(x: Tensor, B: Block) -> Tensor:
    return B.norm("ffn.norm_main", 2 * B.L * x) if B.b == 1 else B.main(x, 2 * B.L, 2 * B.L)


def gated(x: Tensor, B: Block) -> Tensor:
    for name in ("attention.branch_gain", "ffn.branch_gain"):
        x = (1 - torch.sigmoid(B.learned(name) / 0.3) ** 2).sqrt() * x
    return x


def gpas(x: Tensor, B: Block) -> Tensor:
    q = B.learned("shared.gate")
    return (1 - q * torch.sigmoid(q)) ** 2 * x


def skip_norm(x: Tensor, B: Block) -> Tensor:
    return B.norm("ffn.norm_fork", B.norm("attention.norm_fork", x))


def b2t(x: Tensor, B: Block) -> Tensor:
    return B.norm("ffn.norm_main", x + B.norm("attention.norm_main", x))


def lambda_skip(x: Tensor, B: Block) -> Tensor:
    r, e = B.learned("attention.stream_gain"), B.learned("attention.embed_gain")
    return r * x + e * B.embedding


def shifted(x: Tensor, B: Block) -> Tensor:
    for name in ("attention", "ffn"):
        shift, gain = B.learned(f"{name}.skip_shift"), B.learned(f"{name}.skip_gain")
        x = gain * (x + shift) + B.learned(f"{name}.branch_gain") * B.learned(
            f"{name}.branch_shift"
        )
    return x


def ngpt(x: Tensor, B: Block) -> Tensor:
    for name in ("attention.branch_gain", "ffn.branch_gain"):
        x = (1 - (0.05 * 16**0.5 * B.learned(name)).abs()) * x  # of width 16
        x = x / x.square().sum(-1, keepdim=True).sqrt()
    return x


IDENTITY: dict[str, Callable[[Tensor, Block], Tensor]] = {
    "post": post,
    "pre_post_main": post,
    "post_scaled": post,
    "post_init": post,
    "mixln": lambda x, B: post(x, B) if B.b <= B.L // 4 else x,
    "branchnorm": post,
    "prores_post": post,
    "layer_scalar": lambda x, B: B.learned("ffn.main_gain") * x,
    "deepscale": lambda x, B: (1 - 2 / B.L) * x,
    "residual_scaling": shifted,
    "deepnorm": deepnorm,
    "admin": admin,
    "keel": keel,
    "beam": lambda x, B: ((2 * B.b - 1) / (2 * B.b + 1)) ** 0.5 * x,
    "gated_peri": gated,
    "gpas": gpas,
    "ngpt": ngpt,
    "normformer": lambda x, B: B.learned("ffn.skip_gain") * x,
    "hybridnorm": lambda x, B: B.norm("ffn.norm_fork", x),
    "hybridnorm_star": lambda x, B: x if B.b == 1 else B.norm("ffn.norm_fork", x),
    "b2t": b2t,
    "spannorm": lambda x, B: B.norm("ffn.norm_main", x),
    "skip_norm": skip_norm,
    "lambda_skip": lambda_skip,
}
"""A block without branches, of what entered it, for the schemes where it is not that itself."""


@ONE_STREAM
def test_a_zero_branch_leaves_the_path_around_it(scheme: str) -> None:
    config = SMALL.replace(scheme=scheme, norm="rmsnorm")
    model = shaken(config)
    with torch.no_grad():
        scaled = {n.replace("gamma", "weight") for n, _ in model.named_parameters() if "gamma" in n}
        for name, p in model.named_parameters():
            # What divides a matrix by its size can't have one of zeros, but its gamma can be 0.
            if (".branch.out." in name or ".branch.down." in name) and name not in scaled:
                p.zero_()

    path, params = streams(model, batch(config)[0]), dict(model.named_parameters())
    for b, (x, left) in enumerate(pairwise(path), start=1):
        around = IDENTITY.get(scheme, same)
        expected = around(x, Block(params, b, config.depth, path[0]))
        if around is same:
            assert torch.equal(left, expected)
        torch.testing.assert_close(left, expected, rtol=1e-12, atol=1e-13)


# Depth

LOST = {("none", 96, "xavier")}
"""Xavier branches multiply a stream without norms: over 96 blocks its gradient leaves float32."""


@pytest.mark.parametrize("init", ["xavier", "gpt2"])
@pytest.mark.parametrize("depth", [1, 96])
@ALL_SCHEMES
@pytest.mark.slow
def test_steps_are_finite_at_every_depth(scheme: str, depth: int, init: str) -> None:
    config = SMALL.replace(scheme=scheme, depth=depth, init=init)
    events = list(loop.train(config, record=()))
    if (scheme, depth, init) in LOST:
        assert any(isinstance(event, Diverged) for event in events)
        return
    seen = [(e.loss, e.grad_norm) for e in events if isinstance(e, Step)]
    assert len(seen) == config.steps
    assert np.isfinite(seen).all()


# Everything learns


def with_gradients(config: RunConfig) -> tuple[set[str], list[set[str]]]:
    """Names of all parameters, and of those with a gradient other than zero in each step."""
    found: list[set[str]] = []
    with model_seen() as models:
        for event in loop.train(config, record=()):
            if isinstance(event, Step):
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


@ALL_SCHEMES
def test_every_parameter_learns_within_three_steps(scheme: str) -> None:
    names, steps = with_gradients(SMALL.replace(scheme=scheme))
    assert set().union(*steps) == names
    inside = {name for name in steps[0] if name.startswith("blocks.")}
    if scheme in RISING:
        assert inside == {name for name in names if RISING[scheme] and RISING[scheme] in name}
    elif SCHEMES[scheme].streams in COPIES:  # what depends on the token starts at 0
        assert {n for n in names - steps[0] if "gain_scale" not in n} == set()
    elif scheme in AT_FIRST:
        assert inside == {name for name in names if AT_FIRST[scheme] in name}
    else:
        assert steps[0] == names


@pytest.mark.parametrize(
    "change",
    [{"norm": norm.key} for norm in NORMS] + [{"qk_norm": choice.key} for choice in QK_NORMS],
    ids=str,
)
def test_every_parameter_of_a_norm_learns_within_three_steps(change: dict[str, str]) -> None:
    names, steps = with_gradients(SMALL.replace(scheme="peri", **change))
    assert set().union(*steps) == names


# Round trips


@ALL_SCHEMES
def test_survives_json_and_a_link_with_every_norm(scheme: str) -> None:
    for norm in NORMS:
        with case(scheme, norm.key):
            config = RunConfig(scheme=scheme, norm=norm.key)
            again = RunConfig(**json.loads(config.canonical()))
            assert again == config
            assert again.key == config.key
            lanes = (config, RunConfig(scheme="post"))
            assert decode(encode(lanes)).lanes == lanes
