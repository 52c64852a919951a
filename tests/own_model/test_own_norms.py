"""A norm is told by its answers, whatever its class is called."""

from __future__ import annotations

import pytest
import torch
from crossing_kit import case
from torch import nn

from normviz.catalog import NORMS
from normviz.model.norms import make_norm
from normviz.own_model.norms import tell

DTYPES = (torch.float32, torch.bfloat16)
BEGINS_AS = {"tapernorm": "rmsnorm"}
"""A norm that changes while it trains answers as what it begins as."""


class Foo(nn.Module):
    """A name that says nothing."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_norm_of_the_catalogue_is_told(dtype: torch.dtype) -> None:
    for norm in NORMS:
        with case(norm.key):
            found = tell(Foo(make_norm(norm.key, 64)).to(dtype), (2, 8, 64))
            assert found is not None
            assert found.key == BEGINS_AS.get(norm.key, norm.key)
            if norm.key in (
                "layernorm",
                "rmsnorm",
                "layernorm_1p",
                "rmsnorm_1p",
                "rmsnorm_noaffine",
            ):
                assert found.eps == norm.eps
                assert found.start == (1.0 if norm.learns and norm.learns[0].start == "1" else
                                       0.0 if norm.learns else None)  # fmt: skip


class Offset(nn.Module):
    """As x-transformers' ScaleNorm: 1 + a number that starts at 0."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset, self.g = offset, nn.Parameter(torch.full((1,), 1 - offset))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * (self.g + self.offset)


def test_a_number_is_told_from_one_plus_a_number() -> None:
    for offset, gain in ((0.0, "number"), (1.0, "1 + number")):
        found = tell(Offset(offset), (2, 8, 64))
        assert found is not None
        assert (found.key, found.gain, found.start) == ("scalenorm", gain, 1 - offset)


class Clip(nn.Module):
    """As Inkling's: queries of several heads, times a scale each, are made shorter above a length."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        return x * (100 / (x.norm(dim=-1, keepdim=True) + 1e-6)).clamp(max=1.0)


def test_what_is_no_norm_is_none() -> None:
    assert tell(Clip(), (2, 8, 4, 64)) is None
    others = (nn.Tanh(), nn.GELU(), nn.Sigmoid(), nn.Linear(64, 64), nn.PReLU(64), nn.Softmax(-1))
    for module in others:
        with case(type(module).__name__):
            assert tell(module, (2, 8, 64)) is None


def test_axes_are_told() -> None:
    for module, shape, told in (
        (nn.BatchNorm2d(16, 1e-3), (4, 16, 5, 5), ("batchnorm", "batch", 1e-3)),
        (nn.BatchNorm1d(16), (16, 16), ("batchnorm", "batch", 1e-5)),
        (nn.GroupNorm(1, 16), (4, 16, 5), ("groupnorm", "positions", 1e-5)),
        (nn.GroupNorm(4, 16), (4, 16, 5), ("groupnorm", "positions", None)),
        (nn.GroupNorm(4, 16, 1e-6), (8, 16), ("groupnorm", "group", 1e-6)),
    ):
        found = tell(Foo(module), shape)
        assert found is not None and (found.key, found.over, found.eps) == told


def test_a_norm_without_values_is_told_but_for_its_start() -> None:
    with torch.device("meta"):
        module = nn.RMSNorm(64, 1e-5)
    found = tell(module, (2, 8, 64))
    assert found is not None and (found.key, found.gain, found.start) == ("rmsnorm", "gamma", None)


def test_trying_a_module_changes_nothing() -> None:
    module, before = nn.BatchNorm1d(8), torch.get_rng_state()
    kept = {name: value.clone() for name, value in module.state_dict().items()}
    tell(module, (16, 8))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, kept[name]) for name, value in module.state_dict().items())
