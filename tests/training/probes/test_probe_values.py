"""Each probe equals a slow twin that uses plain autograd and the twin of the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from crossing_kit import case
from peek import model_seen, steps_of
from task_kit import with_task
from torch import Tensor
from twin import FORMULAS, RUNS, Trace, forward

from normviz import RunConfig
from normviz.catalog import FAMILIES, NORMS, PROBES, QK_NORMS, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.model.data import make_task
from normviz.model.init import initialise
from normviz.model.transformer import Transformer
from normviz.training import loop
from normviz.training.engine import Choice
from normviz.training.events import Step
from normviz.training.probes import Recorder, StepTensors
from normviz.training.probes.instruments import attention, attention_reductions

TOLERANCE = 2e-5
"""Relative difference allowed between the probes (float32) and their twins (float64)."""

ROWS = {key: i for i, key in enumerate(PROBES.keys())}
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=8, batch=4, steps=1)
# It divides by one channel of 16: float32 can't follow float64 there. test_model compares it in float64.
ILL_CONDITIONED = {"prmsnorm"}
# Clipping, decay and a large step: probes must see gradients before the first, updates after all.
LARGE_STEP = SMALL.replace(optimizer="sgd", lr=1.0, momentum=0.5, clip=0.2, weight_decay=0.01)


@dataclass
class Scene:
    """What the twins look at, all in float64: parameters, their gradients, and a traced forward."""

    config: RunConfig
    params: dict[str, Tensor]
    grads: dict[str, Tensor]
    hidden: tuple[Tensor, ...]
    trace: Trace

    def block(self, b: int, of: dict[str, Tensor], part: str = "") -> list[Tensor]:
        """The tensors of block b = 1..L whose names end in `part`."""
        prefix = f"blocks.{b - 1}."
        return [x for name, x in of.items() if name.startswith(prefix) and name.endswith(part)]

    def each_block(self, number: Callable[[int], float]) -> list[float]:
        return [number(b) for b in range(1, self.config.depth + 1)]


def size(tensors: list[Tensor]) -> float:
    """L2 norm of all numbers together."""
    return math.sqrt(sum(float((x * x).sum()) for x in tensors))


def rms(x: Tensor) -> float:
    return math.sqrt(float((x * x).mean()))


def grad_block(scene: Scene) -> list[float]:
    return scene.each_block(lambda b: size(scene.block(b, scene.grads)))


def grad_w2(scene: Scene) -> list[float]:
    return scene.each_block(lambda b: size(scene.block(b, scene.grads, "down.weight")))


def grad_qk(scene: Scene) -> list[float]:
    def of(b: int) -> float:
        (fused,) = scene.block(b, scene.grads, "qkv.weight")
        query, key, _ = fused.chunk(3)
        return size([query, key])

    return scene.each_block(of)


def grad_hidden(scene: Scene) -> list[float]:
    return [size([g]) for g in scene.hidden]


def stream_rms(scene: Scene) -> list[float]:
    return [rms(x) for x in scene.trace.stream]


def branch_ratio(scene: Scene) -> list[float]:
    ratios = [rms(f) / rms(x) for f, x in zip(scene.trace.branch, scene.trace.skip, strict=True)]
    return [(at + ff) / 2 for at, ff in zip(ratios[::2], ratios[1::2], strict=True)]


def update_ratio(scene: Scene) -> list[float]:
    """Global clipping, and one step of PyTorch's optimizer on every parameter by itself."""
    c = scene.config
    after = {name: p.clone().requires_grad_() for name, p in scene.params.items()}
    for name, p in after.items():
        p.grad = scene.grads[name].clone()
    if c.clip is not None:
        torch.nn.utils.clip_grad_norm_(after.values(), c.clip)
    if c.optimizer == "sgd":
        torch.optim.SGD(after.values(), c.lr, c.momentum, weight_decay=c.weight_decay).step()
    else:
        torch.optim.AdamW(after.values(), c.lr, weight_decay=c.weight_decay).step()
    step = {name: after[name].detach() - p for name, p in scene.params.items()}
    params = scene.params
    return scene.each_block(lambda b: size(scene.block(b, step)) / size(scene.block(b, params)))


def mean_cosine(x: Tensor) -> float:
    cosines = torch.cosine_similarity(x[:, :, None], x[:, None], dim=-1, eps=0.0)
    return float(cosines[:, ~torch.eye(x.shape[1], dtype=torch.bool)].mean())


def token_cosine(scene: Scene) -> list[float]:
    return [mean_cosine(x) for x in scene.trace.stream]


def stream_max(scene: Scene) -> list[float]:
    return [float(x.abs().max()) for x in scene.trace.stream]


def stream_max_ratio(scene: Scene) -> list[float]:
    def ratio(x: Tensor) -> float:
        sizes = sorted(x.abs().flatten().tolist())
        return sizes[-1] / sizes[(len(sizes) - 1) // 2]

    return [ratio(x) for x in scene.trace.stream]


def stream_kurtosis(scene: Scene) -> list[float]:
    def kurtosis(x: Tensor) -> float:
        s = [rms(x[..., channel]) for channel in range(x.shape[-1])]
        second, fourth = (sum(one**k for one in s) / len(s) for k in (2, 4))
        return fourth / second**2

    return [kurtosis(x) for x in scene.trace.stream]


def attn_sink(scene: Scene) -> list[float]:
    def on_first(p: Tensor) -> float:
        later = [p[..., i, 0].mean() for i in range(1, p.shape[2])]
        return float(torch.stack(later).mean())

    return [on_first(p) for p in scene.trace.weights]


def of_both(values: list[float]) -> list[float]:
    """The mean of attention and FFN of each block."""
    return [(at + ff) / 2 for at, ff in zip(values[::2], values[1::2], strict=True)]


def branch_cosine(scene: Scene) -> list[float]:
    both = zip(scene.trace.skip, scene.trace.branch, strict=True)
    return of_both([float(torch.cosine_similarity(x, f, dim=-1).mean()) for x, f in both])


def branch_in_rms(scene: Scene) -> list[float]:
    return of_both([rms(z) for z in scene.trace.reads])


def sum_rms(scene: Scene) -> list[float]:
    both = zip(scene.trace.skip, scene.trace.branch, strict=True)
    return of_both([rms(x + f) for x, f in both])


def norm_drift(scene: Scene) -> list[float]:
    """At the first step; `test_norm_drift_...` compares later ones."""
    return scene.each_block(lambda _: 0.0)


def normed_rms(scene: Scene) -> list[float]:
    return [rms(x.chunk(2, -1)[0]) for x in scene.trace.stream]


def summed_rms(scene: Scene) -> list[float]:
    return [rms(x.chunk(2, -1)[1]) for x in scene.trace.stream]


def normed_grad(scene: Scene) -> list[float]:
    return [size([g.chunk(2, -1)[0]]) for g in scene.hidden]


def summed_grad(scene: Scene) -> list[float]:
    return [size([g.chunk(2, -1)[1]]) for g in scene.hidden]


def normed_cosine(scene: Scene) -> list[float]:
    return [mean_cosine(x.chunk(2, -1)[0]) for x in scene.trace.stream]


def summed_cosine(scene: Scene) -> list[float]:
    return [mean_cosine(x.chunk(2, -1)[1]) for x in scene.trace.stream]


def attn_logit_max(scene: Scene) -> list[float]:
    return [float(z.tril().abs().max()) for z in scene.trace.logits]


def attn_entropy(scene: Scene) -> list[float]:
    def mean_share(p: Tensor) -> float:
        shares = [
            -(row * row.log()).sum(-1).mean() / math.log(i + 1)
            for i in range(1, p.shape[2])
            for row in [p[:, :, i, : i + 1]]
        ]
        return float(torch.stack(shares).mean())

    return [mean_share(p) for p in scene.trace.weights]


TWINS = {
    twin.__name__: twin
    for twin in (
        grad_block, grad_w2, grad_qk, grad_hidden, stream_rms,
        branch_ratio, update_ratio, token_cosine, attn_logit_max, attn_entropy,
        stream_max, stream_max_ratio, stream_kurtosis, attn_sink, branch_cosine, branch_in_rms,
        sum_rms, norm_drift, normed_rms, normed_grad, normed_cosine, summed_rms, summed_grad,
        summed_cosine,
    )
}  # fmt: skip


def measured(config: RunConfig) -> tuple[np.ndarray, Scene]:
    """One step: what the probes said, and the scene for the twins."""
    params: dict[str, Tensor] = {}
    with model_seen(noise=0.1) as models:
        events = loop.train(config)
        next(events)
        named = models[0].named_parameters()
        params = {name: p.detach().double().requires_grad_() for name, p in named}
        step = next(events)
    assert isinstance(step, Step)
    assert step.layers is not None
    batch = make_task(config).tensors(0, torch.device("cpu"))
    trace = forward(config, params, *batch, share=0.0)
    assert step.loss == pytest.approx(trace.loss.item(), rel=TOLERANCE)
    hidden = torch.autograd.grad(trace.loss, trace.stream, retain_graph=True)
    grads = torch.autograd.grad(trace.loss, list(params.values()))
    plain = {name: p.detach() for name, p in params.items()}
    return step.layers, Scene(config, plain, dict(zip(params, grads, strict=True)), hidden, trace)


def assert_equal_twins(
    config: RunConfig, keys: Sequence[str], tolerance: float = TOLERANCE
) -> None:
    layers, scene = measured(config)
    for key in keys:
        with torch.no_grad():
            expected = TWINS[key](scene)
        # A cosine near 0 is a difference of numbers near 1; elsewhere small numbers stay exact.
        absolute = 1e-7 if key.endswith("cosine") else 0.0
        seen = layers[ROWS[key], PROBES[key].first_layer :]
        with case(key):
            np.testing.assert_allclose(seen, expected, tolerance, absolute)


@pytest.mark.slow
def test_every_probe_equals_its_twin() -> None:
    for scheme in (*FORMULAS, *RUNS):
        with case(scheme):
            config = LARGE_STEP.replace(scheme=scheme)
            assert_equal_twins(config, recorded_by(SCHEMES[scheme].streams))


@pytest.mark.slow
def test_every_probe_equals_its_twin_in_other_settings() -> None:
    changes: list[dict[str, Any]] = [{"v_norm": "on"}, {"activation": "gelu"}, {"heads": 4}]
    changes += [{"norm": norm.key} for norm in NORMS if norm.key not in ILL_CONDITIONED]
    changes += [{"qk_norm": choice.key} for choice in QK_NORMS]
    for change in changes:
        with case(change):
            assert_equal_twins(LARGE_STEP.replace(scheme="peri", **change), recorded_by("one"))
    for task in FAMILIES["decoder"].tasks:
        with case(task):
            config = with_task(LARGE_STEP, task).replace(scheme="peri")
            assert_equal_twins(config, recorded_by("one"))


def test_update_of_adamw_equals_its_twin() -> None:
    """Wider: the gradient of a key bias is rounding error, and AdamW makes full steps of it."""
    for scheme in ("pre", "gtrxl", "hyper", "lambda_skip", "sigma_reparam"):
        with case(scheme):
            assert_equal_twins(SMALL.replace(scheme=scheme, lr=0.1), ["update_ratio"], 5e-3)


def test_token_cosine_is_exact_where_tokens_nearly_coincide() -> None:
    """1 - cosine of about 1e-8: in float32 the cosine itself would be 1."""
    models: list[Transformer] = []

    def nearly_equal(model: Transformer, config: RunConfig) -> None:
        initialise(model, config)
        with torch.no_grad():
            model.positions.weight.zero_()
            model.tokens.weight.mul_(1e-4).add_(1.0)
        models.append(model)

    with patch.object(loop, "initialise", nearly_equal):
        (step,) = steps_of(SMALL.replace(steps=0))
    tokens = torch.from_numpy(make_task(SMALL).batch(0)[0])
    x = models[0].tokens.weight.detach().double()[tokens]
    u = x / x.norm(dim=-1, keepdim=True)
    gaps = ((u[:, :, None] - u[:, None]) ** 2).sum(-1) / 2  # 1 - cosine of each pair
    T = x.shape[1]
    expected = float(gaps.sum() / (len(x) * T * (T - 1)))
    assert 1e-9 < expected < 1e-7
    assert step.layers is not None
    assert 1 - step.layers[ROWS["token_cosine"], 0] == pytest.approx(expected, abs=1e-9, rel=0.01)


def test_entropy_is_exact_at_logits_of_a_million() -> None:
    """The regime of stacks without norms: a difference of large numbers would leave 0 to 1."""
    T = 8
    z = torch.randn(6, T, T, generator=torch.Generator().manual_seed(0)) * 3e6
    z[:3] *= 1e-6  # heads of ordinary size beside them
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    p = z.masked_fill(hidden, -1e30).softmax(-1)
    of = attention_reductions()
    watch = Recorder((), (), of)
    watch("attn_logits", 1, z.masked_fill(hidden, -1e30))
    watch("attn_weights", 1, p)
    seen = StepTensors(SMALL, None, watch, None)
    _, entropy, _ = attention(seen)
    q = p.double()
    exact = -(q * q.clamp_min(1e-300).log()).sum(-1)[:, 1:] / torch.arange(2, T + 1).log()
    assert float(entropy[0]) == pytest.approx(float(exact.mean()), rel=1e-5)


@pytest.mark.parametrize("engine", ["tape", "eager"])
@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, ("weight",)),
        ({"norm": "rmsnorm_1p", "qk_norm": "head"}, ("weight", "offset")),
        ({"norm": "scalenorm", "scheme": "peri"}, ("scale",)),
        ({"norm": "dyt", "qk_norm": "full"}, ("weight",)),
        ({"scheme": "mixln", "depth": 6}, ("weight",)),
        ({"norm": "layernorm_nonparam"}, ()),
        ({"scheme": "none"}, ()),
    ],
    ids=str,
)
def test_norm_drift_is_the_rms_of_all_changes(
    change: dict[str, object], names: tuple[str, ...], engine: Choice
) -> None:
    """By the names of the parameters, where the probe goes by the classes of the modules."""
    config = SMALL.replace(**{"steps": 4, "lr": 0.1, **change})

    def scales(model: Transformer) -> list[Tensor]:
        of_blocks = [
            [
                p.detach().clone().flatten()
                for name, p in block.named_parameters()
                if name.rpartition(".")[2] in names and ("norm" in name) and "gain" not in name
            ]
            for block in model.blocks
        ]
        return [torch.cat([torch.zeros(0), *block]) for block in of_blocks]

    with model_seen() as models:
        events = loop.train(config, engine=engine)
        next(events)
        before, found = scales(models[0]), list[np.ndarray]()
        for _ in range(4):
            after = scales(models[0])
            step = next(events)
            assert isinstance(step, Step) and step.layers is not None
            found.append(step.layers[ROWS["norm_drift"], 1:])
        changes = [(b - a).double() for a, b in zip(before, after, strict=True)]
    expected = [rms(d) if len(d) else 0.0 for d in changes]
    assert (found[0] == 0.0).all()
    assert bool(names) == all(expected)
    np.testing.assert_allclose(found[3], expected, rtol=1e-5)
