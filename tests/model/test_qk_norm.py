"""Norms on queries, keys and values: equal to public attention layers, and what they promise."""

from __future__ import annotations

import math

import peers
import pytest
import torch
from torch import Tensor, nn

from normviz import RunConfig
from normviz.catalog import QK_NORMS, V_NORMS
from normviz.catalog.scheme import Slots
from normviz.model.branches import Attention, causal_mask
from normviz.model.gains import Clock
from normviz.model.qk_norm import make_qk_norm, make_v_norm
from normviz.model.sites import untapped

B, T, D, H = 3, 9, 16, 4
ALL_QK = pytest.mark.parametrize("qk_norm", QK_NORMS.keys())


def attention_of(qk_norm: str, v_norm: str) -> Attention:
    config = RunConfig(width=D, heads=H, seq_len=T, qk_norm=qk_norm, v_norm=v_norm)
    return Attention(config, Slots(), block=1, clock=Clock())


def attention(qk_norm: str, v_norm: str = "off", dtype: torch.dtype = torch.float64) -> Attention:
    """Attention with random weights, scales and biases."""
    module = attention_of(qk_norm, v_norm).to(dtype)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, p in module.named_parameters():
            noise = 0.3 * torch.randn(p.shape, generator=generator, dtype=torch.float64)
            p.copy_(p + noise if "norm" in name else noise)
    return module


def stream(seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(B, T, D, generator=generator, dtype=torch.float64).to(dtype)


def copy_weights(theirs: nn.Module, ours: Attention, names: dict[str, str]) -> None:
    """Give a peer our weights. `names` maps its parameters to ours, with q, k and v apart."""
    own: dict[str, Tensor] = dict(ours.named_parameters())
    for kind in ("weight", "bias"):
        parts = own[f"qkv.{kind}"].split(D)
        own |= {f"{part}.{kind}": x for part, x in zip("qkv", parts, strict=True)}
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            if p.requires_grad:
                p.copy_(own[names[name]])


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    scale = max(1.0, float(theirs.detach().abs().max()))
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=tolerance * scale)


def assert_same_gradients(
    ours: Attention, theirs: nn.Module, names: dict[str, str], tolerance: float
) -> None:
    """Gradients of all parameters that the peer used."""
    own = {name: p.grad for name, p in ours.named_parameters()}
    for kind in ("weight", "bias"):
        whole = own[f"qkv.{kind}"]
        assert whole is not None
        own |= {f"{part}.{kind}": x for part, x in zip("qkv", whole.split(D), strict=True)}
    used = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    assert used.keys() == names.keys()
    for name, gradient in used.items():
        mine = own[names[name]]
        assert mine is not None
        assert_close(mine, gradient, tolerance)


PROJECTIONS = {
    f"{part}_proj.{kind}": f"{ours}.{kind}"
    for part, ours in {"q": "q", "k": "k", "v": "v", "o": "out"}.items()
    for kind in ("weight", "bias")
} | {f"{part}_norm.weight": f"qk_norm.{part}.weight" for part in "qk"}


def decoder_attention(kind: str) -> nn.Module:
    """Attention of Qwen3 or OLMo 2, in plain operations."""
    config, layer = (
        (peers.Qwen3Config, peers.Qwen3Attention)
        if kind == "head"
        else (peers.Olmo2Config, peers.Olmo2Attention)
    )
    eps = 1e-6 if kind == "head" else 1e-5
    extra = {"head_dim": D // H} if kind == "head" else {}
    settings = config(
        hidden_size=D, num_attention_heads=H, num_key_value_heads=H, rms_norm_eps=eps,
        attention_bias=True, num_hidden_layers=1, attn_implementation="eager", **extra,
    )  # fmt: skip
    return layer(settings, layer_idx=0)


@pytest.mark.parametrize("kind", ["head", "full"])
def test_equals_qwen3_and_olmo2(kind: str) -> None:
    """In float32: their norms cast to it. Positions rotate by nothing."""
    ours, theirs = attention(kind, dtype=torch.float32), decoder_attention(kind)
    copy_weights(theirs, ours, PROJECTIONS)
    x, y = stream(1, torch.float32).requires_grad_(), stream(1, torch.float32).requires_grad_()
    still = torch.ones(B, T, D // H), torch.zeros(B, T, D // H)
    mine = ours(x, untapped)
    other, _ = theirs(y, position_embeddings=still, attention_mask=causal_mask(T)[None, None])
    assert_close(mine, other, 1e-5)
    mine.backward(stream(2, torch.float32))
    other.backward(stream(2, torch.float32))
    assert x.grad is not None
    assert y.grad is not None
    assert_close(x.grad, y.grad, 1e-5)
    assert_same_gradients(ours, theirs, PROJECTIONS, 1e-5)


def test_per_head_layernorm_equals_stablelm() -> None:
    """Each head with a norm of its own, [B, H, T, d_h]."""
    ours = make_qk_norm("layernorm", H, D // H).double()
    theirs = peers.StableLmLayerNormPerHead(D // H, H).double()
    x = stream(1).view(B, T, H, D // H).transpose(1, 2).reshape(B * H, T, D // H).requires_grad_()
    scale = dict(ours.named_parameters())["scale_q"]
    with torch.no_grad():
        scale.copy_(stream(2)[0, :1].view(H, 1, D // H))
        for norm, own in zip(theirs.norms, scale, strict=True):
            norm.weight.copy_(own[0])
    mine, _ = ours(x, x.detach())
    other = theirs(y := x.detach().view(B, H, T, D // H).requires_grad_())
    assert_close(mine.view(other.shape), other, 1e-12)
    (mine * x.detach()).sum().backward()
    (other * y.detach()).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert scale.grad is not None
    assert_close(x.grad.view(y.shape), y.grad, 1e-12)
    assert_close(scale.grad[:, 0], torch.stack([n.weight.grad for n in theirs.norms]), 1e-12)


SWIN = {
    "query.weight": "q.weight", "query.bias": "q.bias", "key.weight": "k.weight",
    "value.weight": "v.weight", "value.bias": "v.bias", "logit_scale": "qk_norm.log_scale",
}  # fmt: skip


def test_cosine_equals_swin_v2() -> None:
    """In float64, through a whole 3 x 3 window with a causal mask and no position bias."""
    ours = attention("cosine")
    with torch.no_grad():
        ours.qkv.bias[D : 2 * D] = 0.0  # Swin V2's keys have none
        ours.out.weight.copy_(torch.eye(D))  # its output projection is another module
        ours.out.bias.zero_()
        ours.qk_norm.log_scale[0] = math.log(1000.0)  # beyond the bound
    theirs = (
        peers.Swinv2SelfAttention(peers.Swinv2Config(qkv_bias=True), D, H, window_size=3)
        .double()
        .eval()
    )
    for p in theirs.continuous_position_bias_mlp.parameters():
        p.requires_grad_(False).zero_()  # the same bias everywhere: softmax ignores it
    copy_weights(theirs, ours, SWIN)
    x, y = stream(1).requires_grad_(), stream(1).requires_grad_()
    mask = 0.5 * causal_mask(T).double()[None].expand(B, T, T)  # it is added twice
    mine, other = ours(x, untapped), theirs(y, attention_mask=mask)[0]
    assert_close(mine, other, 1e-10)
    mine.backward(stream(2))
    other.backward(stream(2))
    assert x.grad is not None
    assert y.grad is not None
    assert_close(x.grad, y.grad, 1e-10)
    assert_same_gradients(ours, theirs, SWIN, 1e-10)
    bounded, free, *_ = ours.qk_norm.log_scale.grad.flatten().tolist()
    assert bounded == 0.0 != free


def test_v_norm_equals_gemma_4() -> None:
    x, y = stream(1, torch.float32).requires_grad_(), stream(1, torch.float32).requires_grad_()
    mine, other = make_v_norm("on")(x), peers.Gemma4RMSNorm(D, with_scale=False)(y)
    assert_close(mine, other, 1e-5)
    mine.backward(stream(2, torch.float32))
    other.backward(stream(2, torch.float32))
    assert x.grad is not None
    assert y.grad is not None
    assert_close(x.grad, y.grad, 1e-5)


LEARNED = {
    "off": {}, "on": {}, "head": {"q.weight": 1.0, "k.weight": 1.0},
    "full": {"q.weight": 1.0, "k.weight": 1.0}, "cosine": {"log_scale": math.log(10)},
    "layernorm": {"scale_q": 1.0, "scale_k": 1.0},
}  # fmt: skip
ENTRIES = {"head": D // H, "layernorm": D, "full": D, "cosine": H}


@ALL_QK
def test_learns_from_where_its_source_starts(qk_norm: str) -> None:
    found = dict(attention_of(qk_norm, "on").qk_norm.named_parameters())
    assert found.keys() == LEARNED[qk_norm].keys()
    for name, p in found.items():
        assert p.numel() == ENTRIES[qk_norm]
        torch.testing.assert_close(p, torch.full_like(p, LEARNED[qk_norm][name]))


@ALL_QK
def test_the_size_of_queries_and_keys_matters_only_without_a_norm(qk_norm: str) -> None:
    ours, size = attention(qk_norm), 1.0 if qk_norm == "off" else 1e3  # eps is nothing to it
    x = size * stream(1)
    before = ours(x, untapped)
    with torch.no_grad():
        ours.qkv.weight[: 2 * D] *= 3
        ours.qkv.bias[: 2 * D] *= 3
    same = torch.allclose(ours(x, untapped), before, rtol=1e-6)
    assert same == (qk_norm != "off")


@pytest.mark.parametrize("v_norm", V_NORMS.keys())
def test_the_size_of_values_matters_only_without_a_norm(v_norm: str) -> None:
    ours, x = attention("off", v_norm), stream(1)
    before = ours(x, untapped)
    with torch.no_grad():
        ours.qkv.weight[2 * D :] *= 1e6
        ours.qkv.bias[2 * D :] *= 1e6
    between = ours(x, untapped)
    with torch.no_grad():
        ours.qkv.weight[2 * D :] *= 3
        ours.qkv.bias[2 * D :] *= 3
    assert torch.allclose(ours(x, untapped), between, rtol=1e-6) == (v_norm == "on")
    assert not torch.equal(before, between)


@pytest.mark.parametrize("v_norm", V_NORMS.keys())
@ALL_QK
def test_bears_zeros_and_stays_causal(qk_norm: str, v_norm: str) -> None:
    ours = attention(qk_norm, v_norm)
    with torch.no_grad():
        ours.qkv.bias.zero_()
    zero = torch.zeros(B, T, D, dtype=torch.float64, requires_grad=True)
    ours(zero, untapped).sum().backward()
    assert zero.grad is not None
    assert zero.grad.isfinite().all()
    x, y = stream(1), stream(1)
    y[:, 5:] = stream(2)[:, 5:]
    assert torch.equal(ours(x, untapped)[:, :5], ours(y, untapped)[:, :5])
