"""The record-driven model equals PyTorch's layers and every scheme's written formula."""

from __future__ import annotations

import pytest
import torch
from crossing_kit import ATTENTION_KINDS, NORM_KINDS, with_schemes
from model_kit import batch, shaken
from torch import Tensor, nn
from twin import EMBED_NORM, FINAL_NORM, forward

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.catalog.scheme import Place
from normviz.model.norms import make_norm
from normviz.model.sites import untapped

CLOSE = {torch.float64: 1e-10, torch.float32: 1e-6}
PRECISIONS = pytest.mark.parametrize("dtype", CLOSE, ids=str)
ALL_SCHEMES = pytest.mark.parametrize("scheme", SCHEMES.keys())


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """Equal up to a tolerance relative to the largest number of the tensor (or 1 if it is less)."""
    scale = max(1.0, float(theirs.detach().abs().max()))
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=tolerance * scale)


# PyTorch's own encoder layer

PAIRS = {
    "self_attn.in_proj_weight": "attention.branch.qkv.weight",
    "self_attn.in_proj_bias": "attention.branch.qkv.bias",
    "self_attn.out_proj.weight": "attention.branch.out.weight",
    "self_attn.out_proj.bias": "attention.branch.out.bias",
    "linear1.weight": "ffn.branch.up.weight",
    "linear1.bias": "ffn.branch.up.bias",
    "linear2.weight": "ffn.branch.down.weight",
    "linear2.bias": "ffn.branch.down.bias",
    "norm1.weight": "attention.{slot}.weight",
    "norm1.bias": "attention.{slot}.bias",
    "norm2.weight": "ffn.{slot}.weight",
    "norm2.bias": "ffn.{slot}.bias",
}


def encoder_layer(config: RunConfig, block: nn.Module, slot: str) -> nn.TransformerEncoderLayer:
    """PyTorch's layer with a block's weights."""
    layer = nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        config.ffn_ratio * config.width,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.scheme == "pre",
    )
    ours = dict(block.named_parameters())
    layer.load_state_dict({name: ours[pair.format(slot=slot)] for name, pair in PAIRS.items()})
    return layer.to(ours["ffn.branch.up.bias"].dtype)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("scheme", "slot"), [("pre", "norm_in"), ("post", "norm_main")])
@PRECISIONS
def test_equals_torch_encoder_layers(
    tiny: RunConfig, scheme: str, slot: str, activation: str, dtype: torch.dtype
) -> None:
    config = tiny.replace(scheme=scheme, activation=activation, depth=3)
    model, (tokens, targets) = shaken(config, dtype), batch(config)
    layers = [encoder_layer(config, block, slot) for block in model.blocks]
    mask = nn.Transformer.generate_square_subsequent_mask(config.seq_len, dtype=dtype)

    x = theirs = (model.tokens(tokens) + model.positions.weight).detach()
    for layer in layers:
        theirs = layer(theirs, src_mask=mask)
    ours = x
    for block in model.blocks:
        ours = block(ours, untapped, x)
    assert_close(ours, theirs, CLOSE[dtype])

    for stream in (ours, theirs):
        logits = model.head(model.final_norm(stream))
        nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    for block, layer in zip(model.blocks, layers, strict=True):
        mine, torchs = dict(block.named_parameters()), dict(layer.named_parameters())
        for name, pair in PAIRS.items():
            assert_close(mine[pair.format(slot=slot)].grad, torchs[name].grad, CLOSE[dtype])


# Every scheme's formula


@pytest.mark.parametrize(("scheme", "norm"), with_schemes(NORM_KINDS))
def test_whole_model_is_its_twin(tiny: RunConfig, scheme: str, norm: str) -> None:
    assert_is_its_twin(tiny.replace(scheme=scheme, norm=norm, activation="gelu", steps=0))


@pytest.mark.parametrize(("scheme", "norms"), with_schemes(ATTENTION_KINDS), ids=str)
@pytest.mark.slow
def test_whole_model_is_its_twin_with_attention_norms(
    tiny: RunConfig, scheme: str, norms: tuple[str, str]
) -> None:
    qk_norm, v_norm = norms
    assert_is_its_twin(tiny.replace(scheme=scheme, qk_norm=qk_norm, v_norm=v_norm))


def assert_is_its_twin(config: RunConfig) -> None:
    model, (tokens, targets) = shaken(config), batch(config)
    twin = forward(config, dict(model.named_parameters()), tokens, targets)
    assert_close(model(tokens), twin.output, 1e-10)
    assert_close(model.loss(tokens, targets), twin.loss, 1e-10)


@ALL_SCHEMES
def test_end_norms_are_where_the_scheme_says(tiny: RunConfig, scheme: str) -> None:
    names = dict(shaken(tiny.replace(scheme=scheme)).named_parameters())
    assert ("final_norm.weight" in names) == (scheme in FINAL_NORM)
    assert ("embed_norm.weight" in names) == (scheme in EMBED_NORM)


@ALL_SCHEMES
def test_no_norm_means_no_norm_anywhere(tiny: RunConfig, scheme: str) -> None:
    model = shaken(tiny.replace(scheme=scheme, norm="none"))
    assert not [name for name, _ in model.named_parameters() if "norm" in name]


@pytest.mark.parametrize("depth", [1, 12, 1000])
def test_deepnorm_constants_are_the_decoder_ones(depth: int) -> None:
    deepnorm = SCHEMES["deepnorm"]
    for branch in ("attention", "ffn"):
        place = Place(1, depth, branch)
        alpha, beta = (2 * depth) ** (1 / 4), (8 * depth) ** (-1 / 4)
        assert deepnorm.slots(place).skip_gain.value == pytest.approx(alpha, rel=1e-15)
        assert deepnorm.weight_gain(place, "value") == pytest.approx(beta, rel=1e-15)
        assert deepnorm.weight_gain(place, "query_key") == 1.0


@ALL_SCHEMES
def test_causal(tiny: RunConfig, scheme: str) -> None:
    model, (tokens, _) = shaken(tiny.replace(scheme=scheme)).eval(), batch(tiny)
    before = model(tokens)
    for t in range(1, tokens.shape[1]):
        changed = tokens.clone()
        changed[:, t] = (changed[:, t] + 1) % 32
        after = model(changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


def test_qk_norm_makes_every_head_unit_rms(tiny: RunConfig) -> None:
    """With q = k of RMS 1 over the h channels of a head, q.k / sqrt(h) is sqrt(h)."""
    config = tiny.replace(qk_norm="on")
    model, seen = shaken(config), []

    def tap(site: str, _index: int, x: Tensor, /) -> Tensor:
        seen.append(x) if site == "attn_logits" else None
        return x

    with torch.no_grad():
        for block in model.blocks:  # the same query and key: the diagonal is |q|^2 / sqrt(h)
            qkv = block.attention.branch.qkv
            qkv.weight[16:32], qkv.bias[16:32] = qkv.weight[:16], qkv.bias[:16]
    model(batch(config)[0], tap)
    head = config.width // config.heads
    for logits in seen:
        diagonal = logits.diagonal(dim1=1, dim2=2)
        assert_close(diagonal, torch.full_like(diagonal, head**0.5), 1e-3)


@pytest.mark.parametrize(
    ("key", "reference"),
    [
        ("layernorm", lambda x, w, b: nn.functional.layer_norm(x, (16,), w, b, 1e-5)),
        ("rmsnorm", lambda x, w, b: nn.functional.rms_norm(x, (16,), w, 1e-6)),
        ("none", lambda x, w, b: x),
    ],
)
def test_norm_modules_equal_torch_functional(key: str, reference) -> None:
    generator = torch.Generator().manual_seed(0)
    norm, x = make_norm(key, 16), 3 + torch.randn(4, 16, generator=generator)
    for p in norm.parameters():
        p.data.normal_(generator=generator)
    named = dict(norm.named_parameters())
    assert torch.equal(norm(x), reference(x, named.get("weight"), named.get("bias")))


def test_dropout_is_seeded_and_spares_the_global_generator(tiny: RunConfig) -> None:
    config, tokens = tiny.replace(dropout=0.5), batch(tiny)[0]
    one, two, without = shaken(config), shaken(config), shaken(tiny)
    state = torch.get_rng_state()
    assert torch.equal(one(tokens), two(tokens))
    assert not torch.equal(one(tokens), without(tokens))
    assert torch.equal(torch.get_rng_state(), state)
