"""Placements and norms that are the same function by theory are the same function here, exactly."""

from __future__ import annotations

import pytest
import torch
from peek import begun, streams
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer

BASE = RunConfig(depth=4)


def gap(ours: Tensor, theirs: Tensor) -> float:
    """Largest difference over the largest number."""
    return float((ours - theirs).detach().abs().max() / theirs.detach().abs().max())


# LayerNorm and RMSNorm


def shaken(config: RunConfig) -> tuple[Transformer, Tensor]:
    """With noise on every parameter: no bias is zero and no scale is one. In RMSNorm's models all
    norms have LayerNorm's eps."""
    model, tokens, _ = begun(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            p.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    for module in model.modules():
        if isinstance(module, nn.RMSNorm):
            module.eps = 1e-5
    return model, tokens


def swapped(scheme: str, recentred: bool) -> float:
    """How far LayerNorm (without shift) and RMSNorm of one scale are apart."""
    config = BASE.replace(scheme=scheme, norm="layernorm_nobias")
    (layer, tokens), (rms, _) = shaken(config), shaken(config.replace(norm="rmsnorm"))
    if recentred:
        recentre(layer)
        recentre(rms)
    return gap(rms(tokens), layer(tokens))


@torch.no_grad()
def recentre(model: Transformer) -> None:
    """Everything that writes to the stream writes zero-mean vectors."""
    for embedding in (model.tokens, model.positions):
        embedding.weight.sub_(embedding.weight.mean(1, keepdim=True))
    for block in model.blocks:
        for last in (block.attention.branch.out, block.ffn.branch.down):
            last.weight.sub_(last.weight.mean(0, keepdim=True))
            last.bias.sub_(last.bias.mean())


@pytest.mark.parametrize("scheme", ["pre", "lns", "parallel", "gpas"])
def test_layernorm_is_rmsnorm_on_a_recentred_stream(scheme: str) -> None:
    """Jiang et al. 2023, arXiv:2305.14858. Measured: 1e-15 at most, naively swapped 0.3 to 0.7."""
    assert swapped(scheme, recentred=True) < 1e-10
    assert swapped(scheme, recentred=False) > 0.1


@pytest.mark.parametrize("scheme", ["peri", "post", "subln"])
def test_but_not_where_a_norm_with_a_scale_writes_to_the_stream(scheme: str) -> None:
    """gamma times a zero-mean vector has a mean; nor inside a branch, where nothing is recentred."""
    assert swapped(scheme, recentred=True) > 1e-3


# Placements that are others in disguise


def test_beam_is_sandwich_ln() -> None:
    """Norms do not see the stream's scale, sqrt(k + 1) of k sublayers, and the embedding's gradient
    does not either. Without eps (norm l2) up to rounding, and up to eps with LayerNorm. By GELU: eps may
    move the input of a ReLU across 0, where its gradient jumps."""
    for norm, tolerance in (("l2", 1e-12), ("layernorm", 1e-4)):
        config = BASE.replace(norm=norm, activation="gelu")
        (beam, tokens, targets), (sandwich, *_) = (
            begun(config.replace(scheme=scheme)) for scheme in ("beam", "sandwich")
        )
        for model in (beam, sandwich):
            model.loss(tokens, targets).backward()
        assert gap(beam(tokens), sandwich(tokens)) < tolerance
        assert gap(beam.tokens.weight.grad, sandwich.tokens.weight.grad) < tolerance
        for b, (ours, theirs) in enumerate(
            zip(streams(beam, tokens), streams(sandwich, tokens), strict=True)
        ):
            assert gap((2 * b + 1) ** 0.5 * ours, theirs) < tolerance


@pytest.mark.parametrize(
    ("scheme", "plain", "depth"),
    [
        ("gpas", "pre", 4),  # its gates start at 0
        ("lns_learned", "lns", 4),  # gamma instead of a factor
        ("mixln", "pre", 3),  # a quarter of three blocks is none
        ("dssn", "sandwich", 1),
        ("resid_const", "pre", 1),
        ("completep", "pre", 1),
        ("lns", "pre", 1),
    ],
)
def test_starts_as_another(scheme: str, plain: str, depth: int) -> None:
    (ours, tokens, _), (theirs, *_) = (
        begun(BASE.replace(scheme=key, depth=depth)) for key in (scheme, plain)
    )
    assert gap(ours(tokens), theirs(tokens)) < 1e-6  # a learned 1/sqrt(b) is stored in float32


# The identity at the start


@pytest.mark.parametrize("scheme", ["rezero", "skipinit", "resp_zero", "prores"])
def test_starts_as_the_identity(scheme: str) -> None:
    model, tokens, _ = begun(BASE.replace(scheme=scheme))
    embedding, *blocks = streams(model, tokens)
    assert all(torch.equal(stream, embedding) for stream in blocks)


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "most"), [(12, 0.5), (24, 1e-3), (48, 1e-4)])
def test_layerscale_starts_close_to_it(depth: int, most: float) -> None:
    """Measured change of the stream, relative: 0.24 at 12 blocks (lambda 0.1), 3e-5 at 24 (1e-5),
    less at 48 (1e-6); Pre-LN 2.6 and 4.3."""
    model, tokens, _ = begun(BASE.replace(scheme="layerscale", depth=depth))
    embedding, *_, top = streams(model, tokens)
    assert 0 < float((top - embedding).norm() / embedding.norm()) < most
