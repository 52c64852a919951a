"""What papers say about depth comes out of the product's own models, before the first step.

Width 64, Xavier, the Markov task, seed 0 unless a test says otherwise. "Measured" gives the range over
three seeds on the machine that wrote it; the limits leave room around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from peek import at_start, begun

from normviz import RunConfig

pytestmark = pytest.mark.slow

DEPTHS = (6, 24, 48)


@cache
def measured(scheme: str, depth: int, qk_norm: str = "off") -> dict[str, NDArray]:
    """Every probe's values at initialisation."""
    config = RunConfig(width=64, scheme=scheme, depth=depth, qk_norm=qk_norm)
    return at_start(config)


def first_over_last(scheme: str, depth: int, qk_norm: str = "off") -> float:
    """Gradient of the first block's parameters over that of the last block's."""
    gradient = measured(scheme, depth, qk_norm)["grad_block"]
    return gradient[1] / gradient[-1]


def variance(scheme: str, depth: int) -> NDArray:
    """Mean square of the stream behind the embedding and each block."""
    return measured(scheme, depth)["stream_rms"] ** 2


def exponent(x: Sequence[float] | NDArray, y: Sequence[float] | NDArray) -> float:
    """p of the y = c x^p that fits best on log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


# Gradients over depth


def test_deepnorms_gradients_are_flat_at_every_depth() -> None:
    """Measured: first over last 0.81 to 0.95, largest over smallest at most 1.24."""
    for depth in DEPTHS:
        blocks = measured("deepnorm", depth)["grad_block"][1:]
        assert 0.7 < blocks[0] / blocks[-1] < 1.2
        assert blocks.max() / blocks.min() < 1.5


def test_pre_lns_gradients_fall_over_depth_more_in_deeper_models() -> None:
    """Measured: 1.6 to 2.0 at 6 blocks, 2.6 to 3.9 at 24, 4.1 to 5.2 at 48."""
    shallow, middle, deep = (first_over_last("pre", depth) for depth in DEPTHS)
    assert 1.2 < shallow < middle < deep < 10
    assert deep > 3


def test_pre_lns_gradient_goes_with_one_over_the_streams_size() -> None:
    """Measured: exponent -0.81 to -0.91 of the blocks' gradients."""
    layers = measured("pre", 48)
    assert -1.2 < exponent(layers["stream_rms"][1:], layers["grad_block"][1:]) < -0.6


def test_post_lns_gradients_have_no_cliff_before_training() -> None:
    """Measured: 0.10 to 1.13 at 24 and 48 blocks. Halving in each block would be 1e-7 and 1e-14."""
    for depth in (24, 48):
        assert 0.05 < first_over_last("post", depth) < 10


def test_only_post_lns_last_gradient_does_not_shrink_with_depth() -> None:
    """Xiong et al. 2020, theorem 1: W2 of the last block goes like 1/sqrt(L) in Pre-LN and does not
    depend on L in Post-LN. Measured over the geometric means of three seeds: -0.50 and +0.18;
    DeepNorm, which keeps the whole model's step rather than a gradient: -0.50."""
    depths = (6, 12, 24, 48)

    def slope(scheme: str) -> float:
        return exponent(depths, [measured(scheme, L)["grad_w2"][-1] for L in depths])

    assert -0.65 < slope("pre") < -0.3
    assert -0.6 < slope("deepnorm") < -0.4
    assert -0.1 < slope("post") < 0.4


def test_res_post_norm_explodes_without_qk_norm_and_not_with_it() -> None:
    """Measured: 27 to 121 at 24 blocks and 277 to 2510 at 48; with QK-norm 2.4 to 5.0."""
    assert first_over_last("resp", 24) > 10
    assert first_over_last("resp", 48) > 100
    for depth in (24, 48):
        assert first_over_last("resp", depth, "full") < 8


def test_because_its_attention_starts_saturated() -> None:
    """Measured in the last of 24 blocks: logits 184 to 251 and entropy 0.04 to 0.05 of its maximum;
    with QK-norm 4 to 5 and 0.95 to 0.97."""
    without, with_it = measured("resp", 24), measured("resp", 24, "full")
    assert without["attn_logit_max"][-1] > 60 > 12 > with_it["attn_logit_max"][-1]
    assert without["attn_entropy"][-1] < 0.15 < 0.85 < with_it["attn_entropy"][-1]


def test_b2ts_gradients_are_flat() -> None:
    """Measured: 0.75 to 0.88 at 24 and 48 blocks."""
    for depth in (24, 48):
        assert 0.5 < first_over_last("b2t", depth) < 2


def test_keels_first_sublayer_has_far_larger_gradients() -> None:
    """Its branch alone is not outweighed by 2L. Measured for W_V of block 1 over
    that of block 2: 32 to 34 at 24 blocks (16 at 12, 65 at 48)."""
    model, tokens, targets = begun(RunConfig(width=64, scheme="keel", depth=24))
    model.loss(tokens, targets).backward()
    first, second, *_ = (block.attention.branch.qkv.weight.grad[128:] for block in model.blocks)
    assert float(first.norm() / second.norm()) > 10


# Size of the stream


def test_pre_lns_stream_grows_linearly() -> None:
    """Xiong et al. 2020, lemma 2: a block adds between what its FFN alone and what both branches
    add. With Xavier and a hidden layer of 4d the FFN adds 8/25 (the lemma's d x d matrix: 1/2) and
    attention at most 1. Measured: 0.45 to 1.31 a block, exponent 0.95 to 1.20."""
    grown, block = variance("pre", 48), np.arange(1, 49)
    added = (grown[1:] - grown[0]) / block
    assert added.min() > 0.3
    assert added.max() < 1.4
    assert 0.8 < exponent(block[3:], grown[4:]) < 1.3


def test_layernorm_scalings_stream_grows_logarithmically() -> None:
    """Four times as many blocks add a constant. Measured: 1.27 to 1.48 times from block 12 to 48
    (Pre-LN 3.9 to 5.3 times), correlation with ln b 0.975 to 0.996."""
    lns, pre = variance("lns", 48), variance("pre", 48)
    assert lns[48] / lns[12] < 2 < 3 < pre[48] / pre[12]
    assert np.corrcoef(np.log(np.arange(1, 49)), lns[1:])[0, 1] > 0.95


def test_depth_does_not_change_the_streams_size_at_the_top() -> None:
    """Measured at 48 over 6 blocks: 0.83 to 1.10 (Sandwich-LN 2.5 to 3.0)."""

    def growth(scheme: str) -> float:
        six, all_of_them = (measured(scheme, depth)["stream_rms"][-1] for depth in (6, 48))
        return all_of_them / six

    for scheme in ("resid_const", "beam", "gated_peri"):
        assert 0.75 < growth(scheme) < 1.2, scheme
    assert growth("sandwich") > 2


def test_beam_and_the_gated_sandwich_keep_the_streams_rms() -> None:
    """Measured in all of 48 blocks: Beam 0.92 to 1.14, the gated one (whose neighbouring branches
    are not quite independent) 0.78 to 1.17; Sandwich-LN ends at 9.4 to 10.8."""
    for scheme in ("beam", "gated_peri"):
        stream = measured(scheme, 48)["stream_rms"]
        assert 0.65 < stream.min() < stream.max() < 1.35, scheme
    assert measured("sandwich", 48)["stream_rms"][-1] > 7


def test_ngpts_stream_stays_on_the_unit_sphere() -> None:
    """RMS 1/sqrt(d) behind the embedding and each block, up to float32; each branch is 0.05 / 0.95 of
    the skip path. `test_constraint` has every site, after ten steps, in float64."""
    layers = measured("ngpt", 24)
    assert np.allclose(layers["stream_rms"], 64**-0.5, rtol=1e-6, atol=0)
    assert np.allclose(layers["branch_ratio"][1:], 0.05 / 0.95, rtol=1e-6, atol=0)


def test_admins_gain_grows_like_a_root_so_that_branches_shrink() -> None:
    """omega_k^2 is 1 and the variances of the k-1 branches below. Measured from sublayer 4 of 96:
    exponent 0.52 to 0.53; a branch's share of the stream: exponent -0.43 to -0.46 over blocks."""
    config = RunConfig(width=64, scheme="admin", depth=48)
    model, _, _ = begun(config)
    wires = [wire for block in model.blocks for wire in (block.attention, block.ffn)]
    omega = np.array([wire.skip_gain.weight.mean().item() for wire in wires])
    assert omega[0] == 1
    assert 0.4 < exponent(np.arange(4, 97), omega[3:]) < 0.65
    layers = measured("admin", 48)
    assert -0.6 < exponent(np.arange(1, 49), layers["branch_ratio"][1:]) < -0.3
    assert np.allclose(layers["stream_rms"][1:], 1, atol=1e-3)


def test_without_its_final_norm_pre_lns_logits_grow_like_a_root() -> None:
    """Measured: exponent 0.50 to 0.56 in depth, loss 5.9 to 7.3 at 6 blocks and 15.9 to 19.3 at 48;
    with the norm -0.03 to 0.03. Chance is 3.3."""
    depths, spread, loss = (6, 48), {"pre": [], "pre_nofinal": []}, []
    with torch.no_grad():
        for scheme, found in spread.items():
            for depth in depths:
                config = RunConfig(width=64, scheme=scheme, depth=depth)
                model, tokens, targets = begun(config)
                found.append(model(tokens).std().item())
                loss.append(model.loss(tokens, targets).item())
    assert 0.4 < exponent(depths, spread["pre_nofinal"]) < 0.65
    assert abs(exponent(depths, spread["pre"])) < 0.1
    assert max(loss[:2]) < loss[2] < loss[3] / 2
