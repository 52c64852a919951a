"""States of several streams: what they are without branches, and what mixes them."""

from __future__ import annotations

import pytest
import torch
from peek import begun, streams
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.limits import MAX_GIB, estimated_gib
from normviz.model.sites import untapped
from normviz.model.streams.manifold import sinkhorn
from normviz.model.wire import SublayerContext

SMALL = RunConfig(depth=4, width=16, heads=2, seq_len=8, batch=4, norm="rmsnorm")
D = SMALL.width


def without_branches(scheme: str) -> list[Tensor]:
    """The state behind the embedding and each block of a new model whose branches are zero."""
    model, tokens, _ = begun(SMALL.replace(scheme=scheme))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if ".branch.out." in name or ".branch.down." in name:
                p.zero_()
    return streams(model, tokens)


@pytest.mark.parametrize(
    "scheme", ["denseformer", "hyper", "mhc", "mhc_lite", "kromhc", "hc_identity", "geonorm"]
)
def test_a_new_model_passes_its_state_on(scheme: str) -> None:
    """Also where copies are mixed: they are still equal."""
    first, *others = without_branches(scheme)
    for state in others:
        torch.testing.assert_close(state, first, rtol=1e-12, atol=1e-12)


def test_attention_over_depth_starts_as_the_average_of_all_values() -> None:
    x, *others = without_branches("attnres")
    for b, state in enumerate(others, start=1):
        torch.testing.assert_close(state, x / (2 * b + 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scheme", ["residual_dual", "siamese"])
def test_one_stream_is_normed_and_the_other_adds_up(scheme: str) -> None:
    first, *others = without_branches(scheme)
    for state in others:
        x, y = state[..., :D], state[..., D:]
        assert torch.equal(y, first[..., D:])
        torch.testing.assert_close(
            x.square().mean(-1), torch.ones(4, 8).double(), rtol=1e-4, atol=0
        )


def test_sinkhorn_makes_averages() -> None:
    logits = 3 * torch.randn(
        5, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    matrix = sinkhorn(logits)
    ones = torch.ones(5, 4, dtype=torch.float64)
    torch.testing.assert_close(matrix.sum(-2), ones, rtol=1e-14, atol=0)
    torch.testing.assert_close(matrix.sum(-1), ones, rtol=0.05, atol=0)
    assert (matrix > 0).all()


def test_what_keeps_all_values_has_a_budget_of_memory() -> None:
    deep = RunConfig(depth=96)
    for scheme in SCHEMES:
        kept = estimated_gib(deep.replace(scheme=scheme.key)) - estimated_gib(deep)
        more = bool(scheme.history) or scheme.streams == "gated"  # matrices of its own
        assert (kept > 0) == more
    with pytest.raises(ValueError, match="GiB of memory"):
        RunConfig(scheme="attnres", depth=1000, steps=1)
    assert estimated_gib(deep.replace(scheme="attnres")) < MAX_GIB


def test_without_a_reset_gtrxls_gate_is_a_gru_cell() -> None:
    """torch's GRU multiplies by r after the matrix, GTrXL before it: the same where r is 1/2 everywhere."""
    model, _, _ = begun(SMALL.replace(scheme="gtrxl"))
    wire, width = model.blocks[0].ffn, SMALL.width
    cell = torch.nn.GRUCell(width, width).double()
    with torch.no_grad():
        for gate in (wire.gate_reset_y, wire.gate_reset_x, wire.branch.down):
            gate.weight.zero_()
        y = torch.linspace(-1, 2, width, dtype=torch.float64)
        wire.branch.down.bias.copy_(y)
        zero = torch.zeros(width, width, dtype=torch.float64)
        update = (wire.gate_update_y.weight, wire.gate_update_x.weight)
        cell.weight_ih.copy_(torch.cat((zero, -update[0], wire.gate_new_y.weight)))
        cell.weight_hh.copy_(torch.cat((zero, -update[1], wire.gate_new_x.weight)))
        cell.bias_ih.zero_()
        cell.bias_ih[width : 2 * width] = 2.0
        cell.bias_hh.zero_()
        x = torch.randn(5, 1, width, dtype=torch.float64)
        found = wire(x, 1, untapped, SublayerContext(x, x))
        expected = cell(y.relu().expand(5, -1), x[:, 0])
    torch.testing.assert_close(found[:, 0], expected, rtol=1e-12, atol=1e-12)
