"""Initial values: the table below holds, and lanes are paired bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from crossing_kit import case, pairs
from task_kit import with_task
from torch import Tensor, nn

from normviz import RunConfig
from normviz.catalog import INITS, NORMS, SCHEMES
from normviz.catalog.families import LANGUAGE
from normviz.catalog.scheme import Place, plain
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.init import initialise
from normviz.model.marks import as_is, drawn
from normviz.model.norms import make_norm
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
    "fairseq": {
        "tokens.weight": ("normal", 1.0),
        "positions.weight": ("normal", D**-0.5),
        "head.weight": ("normal", D**-0.5),
        "qkv.weight": ("uniform", (6 / (D + D)) ** 0.5 / 2**0.5),
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


@pytest.mark.slow
def test_schemes_share_their_initial_values() -> None:
    """All that is drawn; gains, and norms that start smaller, are the scheme's own."""
    for scheme, init in pairs(PLAIN, INITS.keys()):
        base = BASE.replace(init=init)
        with case(scheme, init):
            assert_paired(base, base.replace(scheme=scheme))


@pytest.mark.slow
def test_norms_and_other_changes_share_their_initial_values() -> None:
    """Norms with a model without norms, so with each other: it has all that is compared."""
    bare = BASE.replace(scheme="peri", norm="none")
    changes = [
        *({"norm": norm.key} for norm in NORMS if norm.key != "none"),
        {"heads": 8},
        {"lr": 1.0},
    ]
    for change in (*changes, {"depth": 5}, {"qk_norm": "on"}):
        with case(change):
            assert_paired(bare, bare.replace(**change))


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
    ({"scheme": "denseformer"}, -28.807927347),
    ({"scheme": "attnres"}, -13.566309093),
    ({"scheme": "residual_dual"}, -31.290191378),
    ({"scheme": "siamese"}, 22.338865484),
    ({"scheme": "hyper"}, 17.228167186),
    ({"scheme": "mhc"}, -5.588087144),
    ({"scheme": "gtrxl"}, -29.824872187),
    ({"scheme": "gtrxl", "init": "gpt2"}, -2.514775717),
    ({"scheme": "sigma_reparam"}, -10.247216406),
    ({"norm": "preaffine", "scheme": "peri"}, -10.111830998),
    ({"init": "xavier", "scheme": "post"}, -22.542821687),
    ({"init": "xavier", "scheme": "tfixup"}, -1.499266490),
    ({"init": "fairseq", "scheme": "post"}, -21.868848111),
    ({"init": "fairseq", "scheme": "tfixup"}, -2.489241009),
    ({"init": "torch", "scheme": "post"}, -14.252938761),
    ({"init": "torch", "scheme": "tfixup"}, 0.820925982),
    ({"init": "gpt2", "scheme": "post"}, 0.540396055),
    ({"init": "gpt2", "scheme": "tfixup"}, -0.487496707),
    ({"init": "gpt2_width", "scheme": "post"}, -18.576088906),
    ({"init": "gpt2_width", "scheme": "tfixup"}, 2.554253986),
    ({"scheme": "ngpt"}, -27.974089068),
    ({"scheme": "deepnorm"}, -6.725085804),
    ({"scheme": "rezero"}, -16.270196934),
    ({"scheme": "gpas"}, -34.940721259),
    ({"scheme": "normformer"}, 19.115366200),
    ({"scheme": "admin"}, -13.242373840),
    ({"scheme": "lns"}, -28.603066469),
    ({"norm": "seednorm", "scheme": "peri"}, 8.437998855),
    ({"norm": "rmsnorm_1p", "scheme": "peri"}, -33.302470869),
    ({"norm": "gatednorm", "scheme": "peri"}, 11.142256937),
    ({"norm": "gatednorm", "init": "torch"}, 6.083193319),
    ({"norm": "gatednorm", "init": "gpt2"}, 3.161321965),
    ({"norm": "layernorm_1p", "scheme": "peri"}, -8.140601307),
    ({"qk_norm": "layernorm", "v_norm": "on"}, -40.819405191),
    ({"norm": "derf", "scheme": "peri"}, -12.560502181),
    ({"norm": "scalenorm", "scheme": "peri"}, 2.536593484),
    ({"qk_norm": "cosine", "v_norm": "on"}, 30.814747675),
    ({"qk_norm": "full", "v_norm": "on"}, -40.819405191),
    ({"qk_norm": "head", "v_norm": "on"}, 16.611501633),
    ({"scheme": "post", "init": "torch", "init_seed": 7}, -25.704233951),
]
"""Every kind of stream, initialisation and learned norm, and the checksum of its initial values."""


def test_initial_values_stay_as_they_were() -> None:
    """Stored and shipped runs began from them. A hash would differ between processors."""
    for change, checksum in PINNED:
        values = initial(RunConfig(depth=3, width=16, heads=2, seq_len=8).replace(**change))
        flat = torch.cat([values[name].flatten() for name in sorted(values)]).double()
        weights = torch.arange(len(flat), dtype=torch.float64).cos()
        with case(change):
            assert float(flat @ weights) == pytest.approx(checksum, rel=1e-6)


def test_a_parameter_without_a_mark_is_an_error() -> None:
    """Also where its name contains "gate", "gain" or "norm"."""
    model = build(BASE, V)
    model.blocks[0].register_module("normal", nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"^blocks\.0\.normal\.weight has no initial value: mark"):
        initialise(model, BASE)


def test_a_mark_decides_and_the_name_does_not() -> None:
    """A kept parameter starts as it was made, a drawn one by its role's rule, whatever they are called."""
    model = build(BASE, V)
    model.register_module("plain", as_is(nn.Linear(D, D)))
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


def test_a_norm_that_starts_smaller_has_that_much_smaller_outputs() -> None:
    """But where its gates depend on the scale too."""
    x = torch.randn(3, 5, D, generator=torch.Generator().manual_seed(0))
    for norm in NORMS:
        usual, smaller = make_norm(norm.key, D), started(make_norm(norm.key, D), 0.5)
        if norm.key != "gatednorm":
            with case(norm.key):
                torch.testing.assert_close(smaller(x), 0.5 * usual(x))


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


@pytest.mark.parametrize("task", LANGUAGE)
def test_lanes_see_the_same_batches(task: str) -> None:
    lane = with_task(BASE, task)
    other = lane.replace(scheme="post", depth=3, width=16, init_seed=7, lr=0.1, optimizer="sgd")
    for step in (0, 1, 19):
        for x, y in zip(make_task(lane).batch(step), make_task(other).batch(step), strict=True):
            assert np.array_equal(x, y)


@pytest.mark.parametrize("task", LANGUAGE)
def test_batches_depend_on_step_and_data_seed_alone(task: str) -> None:
    config = with_task(BASE, task)
    one, two = make_task(config), make_task(config.replace(data_seed=1))
    late = one.batch(5)[0]
    one.batch(0)
    assert np.array_equal(one.batch(5)[0], late)  # not on what was asked before
    assert not np.array_equal(one.batch(5)[0], one.batch(6)[0])
    assert not np.array_equal(one.batch(5)[0], two.batch(5)[0])
