"""What a watch records of the exported code of our own schemes equals what `train` records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from crossing_kit import case
from torch import Tensor, nn

from normviz import RunConfig, inspect, train, watch
from normviz.export import script
from normviz.own_model.instruments import norm_scales
from normviz.result import Result, collect
from normviz.runs.lane import Lane

SCHEMES = ("peri", "deepnorm")
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=12, batch=4, steps=6, optimizer="sgd", lr=0.1)
"""SGD: AdamW turns the gradient of the key bias, which is rounding, into steps of full size."""
EXACT = 1e-6


def watched(config: RunConfig) -> Result:
    """The exported script of a config, with two lines more."""
    source = script(Lane("A", config))
    begin = "    it = watch(model, optimizers[0], to=None, every=1)\n"
    source = source.replace("    losses = train(", f"{begin}    losses = train(")
    source = source.replace("loss.backward()", "loss.backward()\n        it.step(loss)")
    names: dict[str, Any] = {"watch": watch, "__name__": "__main__"}
    exec(source, names)
    names["it"].close()
    return names["it"].result


@pytest.mark.slow
def test_two_schemes_equal_the_table_of_train(capsys: pytest.CaptureFixture[str]) -> None:
    for scheme in SCHEMES:
        with case(scheme):
            config = SMALL.replace(scheme=scheme)
            ours, seen = collect(train(config, engine="eager", record=range(6))), watched(config)
            np.testing.assert_array_equal(seen.losses, ours.losses)
            np.testing.assert_allclose(seen.steps.grad_norm, ours.steps.grad_norm, rtol=EXACT)
            for probe in ours.probes:
                with case(f"{scheme} {probe}"):
                    a, b = seen.values(probe), ours.values(probe)
                    np.testing.assert_allclose(a, b, rtol=EXACT, atol=1e-12)


class Residual(nn.Module):
    """Pre-LN, with channels last or second: [B, T, D] or [B, D, T]."""

    def __init__(self, second: bool) -> None:
        super().__init__()
        self.norm, self.second = nn.LayerNorm(8), second
        self.a = nn.Conv1d(8, 16, 1) if second else nn.Linear(8, 16)
        self.b = nn.Conv1d(16, 8, 1) if second else nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        read = self.norm(x.mT).mT if self.second else self.norm(x)
        return x + self.b(torch.relu(self.a(read)))


def by_tokens(x: Tensor, w: Tensor) -> Tensor:
    return torch.stack([torch.mv(w.T, token) for token in x.flatten(0, 1)]).view(*x.shape[:2], -1)


PRODUCTS = {
    "tensordot": lambda x, w: torch.tensordot(x, w, 1),
    "mv": by_tokens,
    "einsum": lambda x, w: torch.einsum("btc,cd->btd", x, w),
    "an operation of a library": torch.ops.aten.matmul.default,
}


class Products(nn.Module):
    """Pre-LN whose FFN multiplies by its matrices as it is told."""

    def __init__(self, multiply: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.norm, self.multiply = nn.LayerNorm(8), multiply
        self.a, self.b = (nn.Parameter(torch.randn(*size) / 4) for size in ((8, 16), (16, 8)))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.multiply(torch.relu(self.multiply(self.norm(x), self.a)), self.b)


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_by_any_operation_is_recorded_and_inspected_as_one_by_matmul(
    product: str,
) -> None:
    found = []
    for multiply in (torch.matmul, PRODUCTS[product]):
        torch.manual_seed(0)
        model = nn.Sequential(*(Products(multiply) for _ in range(3)))
        x = torch.randn(4, 6, 8)
        assert inspect(model, x).main.placement == "pre"
        with watch(model, torch.optim.SGD(model.parameters(), lr=0.1), to=None, every=1) as it:
            (model(x) - 1).square().mean().backward()
            it.optimizer.step()
        found.append(it.result)
    for probe in ("branch_ratio", "sum_rms", "grad_w2"):
        with case(probe):
            a, b = (result.values(probe) for result in found)
            np.testing.assert_allclose(b, a, rtol=1e-5)


class BiasFirst(nn.Module):
    """A LayerNorm with the scale 1 + w, whose bias also starts at 0 and is the first parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.w = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (8,), 1 + self.w, self.bias)


def test_the_scale_of_a_norm_is_told_from_its_bias() -> None:
    norm = BiasFirst()
    (scale,) = norm_scales(nn.Sequential(norm))
    assert scale is norm.w


class Layers(nn.Module):
    def __init__(self, second: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks, self.second = nn.ModuleList(Residual(second) for _ in range(3)), second

    def forward(self, x: Tensor) -> Tensor:
        x = x.mT if self.second else x
        for block in self.blocks:
            x = block(x)
        return (x - 1).square().mean()


@pytest.mark.parametrize("tokens", [12, 16])
def test_channels_that_come_second_give_the_numbers_of_channels_that_come_last(tokens: int) -> None:
    """16 tokens are as many as the hidden channels."""
    found = []
    for second in (False, True):
        model = Layers(second)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        it = watch(model, optimizer, to=None, every=1)
        for step in range(3):
            x = torch.randn(4, tokens, 8, generator=torch.Generator().manual_seed(step))
            loss = model(x)
            loss.backward()
            it.step(loss)
            optimizer.step()
            optimizer.zero_grad()
        it.close()
        found.append(it.result)
    last, turned = found
    assert last.config.width == turned.config.width == 8
    for probe in ("stream_rms", "token_cosine", "branch_cosine", "branch_ratio", "stream_kurtosis"):
        with case(probe):
            a, b = last.values(probe), turned.values(probe)
            assert np.isfinite(a[:, 1:]).all()
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)
