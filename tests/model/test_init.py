"""Initial values: the table in normviz/model/init.py holds, and lanes are paired bit for bit."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch
from task_kit import with_task
from torch import Tensor, nn

from normviz import RunConfig
from normviz.catalog import INITS, NORMS, SCHEMES, TASKS
from normviz.catalog.scheme import Place, plain
from normviz.model.data import make_task
from normviz.model.init import initialise
from normviz.model.marks import drawn, kept
from normviz.model.transformer import build
from normviz.model.wire import started

D, FFN, V, L = 64, 256, 32, 2
BASE = RunConfig(depth=L, width=D, seq_len=64)
FREE = [scheme for scheme in SCHEMES if scheme.constraint == "none"]
PLAIN = [scheme.key for scheme in FREE if scheme.weight_gain is plain]


@cache
def initial(config: RunConfig) -> dict[str, Tensor]:
    model = build(config, make_task(config).vocabulary)
    initialise(model, config)
    return {name: p.detach() for name, p in model.named_parameters()}


# The table


def xavier(inputs: int, outputs: int) -> tuple[str, float]:
    return "uniform", (6 / (inputs + outputs)) ** 0.5


def gpt2(s: float) -> dict[str, tuple[str, float]]:
    residual = ("normal", s / (2 * L) ** 0.5)
    return {
        "tokens.weight": ("normal", s),
        "positions.weight": ("normal", s),
        "head.weight": ("normal", s),
        "qkv.weight": ("normal", s),
        "out.weight": residual,
        "up.weight": ("normal", s),
        "down.weight": residual,
    }


EMBEDDINGS = {
    "tokens.weight": ("normal", 1.0),
    "positions.weight": ("normal", 0.5),
    "head.weight": xavier(D, V),
}
TABLE: dict[str, dict[str, tuple[str, float]]] = {
    "xavier": EMBEDDINGS
    | {
        "qkv.weight": xavier(D, D),
        "out.weight": xavier(D, D),
        "up.weight": xavier(D, FFN),
        "down.weight": xavier(FFN, D),
    },
    "torch": EMBEDDINGS
    | {
        "qkv.weight": xavier(D, 3 * D),
        "out.weight": ("uniform", D**-0.5),
        "up.weight": ("uniform", D**-0.5),
        "up.bias": ("uniform", D**-0.5),
        "down.weight": ("uniform", FFN**-0.5),
        "down.bias": ("uniform", FFN**-0.5),
    },
    "gpt2": gpt2(0.02),
    "gpt2_width": gpt2(0.02 * (768 / D) ** 0.5),
}


def assert_drawn_from(x: Tensor, kind: str, size: float) -> None:
    """By extremes and standard deviation, which tell the two kinds and a wrong size apart."""
    spread = size / 3**0.5 if kind == "uniform" else size
    noise = 4 / (2 * x.numel()) ** 0.5
    assert float(x.std()) == pytest.approx(spread, rel=noise)
    assert abs(float(x.mean())) < 4 * spread / x.numel() ** 0.5
    if kind == "uniform":
        assert 1 - 10 / x.numel() < float(x.abs().max()) / size <= 1
    else:
        assert float(x.abs().max()) > 2.5 * size


@pytest.mark.parametrize("init", INITS.keys())
def test_table(init: str) -> None:
    for name, x in initial(BASE.replace(init=init)).items():
        if "norm" in name:
            assert (x == (1.0 if name.endswith("weight") else 0.0)).all()
            continue
        rule = TABLE[init].get(".".join(name.split(".")[-2:]))
        if rule is None:
            assert (x == 0).all(), name
        else:
            assert_drawn_from(x, *rule)


@pytest.mark.parametrize("init", ["xavier"])
def test_query_key_and_value_are_apart(init: str) -> None:
    """Each of the three fills its own D x D bound; fused, the bound would be smaller."""
    for part in initial(BASE.replace(init=init))["blocks.0.attention.branch.qkv.weight"].split(D):
        assert_drawn_from(part, *xavier(D, D))


def test_torch_init_is_that_of_a_real_encoder_layer() -> None:
    torch.manual_seed(0)
    layer = dict(nn.TransformerEncoderLayer(D, 4, FFN).named_parameters())
    ours = initial(BASE.replace(init="torch"))
    for theirs, name in {
        "self_attn.in_proj_weight": "attention.branch.qkv.weight",
        "self_attn.in_proj_bias": "attention.branch.qkv.bias",
        "self_attn.out_proj.weight": "attention.branch.out.weight",
        "self_attn.out_proj.bias": "attention.branch.out.bias",
        "linear1.weight": "ffn.branch.up.weight",
        "linear1.bias": "ffn.branch.up.bias",
        "linear2.weight": "ffn.branch.down.weight",
        "linear2.bias": "ffn.branch.down.bias",
    }.items():
        mine, real = ours[f"blocks.0.{name}"], layer[theirs].detach()
        assert mine.shape == real.shape
        noise = 10 / real.numel()
        assert float(mine.abs().max()) == pytest.approx(float(real.abs().max()), rel=noise), name
        assert float(mine.std()) == pytest.approx(float(real.std()), rel=0.15), name


# Pairing


def assert_paired(a: RunConfig, b: RunConfig) -> None:
    ours, theirs = initial(a), initial(b)
    shared = [n for n in ours if n in theirs and ours[n].shape == theirs[n].shape]
    assert len(shared) >= 3 + 8 * min(a.depth, b.depth)
    for name in shared:
        if not any(kept in name for kept in ("norm", "gain", "gate")):
            assert torch.equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("init", INITS.keys())
@pytest.mark.parametrize("scheme", PLAIN)
def test_schemes_share_their_initial_values(scheme: str, init: str) -> None:
    """All that is drawn; gains, and norms that start smaller, are the scheme's own."""
    assert_paired(BASE.replace(init=init), BASE.replace(scheme=scheme, init=init))


@pytest.mark.parametrize(("a", "b"), list(combinations(NORMS.keys(), 2)))
def test_norms_share_their_initial_values(a: str, b: str) -> None:
    assert_paired(BASE.replace(scheme="peri", norm=a), BASE.replace(scheme="peri", norm=b))


@pytest.mark.parametrize("init", ["xavier", "torch"])
@pytest.mark.parametrize("change", [{"depth": 5}, {"qk_norm": "on"}, {"heads": 8}, {"lr": 1.0}])
def test_other_changes_share_their_initial_values(change: dict, init: str) -> None:
    base = BASE.replace(init=init)
    assert_paired(base, base.replace(**change))


@pytest.mark.parametrize("scheme", sorted({s.key for s in FREE} - set(PLAIN)))
def test_a_weight_gain_multiplies_the_same_draw(scheme: str) -> None:
    ours, bare = initial(BASE.replace(scheme=scheme)), initial(BASE.replace(scheme="none"))
    record = SCHEMES[scheme]
    for b in range(L):
        at, ff = Place(b + 1, L, "attention"), Place(b + 1, L, "ffn")
        for place, name, matrix, rows in (
            (at, "attention.branch.qkv", "query_key", slice(0, 2 * D)),
            (at, "attention.branch.qkv", "value", slice(2 * D, 3 * D)),
            (at, "attention.branch.out", "out", slice(None)),
            (ff, "ffn.branch.up", "up", slice(None)),
            (ff, "ffn.branch.down", "down", slice(None)),
        ):
            mine, theirs = (x[f"blocks.{b}.{name}.weight"][rows] for x in (ours, bare))
            assert torch.equal(mine, theirs * record.weight_gain(place, matrix))
    for name in EMBEDDINGS:
        if name == "tokens.weight" and record.embedding_std is not None:
            spread = float(ours[name].std())
            assert spread == pytest.approx(record.embedding_std(D, L), rel=0.1)
        else:
            assert torch.equal(ours[name], bare[name])


PINNED: list[tuple[dict, float]] = [
    ({"scheme": "denseformer"}, 48.862232137),
    ({"scheme": "attnres"}, 28.062703331),
    ({"scheme": "residual_dual"}, -25.519985770),
    ({"scheme": "siamese"}, 54.208597631),
    ({"scheme": "hyper"}, 35.148841870),
    ({"scheme": "mhc"}, 40.772830761),
    ({"init": "xavier", "scheme": "post"}, -28.828770109),
    ({"init": "xavier", "scheme": "tfixup"}, 2.246911445),
    ({"init": "torch", "scheme": "post"}, -27.115837766),
    ({"init": "torch", "scheme": "tfixup"}, 4.681418545),
    ({"init": "gpt2", "scheme": "post"}, 1.732883260),
    ({"init": "gpt2", "scheme": "tfixup"}, 4.540440548),
    ({"init": "gpt2_width", "scheme": "post"}, -10.314294522),
    ({"init": "gpt2_width", "scheme": "tfixup"}, 9.887636327),
    ({"scheme": "ngpt"}, -19.186183084),
    ({"scheme": "deepnorm"}, -28.270421460),
    ({"scheme": "rezero"}, -36.314796518),
    ({"scheme": "gpas"}, 32.284796228),
    ({"scheme": "normformer"}, 2.476016021),
    ({"scheme": "admin"}, 7.242227638),
    ({"scheme": "lns"}, -20.277749077),
    ({"norm": "seednorm", "scheme": "peri"}, 45.376134799),
    ({"norm": "rmsnorm_1p", "scheme": "peri"}, -24.977153477),
    ({"norm": "derf", "scheme": "peri"}, 4.566212804),
    ({"norm": "scalenorm", "scheme": "peri"}, 37.758817244),
    ({"qk_norm": "cosine", "v_norm": "on"}, -6.320220368),
    ({"qk_norm": "full", "v_norm": "on"}, 44.320147683),
    ({"qk_norm": "head", "v_norm": "on"}, -28.118750212),
    ({"scheme": "post", "init": "torch", "init_seed": 7}, 8.830526959),
]
"""Every kind of stream, initialisation and learned norm, and the checksum of its initial values."""


@pytest.mark.parametrize(("change", "checksum"), PINNED, ids=str)
def test_initial_values_stay_as_they_were(change: dict, checksum: float) -> None:
    """Stored and shipped runs began from them. A hash would differ between processors."""
    values = initial(RunConfig(depth=3, width=16, heads=2, seq_len=8).replace(**change))
    flat = torch.cat([values[name].flatten() for name in sorted(values)]).double()
    weights = torch.arange(len(flat), dtype=torch.float64).cos()
    assert float(flat @ weights) == pytest.approx(checksum, rel=1e-6)


@pytest.mark.parametrize("name", ["aggregate", "normal", "mixer"])
def test_a_parameter_without_a_mark_is_an_error(name: str) -> None:
    """Also where its name contains "gate", "gain" or "norm"."""
    model = build(BASE, V)
    model.blocks[0].register_module(name, nn.Linear(2, 2))
    with pytest.raises(ValueError, match=rf"^blocks\.0\.{name}\.weight has no initial value: mark"):
        initialise(model, BASE)


def test_a_mark_decides_and_the_name_does_not() -> None:
    """A kept parameter starts as it was made, a drawn one by its role's rule, whatever they are called."""
    model = build(BASE, V)
    model.register_module("plain", kept(nn.Linear(D, D)))
    model.register_module("norm_gate", drawn(nn.Linear(D, 3 * D), "qkv"))
    made = dict(model.named_parameters())["plain.weight"].detach().clone()
    initialise(model, BASE)
    values = dict(model.named_parameters())
    assert torch.equal(values["plain.weight"], made)
    assert_drawn_from(values["norm_gate.weight"].detach(), *xavier(D, D))
    assert (values["norm_gate.bias"] == 0).all()


def test_a_role_without_a_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"rule for mixer\.weight: roles are tokens\.weight, "):
        drawn(nn.Linear(2, 2), "mixer")


def test_a_norm_whose_scale_has_another_name_can_t_start_smaller() -> None:
    norm = nn.Module()
    norm.register_parameter("gamma", nn.Parameter(torch.ones(2)))
    with pytest.raises(ValueError, match=r"^Module learns gamma: call its scale weight, scale or "):
        started(norm, 0.5)


def test_every_parameter_and_seed_has_a_draw_of_its_own() -> None:
    drawn = [x.flatten()[:8] for x in initial(BASE).values() if x.std() > 0]
    drawn += [x.flatten()[:8] for x in initial(BASE.replace(init_seed=1)).values() if x.std() > 0]
    normalised = {tuple((x / x.abs().max()).tolist()) for x in drawn}
    assert len(normalised) == len(drawn)


# Batches


@pytest.mark.parametrize("task", TASKS.keys())
def test_lanes_see_the_same_batches(task: str) -> None:
    lane = with_task(BASE, task)
    other = lane.replace(scheme="post", depth=3, width=16, init_seed=7, lr=0.1, optimizer="sgd")
    for step in (0, 1, 19):
        for x, y in zip(make_task(lane).batch(step), make_task(other).batch(step), strict=True):
            assert np.array_equal(x, y)


@pytest.mark.parametrize("task", TASKS.keys())
def test_batches_depend_on_step_and_data_seed_alone(task: str) -> None:
    config = with_task(BASE, task)
    one, two = make_task(config), make_task(config.replace(data_seed=1))
    late = one.batch(5)[0]
    one.batch(0)
    assert np.array_equal(one.batch(5)[0], late)  # not on what was asked before
    assert not np.array_equal(one.batch(5)[0], one.batch(6)[0])
    assert not np.array_equal(one.batch(5)[0], two.batch(5)[0])
