"""Probes are inert, complete and correct: each against a slow twin that uses plain autograd."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor
from twin import Trace, forward

from normviz import RunConfig, training
from normviz.catalog import NORMS, PROBES, SCHEMES, TASKS
from normviz.data import make_task
from normviz.events import Step
from normviz.nn.init import initialise
from normviz.nn.sites import SITES
from normviz.nn.transformer import Transformer
from normviz.probes import Watch

TOLERANCE = 2e-5
"""Relative difference allowed between the probes (float32) and their twins (float64)."""

ALL_SCHEMES = pytest.mark.parametrize("scheme", SCHEMES.keys())
ROWS = {key: i for i, key in enumerate(PROBES.keys())}
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=8, batch=4, steps=1)
# Clipping, decay and a large step: probes must see gradients before the first, updates after all.
LARGE_STEP = SMALL.replace(optimizer="sgd", lr=1.0, momentum=0.5, clip=0.2, weight_decay=0.01)


@contextmanager
def model_seen(noise: float = 0.0) -> Iterator[list[Transformer]]:
    """Lets a test see the model that `train` builds, with noise on its initial values."""
    seen: list[Transformer] = []

    def begin(model: Transformer, config: RunConfig) -> None:
        initialise(model, config)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(noise * torch.randn(p.shape, generator=generator))
        seen.append(model)

    with patch.object(training, "initialise", begin):
        yield seen


def steps_of(config: RunConfig, record: Collection[int] | None = None) -> list[Step]:
    return [event for event in training.train(config, record=record) if isinstance(event, Step)]


# Inert


def outcome(config: RunConfig, record: Collection[int]) -> tuple[list[float], list[Tensor]]:
    """Losses and gradient norms of a run, and its final parameters."""
    with model_seen() as models:
        steps = steps_of(config, record)
    numbers = [x for step in steps for x in (step.loss, step.grad_norm)]
    return numbers, [p.detach().clone() for p in models[0].parameters()]


@pytest.mark.parametrize("extras", ["plain", "qk_norm, dropout, clip"])
@ALL_SCHEMES
def test_inert(scheme: str, extras: str) -> None:
    config = SMALL.replace(scheme=scheme, steps=6, lr=0.01)
    if extras != "plain":
        config = config.replace(qk_norm="on", dropout=0.1, clip=0.5)
    watched, unwatched = outcome(config, range(6)), outcome(config, ())
    assert watched[0] == unwatched[0]
    assert all(map(torch.equal, watched[1], unwatched[1]))


def test_recording_some_steps_gives_the_same_numbers_there() -> None:
    config = SMALL.replace(steps=6)
    every, some = steps_of(config, range(6)), steps_of(config, (1, 4))
    assert [step.step for step in some if step.layers is not None] == [1, 4]
    for at in (1, 4):
        assert np.array_equal(some[at].layers, every[at].layers, equal_nan=True)


# Complete


@pytest.mark.parametrize("task", TASKS.keys())
@ALL_SCHEMES
def test_every_probe_speaks_at_every_layer(scheme: str, task: str) -> None:
    for step in steps_of(SMALL.replace(scheme=scheme, task=task, steps=3, init="torch")):
        assert step.layers is not None
        assert step.layers.shape == (len(PROBES), SMALL.depth + 1)
        for probe, row in zip(PROBES, step.layers, strict=True):
            assert np.isnan(row[: probe.first_layer]).all(), probe.key
            assert np.isfinite(row[probe.first_layer :]).all(), probe.key


@ALL_SCHEMES
def test_without_steps_all_but_the_update_is_measured(scheme: str) -> None:
    (step,) = steps_of(SMALL.replace(scheme=scheme, steps=0))
    (first,) = steps_of(SMALL.replace(scheme=scheme, steps=1))
    assert step.layers is not None
    assert first.layers is not None
    for key, row in ROWS.items():
        if key == "update_ratio":
            assert np.isnan(step.layers[row]).all()
        else:
            assert np.array_equal(step.layers[row], first.layers[row], equal_nan=True)


# Correct


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
    """Global clipping, then one step of PyTorch's optimizer on every parameter by itself."""
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
    return scene.each_block(lambda b: size(scene.block(b, step)) / size(scene.block(b, scene.params)))


def token_cosine(scene: Scene) -> list[float]:
    def mean_cosine(x: Tensor) -> float:
        B, T, _ = x.shape
        pairs = [(b, i, j) for b in range(B) for i in range(T) for j in range(T) if i != j]
        cosines = [torch.cosine_similarity(x[b, i], x[b, j], dim=0, eps=0.0) for b, i, j in pairs]
        return float(torch.stack(cosines).mean())

    return [mean_cosine(x) for x in scene.trace.stream]


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
    )
}  # fmt: skip


@cache
def measured(config: RunConfig) -> tuple[np.ndarray, Scene]:
    """One step: what the probes said, and the scene for the twins."""
    params: dict[str, Tensor] = {}
    with model_seen(noise=0.1) as models:
        events = training.train(config)
        next(events)
        named = models[0].named_parameters()
        params = {name: p.detach().double().requires_grad_() for name, p in named}
        step = next(events)
    assert isinstance(step, Step)
    assert step.layers is not None
    trace = forward(config, params, *make_task(config).tensors(0, torch.device("cpu")))
    assert step.loss == pytest.approx(float(trace.loss), rel=TOLERANCE)
    hidden = torch.autograd.grad(trace.loss, trace.stream, retain_graph=True)
    grads = torch.autograd.grad(trace.loss, list(params.values()))
    plain = {name: p.detach() for name, p in params.items()}
    return step.layers, Scene(config, plain, dict(zip(params, grads, strict=True)), hidden, trace)


def assert_equals_twin(config: RunConfig, key: str, tolerance: float = TOLERANCE) -> None:
    layers, scene = measured(config)
    with torch.no_grad():
        expected = TWINS[key](scene)
    np.testing.assert_allclose(layers[ROWS[key], PROBES[key].first_layer :], expected, tolerance)


@pytest.mark.parametrize("key", PROBES.keys())
@ALL_SCHEMES
def test_equals_its_twin(scheme: str, key: str) -> None:
    assert_equals_twin(LARGE_STEP.replace(scheme=scheme), key)


@pytest.mark.parametrize("key", PROBES.keys())
@pytest.mark.parametrize(
    "change",
    [{"norm": norm} for norm in NORMS.keys()]
    + [{"task": task} for task in TASKS.keys()]
    + [{"qk_norm": "on"}, {"activation": "gelu"}, {"heads": 4}],
    ids=str,
)
def test_equals_its_twin_in_other_settings(change: dict[str, str], key: str) -> None:
    assert_equals_twin(LARGE_STEP.replace(scheme="peri", **change), key)


@ALL_SCHEMES
def test_update_of_adamw_equals_its_twin(scheme: str) -> None:
    """Wider: a key bias has no gradient but rounding errors, and AdamW makes full steps of those."""
    assert_equals_twin(SMALL.replace(scheme=scheme, lr=0.1), "update_ratio", 5e-3)


def test_token_cosine_is_exact_where_tokens_nearly_coincide() -> None:
    """1 - cosine of about 1e-8: in float32 the cosine itself would be 1."""
    models: list[Transformer] = []

    def nearly_equal(model: Transformer, config: RunConfig) -> None:
        initialise(model, config)
        with torch.no_grad():
            model.positions.weight.zero_()
            model.tokens.weight.mul_(1e-4).add_(1.0)
        models.append(model)

    with patch.object(training, "initialise", nearly_equal):
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


# Sites


class Nudge:
    """A tap that adds a zero of its own at each place: the zero's gradient is the true gradient."""

    def __init__(self) -> None:
        self.zeros: dict[tuple[str, int], Tensor] = {}

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        zero = torch.zeros_like(x, requires_grad=True)
        self.zeros[site, index] = zero
        return x + zero


SUBLAYER_SITES = ("stream_in", "skip", "branch_in", "branch_out", "stream_out")


@ALL_SCHEMES
def test_gradients_at_sublayer_sites_do_not_add_up(scheme: str) -> None:
    """In Post-LN one tensor is stream_in, skip and branch_in. Tensor hooks would see the sum of
    their gradients there, and only there, so they would invent a difference between placements."""
    config = SMALL.replace(scheme=scheme)
    with model_seen(noise=0.1) as models:
        next(training.train(config))
    model, (tokens, targets) = models[0], make_task(config).tensors(0, torch.device("cpu"))
    nudge, watch = Nudge(), Watch(SUBLAYER_SITES, SUBLAYER_SITES)
    model.loss(tokens, targets, nudge).backward()
    model.loss(tokens, targets, watch).backward()
    for site in SUBLAYER_SITES:
        truth = [nudge.zeros[site, i].grad for i in range(2 * config.depth)]
        seen = watch.seen[site]
        assert len(seen) == len(truth)
        for x, gradient in zip(seen, truth, strict=True):
            torch.testing.assert_close(x.grad, gradient, rtol=1e-5, atol=1e-7)


def test_the_sites_are_pinned() -> None:
    """Probes, stored runs and the page name these; a change is a change of an interface."""
    assert SITES == (
        "stream", "stream_in", "skip", "branch_in", "branch_out", "stream_out",
        "attn_logits", "attn_weights", "final",
    )  # fmt: skip


@ALL_SCHEMES
def test_every_scheme_passes_every_site_in_order(scheme: str) -> None:
    config = SMALL.replace(scheme=scheme)
    with model_seen() as models:
        next(training.train(config))
    nudge, L = Nudge(), config.depth
    models[0](torch.from_numpy(make_task(config).batch(0)[0]), nudge)
    places: dict[str, list[int]] = {site: [] for site in SITES}
    for site, index in nudge.zeros:
        places[site].append(index)
    blocks = list(range(1, L + 1))
    assert places == {
        "stream": [0, *blocks],
        **{site: list(range(2 * L)) for site in SUBLAYER_SITES},
        "attn_logits": blocks,
        "attn_weights": blocks,
        "final": [0],
    }
