"""The settings of today's practice, against implementations by others or the formulas of their papers."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import peers
import pytest
import torch
import torch.nn.functional as F
from model_kit import shaken
from torch import Tensor, nn
from torch.func import functional_call
from twin import FORMULAS, forward

from normviz import RunConfig, train
from normviz.catalog.choices import GATED
from normviz.model.branches import angles, rotated
from normviz.model.constraint import clip_qk
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.flat import Flat
from normviz.model.init import initialise
from normviz.model.sites import untapped
from normviz.model.transformer import ROUNDED, Transformer, sinusoids
from normviz.training.eager import Optimizer, backward
from normviz.training.events import Started, Step
from normviz.training.loop import begin
from normviz.training.probes.instruments import ROWS

CPU = torch.device("cpu")
TINY = RunConfig(depth=3, width=16, heads=2, seq_len=8, batch=4)


def same(ours: Tensor, theirs: Tensor, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(theirs.detach().abs().max()))
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=tolerance * scale)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# The FFN


@pytest.mark.parametrize("activation", GATED)
def test_a_gated_ffn_is_llamas(activation: str) -> None:
    config = TINY.replace(activation=activation)
    ours = shaken(config).blocks[0].ffn.branch
    theirs = peers.LlamaMLP(
        peers.LlamaConfig(
            hidden_size=16,
            num_attention_heads=2,
            intermediate_size=config.hidden,
            mlp_bias=True,
            hidden_act={"swiglu": "silu", "geglu": "gelu"}[activation],
        )
    ).double()
    with torch.no_grad():
        for kind in ("weight", "bias"):
            whole = getattr(ours.up, kind).chunk(2)
            for name, part in zip(("gate_proj", "up_proj"), whole, strict=True):
                getattr(getattr(theirs, name), kind).copy_(part)
            getattr(theirs.down_proj, kind).copy_(getattr(ours.down, kind))
    x = random(2, 8, 16)
    same(ours(x, untapped), theirs(x))


def test_a_gated_ffn_has_about_as_many_parameters() -> None:
    for width in (16, 32, 48, 64, 128):
        plain, gated = (
            sum(p.numel() for p in build(TINY.replace(width=width, activation=a), 32).parameters())
            for a in ("gelu", "swiglu")
        )
        assert gated == pytest.approx(plain, rel=0.03)


@pytest.mark.parametrize(
    ("activation", "function"), [("relu2", lambda x: F.relu(x) ** 2), ("silu", F.silu)]
)
def test_an_activation_is_its_formula(activation: str, function) -> None:
    ours = shaken(TINY.replace(activation=activation)).blocks[0].ffn.branch
    x = random(2, 8, 16)
    same(ours(x, untapped), ours.down(function(ours.up(x))))


# Attention


def test_rope_is_llamas() -> None:
    turning = peers.LlamaRotaryEmbedding(
        peers.LlamaConfig(hidden_size=16, num_attention_heads=2, max_position_embeddings=8)
    )
    q, k = random(3, 2, 8, 8), random(3, 2, 8, 8, seed=1)
    cos, sin = turning(q, torch.arange(8)[None])
    expected = peers.apply_rotary_pos_emb(q, k, cos, sin)
    turn = torch.stack((angles(8, 8).cos(), angles(8, 8).sin()))
    for ours, theirs in zip((rotated(q, turn), rotated(k, turn)), expected, strict=True):
        same(ours, theirs, 1e-6)  # theirs has angles in float32


def test_rope_makes_logits_depend_on_the_distance_alone() -> None:
    q, k = random(1, 1, 8).expand(1, 8, 8), random(1, 1, 8, seed=1).expand(1, 8, 8)
    turn = torch.stack((angles(8, 8).cos(), angles(8, 8).sin()))
    logits = (rotated(q, turn) @ rotated(k, turn).mT)[0]
    for distance in range(8):
        line = logits.diagonal(-distance)
        same(line, line[:1].expand_as(line))


def test_sinks_are_those_of_gpt_oss() -> None:
    config = TINY.replace(sinks="on")
    ours = shaken(config).blocks[0].attention.branch
    assert ours.sink is not None
    x = random(3, 8, 16)
    q, k, v = ours.qkv(x).view(3, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
    module = SimpleNamespace(num_key_value_groups=1, sinks=ours.sink, training=False)
    mixed, _ = peers.eager_attention_forward(module, q, k, v, ours.mask, 8**-0.5)
    same(ours(x, untapped), ours.out(mixed.reshape(3, 8, 16)))


def test_a_gate_of_each_channel_is_qwen3_nexts() -> None:
    ours = shaken(TINY.replace(attn_gate="channel", qk_norm="head")).blocks[0].attention.branch
    config = peers.Qwen3NextConfig(
        hidden_size=16,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        attention_bias=True,
        attn_implementation="eager",
    )
    theirs = peers.Qwen3NextAttention(config, 0).double()
    with torch.no_grad():
        for kind in ("weight", "bias"):
            q, k, v = getattr(ours.qkv, kind).chunk(3)
            gate = getattr(ours.gate, kind)
            both = torch.cat([x.view(2, 8, -1) for x in (q, gate)], 1)  # head by head
            for part, x in (("q", both), ("k", k), ("v", v), ("o", getattr(ours.out, kind))):
                p = getattr(getattr(theirs, f"{part}_proj"), kind)
                p.copy_(x.reshape(p.shape))
        theirs.q_norm.weight.copy_(ours.qk_norm.q.weight - 1)
        theirs.k_norm.weight.copy_(ours.qk_norm.k.weight - 1)
    x, ones = random(3, 8, 16), torch.ones(1, 8, 8)
    # They cast to float32 in the norms and the softmax.
    same(ours(x, untapped), theirs(x, (ones, 0 * ones), ours.mask[None, None])[0], 1e-6)


def test_a_gate_of_each_head_is_its_formula() -> None:
    """Of modeling_qwen3.py in qiuzh20/gated_attention: before the output matrix, heads [B, T, H, d_h] times
    sigmoids [B, T, H, 1]."""
    ours = shaken(TINY.replace(attn_gate="head")).blocks[0].attention.branch
    x = random(3, 8, 16)
    q, k, v = ours.qkv(x).view(3, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    heads = heads * torch.sigmoid(F.linear(x, ours.gate.weight, ours.gate.bias))[..., None]
    same(ours(x, untapped), ours.out(heads.reshape(3, 8, 16)))


def test_qk_clip_is_its_formula() -> None:
    """Head by head as in Kimi K2's report: W_q and W_k by sqrt(tau / S) where the largest logit S is above
    tau. Then the logits of the same input end at tau."""
    ours = shaken(TINY.replace(qk_clip=0.5)).blocks[0].attention.branch
    x, tau = random(3, 8, 16), 0.5
    with torch.no_grad():
        ours.qkv.weight[:8].mul_(0.1)  # the first head stays below

    @torch.no_grad()
    def logits(head: int) -> Tensor:
        rows = [slice(16 * part + 8 * head, 16 * part + 8 * head + 8) for part in range(2)]
        q, k = (x @ ours.qkv.weight[at].T + ours.qkv.bias[at] for at in rows)
        return (q @ k.mT / 8**0.5).masked_select(torch.ones(8, 8).tril().bool())

    ours(x, untapped)
    tops = [float(logits(head).max()) for head in range(2)]
    assert tops[0] < tau < tops[1]
    expected = [getattr(ours.qkv, kind).detach().clone() for kind in ("weight", "bias")]
    for p in expected:
        for head, top in enumerate(tops):
            for part in range(2):
                if top > tau:
                    p[16 * part + 8 * head : 16 * part + 8 * head + 8] *= (tau / top) ** 0.5
    clip_qk([ours], tau)
    same(ours.qkv.weight, expected[0])
    same(ours.qkv.bias, expected[1])
    assert [float(logits(head).max()) for head in range(2)] == pytest.approx([tops[0], tau])
    ours.eval()
    ours(100 * x, untapped)
    assert ours.largest.tolist() == pytest.approx(tops), "a pass of evaluation is no step"


def test_qk_clip_follows_each_step_alone() -> None:
    """Above what the logits reach it changes nothing; below, they stay about there."""

    def recorded(**change: object) -> list[Step]:
        config = TINY.replace(steps=40, lr=0.03, **change)
        return [e for e in train(config, record=(0, 39), engine="eager") if isinstance(e, Step)]

    plain, far, near = recorded(), recorded(qk_clip=1e4), recorded(qk_clip=0.2)
    assert [e.loss for e in plain] == [e.loss for e in far]
    assert plain[0].loss == near[0].loss
    logit = [float(steps[-1].layers[ROWS["attn_logit_max"], 1:].max()) for steps in (plain, near)]
    assert logit[0] > 1.0 > logit[1]


def test_an_encoder_is_torchs_without_a_mask() -> None:
    config = TINY.replace(task="masked", mask="none", scheme="post")
    block = shaken(config).blocks[0]
    ours = block.attention.branch
    theirs = nn.MultiheadAttention(16, 2, batch_first=True).double()
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    x = random(3, 8, 16)
    same(ours(x, untapped), theirs(x, x, x, need_weights=False)[0])


# The ends of the model


def test_sinusoidal_positions_are_the_papers_formula() -> None:
    found = sinusoids(9, 6)
    for t in range(9):
        for i in range(3):
            angle = t / 10000 ** (2 * i / 6)
            assert found[t, 2 * i] == pytest.approx(math.sin(angle), abs=1e-7)
            assert found[t, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-7)


@pytest.mark.parametrize("positions", ["rope", "sinusoidal", "none"])
def test_only_learned_positions_have_parameters(positions: str) -> None:
    fewer = sum(p.numel() for p in build(TINY.replace(positions=positions), 32).parameters())
    assert fewer == sum(p.numel() for p in build(TINY, 32).parameters()) - 8 * 16


def test_without_positions_an_encoder_sees_a_set() -> None:
    config = TINY.replace(task="masked", mask="none", positions="none")
    model = shaken(config)
    tokens = torch.randint(0, 32, (2, 8), generator=torch.Generator().manual_seed(0))
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    same(model(tokens[:, order]), model(tokens)[:, order])


@pytest.mark.parametrize(("init", "divisor"), [("xavier", 4.0), ("torch", 4.0), ("gpt2", 1.0)])
def test_a_tied_head_is_the_embedding(init: str, divisor: float) -> None:
    model = shaken(TINY.replace(tied="on", init=init))
    assert "head.weight" not in dict(model.named_parameters())
    x = random(2, 3, 16)
    same(model.head(x), x @ model.tokens.weight.T)
    tokens = torch.zeros(1, 8, dtype=torch.long)
    seen: list[Tensor] = []
    out = model(tokens, lambda site, _, x: (seen.append(x), x)[1] if site == "final" else x)
    same(out, seen[0] @ model.tokens.weight.T / divisor)


def test_softcap_and_z_loss_are_their_formulas() -> None:
    config = TINY.replace(task="copy")
    batch = make_task(config).tensors(0, CPU)
    plain = shaken(config)
    logits = plain(batch[0])
    same(shaken(config.replace(softcap=3.0))(batch[0]), 3 * torch.tanh(logits / 3))
    with_z = shaken(config.replace(zloss=0.5))
    loss = with_z.loss(*batch)
    assert loss.item() == pytest.approx(plain.loss(*batch).item(), rel=1e-12)
    loss.backward()
    counted = logits.flatten(0, 1)[batch[1].flatten() >= 0]
    whole = plain.loss(*batch) + 0.5 * torch.logsumexp(counted, -1).square().mean()
    whole.backward()
    for p, q in zip(with_z.parameters(), plain.parameters(), strict=True):
        assert p.grad is not None
        assert q.grad is not None
        same(p.grad, q.grad, 1e-10)


@pytest.mark.parametrize("scheme", ["post", "pre", "rezero", "post_scaled", "tfixup"])
def test_branch_gain_multiplies_every_branch(scheme: str) -> None:
    """The twin's formula of the placement, with branches times 0.3."""
    config = TINY.replace(scheme=scheme, branch_gain=0.3)
    model, batch = shaken(config), make_task(config).tensors(0, CPU)
    skip, inside = FORMULAS[scheme], dict(model.named_parameters())
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(FORMULAS, scheme, lambda x, F, S: skip(x, lambda z: 0.3 * F(z), S))
        same(model.loss(*batch), forward(config, inside, *batch).loss)


def test_weight_gain_multiplies_the_blocks_matrices_alone() -> None:
    def initial(**change: object) -> dict[str, Tensor]:
        config = TINY.replace(scheme="b2t", init="torch", **change)
        model = build(config, 8)
        initialise(model, config)
        return dict(model.named_parameters())

    plain = initial()
    for name, p in initial(weight_gain=0.25).items():
        is_matrix = "branch" in name and name.endswith("weight")
        assert torch.equal(p, plain[name] * (0.25 if is_matrix else 1.0)), name


@pytest.mark.parametrize(
    ("setting", "scheme", "other"),
    [
        ({"branch_gain": (2 * 16) ** -0.5}, "post", "post_scaled"),
        ({"branch_gain": 1 / 16}, "pre", "completep"),
        ({"weight_gain": 4.0}, "b2t", ""),
    ],
)
def test_a_gain_makes_one_placement_of_another(
    setting: dict[str, float], scheme: str, other: str
) -> None:
    """At step 0. B2T with sqrt(L) has matrices as Post-LN has."""
    config = TINY.replace(scheme=scheme, depth=16, **setting)
    model, batch = build(config, 40), make_task(config).tensors(0, CPU)
    initialise(model, config)
    if other:
        twin = build(config.replace(scheme=other, branch_gain=1.0), 40)
        initialise(twin, config.replace(scheme=other, branch_gain=1.0))
        torch.testing.assert_close(model.loss(*batch), twin.loss(*batch))
    else:
        twin = build(config.replace(scheme="post", weight_gain=1.0), 40)
        initialise(twin, config.replace(scheme="post", weight_gain=1.0))
        for (name, p), q in zip(model.named_parameters(), twin.parameters(), strict=True):
            assert torch.equal(p, q), name


@pytest.mark.parametrize("rounding", ["bf16", "fp16"])
def test_the_stream_is_rounded_between_blocks(rounding: str) -> None:
    model = shaken(TINY.replace(rounding=rounding), torch.float32)
    seen: list[Tensor] = []
    tokens = torch.zeros(1, 8, dtype=torch.long)
    model(
        tokens, lambda site, _, x: (seen.append(x), x)[1] if site == "stream" else x
    ).sum().backward()
    for x in seen:
        assert torch.equal(x, x.to(ROUNDED[rounding]).float())
    for x in model.parameters():
        assert x.grad is not None
    huge = torch.full((1,), 70000.0)
    from normviz.model.transformer import rounded

    assert torch.isfinite(rounded(huge, torch.bfloat16)).all()
    assert not torch.isfinite(rounded(huge, torch.float16)).any()


# Optimizers and parametrisations


def prepared(config: RunConfig) -> tuple[Transformer, Flat]:
    """A model, and its buffers with random gradients."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    flat = Flat(model, CPU)
    backward(model, flat, task.tensors(0, CPU), untapped)
    return model, flat


def copies(model: Transformer) -> dict[str, nn.Parameter]:
    """Each parameter and its gradient, in memory of their own."""
    found = {}
    for name, p in model.named_parameters():
        found[name] = nn.Parameter(p.detach().clone())
        assert p.grad is not None
        found[name].grad = p.grad.clone()
    return found


GATES = tuple(f"gate_{part}_{of}.weight" for part in ("reset", "update", "new") for of in "xy")
MATRICES = (".qkv.weight", ".out.weight", ".up.weight", ".down.weight", *GATES)


@pytest.mark.parametrize(
    ("activation", "scheme"), [("relu", "pre"), ("swiglu", "pre"), ("relu", "gtrxl")]
)
@pytest.mark.parametrize("exact", [True, False])
def test_muon_is_torchs_on_each_matrix(
    monkeypatch: pytest.MonkeyPatch, activation: str, scheme: str, exact: bool
) -> None:
    """Torch's iterates in bfloat16, which is a cast that can be left out: then both are equal."""
    if exact:
        monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.clone())
    config = TINY.replace(optimizer="muon", weight_decay=0.1, activation=activation, scheme=scheme)
    model, flat = prepared(config)
    theirs = copies(model)
    ours = Optimizer(config, model, flat)
    several = {"qkv": 3, "up": 1 + (activation in GATED)}
    parts = {
        (name, i): nn.Parameter(part.clone())
        for name, p in theirs.items()
        for i, part in enumerate(p.detach().chunk(several.get(name.split(".")[-2], 1)))
        if name.endswith(MATRICES)
    }
    muon = torch.optim.Muon(
        parts.values(), lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    rest = [p for name, p in theirs.items() if not name.endswith(MATRICES)]
    adamw = torch.optim.AdamW(rest, lr=0.01, weight_decay=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for step in range(3):
        for (name, i), part in parts.items():
            whole = theirs[name].grad
            assert whole is not None
            part.grad = whole.chunk(several.get(name.split(".")[-2], 1))[i]
        muon.step()
        adamw.step()
        ours.step(0.01)
        flat.grads.mul_(0.5 + step)
        for name, p in model.named_parameters():
            theirs[name].grad.copy_(p.grad)
    for name, p in model.named_parameters():
        chunks = [part.detach() for (of, _), part in parts.items() if of == name]
        moved = (torch.cat(chunks) if chunks else theirs[name].detach()) - before[name]
        found = p.detach() - before[name]
        assert float((found - moved).norm()) <= (1e-4 if exact or not chunks else 0.15) * float(
            moved.norm()
        )


def test_muon_makes_singular_values_alike() -> None:
    from normviz.training.eager import orthogonalised

    for shape in ((5, 16, 64), (2, 3, 16, 16), (64, 16)):
        values = torch.linalg.svdvals(orthogonalised(random(*shape)))
        assert float(values.min()) > 0.4
        assert float(values.max()) < 1.3


def recipe(name: str, m: float, deep: float, alpha: float = 1.0) -> tuple[float, float, float]:
    """Factors of rate, decay and eps in EleutherAI/nanoGPT-mup, branch completep (arXiv:2505.01618, table 1);
    norms and biases have no decay there."""
    width_lr, depth_lr = 1.0 / m, deep ** (alpha - 1.0)
    hidden_eps = (1.0 / m) * deep**-alpha
    if name.endswith(MATRICES):
        return width_lr * depth_lr, 1.0 / width_lr, hidden_eps
    if name.startswith("blocks."):
        return depth_lr, 0.0, hidden_eps
    return 1.0, 0.0 if name.startswith("final_norm") else 1.0, 1.0 / m


@pytest.mark.parametrize(
    ("parametrisation", "scheme"),
    [("standard", "pre"), ("standard", "gtrxl"), ("mup", "pre"), ("completep", "pre")],
)
def test_the_groups_are_those_of_nanogpt_mup(parametrisation: str, scheme: str) -> None:
    config = RunConfig(
        width=64, depth=6, parametrisation=parametrisation, decay_on="matrices", weight_decay=0.1,
        scheme=scheme,
    )  # fmt: skip
    m = 1.0 if parametrisation == "standard" else 2.0
    deep = 3.0 if parametrisation == "completep" else 1.0
    model, flat = prepared(config)
    theirs = copies(model)
    groups = []
    for name, p in theirs.items():
        rate, decay, eps = recipe(name, m, deep)
        groups.append(
            {"params": [p], "lr": 0.01 * rate, "weight_decay": 0.1 * decay, "eps": 1e-8 * eps}
        )
    torch.optim.AdamW(groups).step()
    Optimizer(config, model, flat).step(0.01)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), theirs[name].detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scheme", ["deepnorm", "peri"])
def test_passes_have_the_gradient_of_blocks_that_are_used_again(scheme: str) -> None:
    """By autograd through one tensor for each parameter that passes share."""
    config = TINY.replace(depth=6, loops=3, scheme=scheme)
    model, flat = prepared(config)
    first = {n: re.sub(r"blocks\.(\d+)", lambda m: f"blocks.{int(m[1]) % 2}", n)
             for n, _ in model.named_parameters()}  # fmt: skip
    values = dict(model.named_parameters())
    own = {n: nn.Parameter(values[n].detach().clone()) for n in dict.fromkeys(first.values())}
    assert all(torch.equal(p, own[first[n]]) for n, p in values.items())
    assert model.learned() == sum(p.numel() for p in own.values())
    inputs, targets = make_task(config).tensors(0, CPU)
    logits = functional_call(model, {n: own[it] for n, it in first.items()}, (inputs,))
    F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    size = torch.stack([p.grad.norm() for p in own.values() if p.grad is not None]).norm()
    same(flat.grad_norm(), size, 1e-6)
    parts = [
        p.grad.clone() for n, p in values.items() if first[n] == "blocks.1.ffn.branch.up.weight"
    ]
    assert len(parts) == 3 and not torch.equal(parts[0], parts[2]), "a pass's own, for the probes"
    flat.add_passes()
    for name, p in values.items():
        same(p.grad, own[first[name]].grad, 1e-6)


@pytest.mark.parametrize(
    "change", [{}, {"optimizer": "muon"}, {"optimizer": "sgd", "momentum": 0.9}, {"scheme": "ngpt"}]
)
def test_passes_keep_the_same_values(change: dict[str, object]) -> None:
    config = TINY.replace(depth=6, loops=3, steps=5, lr=0.1, **change)
    model, task = begin(config)
    for event in train(config, begun=(model, task)):
        if isinstance(event, Started):
            assert event.parameters == model.learned()
    blocks = [torch.cat([p.flatten() for p in block.parameters()]) for block in model.blocks]
    assert not torch.equal(blocks[0], blocks[1])
    for b in range(2, 6):
        assert torch.equal(blocks[b], blocks[b - 2])


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_decay_of_input_norms_is_a_group_of_their_scales(optimizer: str) -> None:
    """Moved without gradients: what decays shrinks, all else stays."""
    config = TINY.replace(
        scheme="peri", norm="layernorm", qk_norm="head", attn_gate="head", weight_decay=0.1,
        decay_on="input_norms", optimizer=optimizer,
    )  # fmt: skip
    model, flat = prepared(config)
    with torch.no_grad():
        flat.values.add_(1.0)
    flat.grads.zero_()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    Optimizer(config, model, flat).step(0.5)
    read = {"norm_in.weight", "final_norm.weight"}
    for name, p in model.named_parameters():
        end = ".".join(name.split(".")[-2:])
        shrinks = end in read or (p.ndim == 2 and "norm" not in name)
        same(p.detach(), before[name] * (0.95 if shrinks else 1.0), 1e-6)


def test_completep_divides_branches_and_logits_and_attention() -> None:
    """One block of width 64 at depth 4, by the formulas of nanoGPT-mup."""
    config = RunConfig(width=64, depth=4, parametrisation="completep", heads=4)
    model = shaken(config)
    block = model.blocks[0]
    x = random(2, 32, 64)
    attention, ffn = block.attention, block.ffn
    h = attention.norm_in(x)
    q, k, v = attention.branch.qkv(h).view(2, 32, 3, 4, 16).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0 / 16)
    y = x + 0.5 * attention.branch.out(mixed.transpose(1, 2).reshape(2, 32, 64))
    y = y + 0.5 * ffn.branch(ffn.norm_in(y), untapped)
    same(block(x, untapped, x), y)
    tokens = torch.zeros(1, 32, dtype=torch.long)
    seen: list[Tensor] = []
    out = model(tokens, lambda site, _, x: (seen.append(x), x)[1] if site == "final" else x)
    same(out, model.head(seen[0] / 2))


@pytest.mark.parametrize("init", ["xavier", "torch", "gpt2", "gpt2_width"])
def test_hidden_matrices_start_with_the_bases_variance_over_m(init: str) -> None:
    def sizes(**changes: object) -> dict[str, float]:
        config = RunConfig(init=init, depth=2, **changes)
        model = build(config, 32)
        initialise(model, config)
        return {n: float(p.detach().std()) for n, p in model.named_parameters()}

    base, wide = sizes(width=32), sizes(width=128, parametrisation="mup")
    for name in ("qkv", "out"):
        path = f"blocks.1.attention.branch.{name}.weight"
        assert wide[path] == pytest.approx(base[path] / 2, rel=0.05)
    for name in ("up", "down"):
        path = f"blocks.1.ffn.branch.{name}.weight"
        assert wide[path] == pytest.approx(base[path] / 2, rel=0.05)
    for name in ("tokens.weight", "head.weight"):
        assert wide[name] == pytest.approx(base[name], rel=0.1)


def test_at_the_base_width_mup_is_standard() -> None:
    """But for the divisor of attention's logits, which a cosine does not have."""
    from normviz import train
    from normviz.training.events import Step

    def losses(**changes: object) -> list[float]:
        config = RunConfig(depth=2, steps=5, qk_norm="cosine", **changes)
        return [e.loss for e in train(config, engine="eager") if isinstance(e, Step)]

    standard = losses()
    for parametrisation in ("mup", "completep"):
        assert losses(parametrisation=parametrisation) == pytest.approx(standard, rel=1e-6)
