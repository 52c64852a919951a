"""What every norm of the registry keeps: shape, formula, gradient, declared invariances, warnings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from crossing_kit import case
from norm_twins import normed
from torch import Tensor, nn

from normviz import RunConfig
from normviz.catalog import NORMS
from normviz.catalog.inits import OF_NORMS
from normviz.catalog.norm import NormRecord
from normviz.model.marks import mark_of
from normviz.model.norms import make_norm
from normviz.model.norms.group import groups_of
from normviz.model.norms.power import WARMUP, PowerNorm
from normviz.model.norms.taper import TaperNorm
from normviz.training.events import Started
from normviz.training.loop import begin, train

ALL_NORMS = pytest.mark.parametrize("norm", NORMS, ids=lambda norm: norm.key)
D = 16


def shaken(key: str, width: int = D) -> nn.Module:
    """A norm in float64 with noise on every parameter, so that no scale or shift is trivial. One that
    changes during a run is in the middle of it."""
    norm, generator = make_norm(key, width, steps=20).double(), torch.Generator().manual_seed(1)
    if isinstance(norm, TaperNorm):
        for _ in range(3):
            norm(tokens(4, width))
    with torch.no_grad():
        for p in norm.parameters():
            start = torch.zeros_like(p) if mark_of(p) == OF_NORMS else p  # what is drawn is not yet
            p.copy_(start + 0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return norm


def tokens(*shape: int, seed: int = 0) -> Tensor:
    """Not centred, and another size in every channel."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, dtype=torch.float64, generator=generator)
    return (0.5 + x) * torch.linspace(0.5, 2, shape[-1], dtype=torch.float64)


def gap(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().abs().max())


@ALL_NORMS
def test_equals_its_formula_and_so_does_its_gradient(norm: NormRecord) -> None:
    """At an ordinary size and at two about eps, where eps must be right."""
    for shape, size in product([(3, D), (2, 5, 4), (2, 3, 4, 15)], [1.0, 1e-7, 1e-14]):
        with case(shape, size):
            assert_is_its_formula(norm, shape, size)


def assert_is_its_formula(norm: NormRecord, shape: tuple[int, ...], size: float) -> None:
    module, x = shaken(norm.key, shape[-1]), (size * tokens(*shape)).requires_grad_()
    params = dict(module.named_parameters())
    ours = module(x)
    theirs = normed(norm.key, x, params | dict(module.named_buffers()))
    assert ours.shape == x.shape
    assert ours.dtype == torch.float64
    toward = tokens(*shape, seed=2)
    inputs = [x, *params.values()]
    mine = torch.autograd.grad(ours, inputs, toward)
    plain = torch.autograd.grad(theirs, inputs, toward)
    for a, b in zip((ours, *mine), (theirs, *plain), strict=True):
        assert gap(a, b) < 1e-10 * max(1.0, float(b.detach().abs().max()))


@ALL_NORMS
def test_learns_what_its_record_says(norm: NormRecord) -> None:
    found = {name: (tuple(p.shape), p) for name, p in make_norm(norm.key, D).named_parameters()}
    assert set(found) == {learned.name for learned in norm.learns}
    for learned in norm.learns:
        shape, p = found[learned.name]
        assert p.numel() == learned.entries(D)
        if learned.rank:
            assert sorted(shape) == sorted((learned.rank, D))
            assert mark_of(p) == OF_NORMS
        else:
            assert shape == ((1,) if learned.single else (D,))
            assert (p == learned.value(D)).all()
        assert learned.symbol in norm.formula


@ALL_NORMS
@pytest.mark.parametrize("kind", ["shift", "scale"])
def test_declared_invariances_hold_and_no_others_do(norm: NormRecord, kind: str) -> None:
    declared = norm.shift_invariant if kind == "shift" else norm.scale_invariant
    size = 1e4 if declared else 1.0  # so large that eps is nothing; so small that no tanh saturates
    x = size * tokens(2, 5, D)
    y = x + 0.7 * size if kind == "shift" else 3 * x
    result = shaken(norm.key)(x)
    difference = gap(shaken(norm.key)(y), result) / max(1.0, float(result.detach().abs().max()))
    assert (difference < 1e-8) if declared else (difference > 1e-2)


@ALL_NORMS
def test_bears_zeros(norm: NormRecord) -> None:
    module, zero = make_norm(norm.key, D), torch.zeros(2, 3, D, requires_grad=True)
    y = module(zero)
    y.sum().backward()
    assert torch.equal(y, torch.zeros_like(y))
    assert zero.grad is not None
    assert zero.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


@ALL_NORMS
def test_warns_if_and_only_if_tokens_see_each_other(norm: NormRecord) -> None:
    x = tokens(2, 5, D)
    other = x.clone()
    other[1:], other[:, 1:] = tokens(1, 5, D, seed=3), tokens(2, 4, D, seed=4)
    sees = not torch.equal(shaken(norm.key)(x)[0, 0], shaken(norm.key)(other)[0, 0])
    assert sees == bool(norm.warning)
    assert norm.warning == "" or norm.warning.endswith(".")


@pytest.mark.parametrize(("width", "groups"), [(4, 2), (5, 1), (6, 2), (8, 4), (32, 4), (33, 1)])
def test_groups_divide_the_width(width: int, groups: int) -> None:
    assert groups_of(width) == groups


@pytest.mark.parametrize("key", ["batchnorm", "powernorm"])
def test_training_and_evaluation_differ(key: str) -> None:
    norm, x = shaken(key), tokens(2, 5, D, seed=1)
    norm(tokens(2, 5, D))
    evaluated = norm.eval()(x)
    assert gap(shaken(key)(x), evaluated) > 1e-2
    assert torch.equal(norm(x), evaluated)  # evaluation moves nothing


def test_powernorm_pass_by_pass() -> None:
    """Through warm-up and beyond: both running averages, in numpy, by the authors' code."""
    norm, eps = PowerNorm(4, 1e-5).double(), 1e-5
    power, lean, keep = np.ones(4), np.zeros(4), 0.9
    for t in range(1, WARMUP + 6):
        x, g = tokens(6, 4, seed=t).requires_grad_(), tokens(6, 4, seed=100 + t)
        y = norm(x)
        x_hat = x.detach().numpy().reshape(6, 2, 2)
        x_hat = (x_hat / np.sqrt((x_hat**2).mean(-1, keepdims=True) + eps)).reshape(6, 4)
        own = (x_hat**2).mean(0)
        z = x_hat / np.sqrt((own if t <= WARMUP else power) + eps)
        np.testing.assert_allclose(y.detach().numpy(), z, rtol=1e-12)
        if t < WARMUP:
            power = power * (t - 1) / t + own / t
        power = keep * power + (1 - keep) * own

        # Past the grouped RMSNorm, whose gradient is ordinary.
        leant = g.numpy() - (1 - keep) * lean * z
        lean = lean + (leant * z).mean(0)
        through = tokens(6, 4, seed=t).requires_grad_()
        grouped = nn.functional.rms_norm(through.view(6, 2, 2), (2,), eps=eps).flatten(1)
        grouped.backward(torch.from_numpy(leant / np.sqrt(own + eps)))
        y.backward(g)
        assert through.grad is not None
        np.testing.assert_allclose(x.grad, through.grad, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(norm.power.numpy(), power, rtol=1e-12)
        np.testing.assert_allclose(norm.lean.numpy(), lean, rtol=1e-12, atol=1e-14)


def test_tapernorm_pass_by_pass() -> None:
    """A run of 40 steps: what it measures in two of them, and the gate to its end, by numpy."""
    norm, eps, generator = TaperNorm(4, 1e-6, 40).double(), 1e-6, torch.Generator().manual_seed(5)
    means, factor, gate = np.zeros((2, 2)), 1.0, 1.0
    for t in range(1, 25):
        with torch.no_grad():
            for p in norm.parameters():
                p.add_(0.1 * torch.randn(4, generator=generator))
        gamma, x = norm.weight.detach().numpy().copy(), tokens(6, 4, seed=t)
        h = x.numpy()
        r = np.sqrt((h**2).mean(-1) + eps)
        if t <= 2:  # 5 % of the run
            squares = ((gamma * h) ** 2).sum(-1)
            means[t - 1] = (squares / r).mean(), squares.mean()
        tapered = gamma if t == 3 else norm.tapered.detach().numpy().copy()
        if t >= 3:
            first, second = means
            (top, under), gate = 0.99 * first + second, max(0.0, np.cos(np.pi * (t - 2) / 28) ** 2)
            factor, gate = top / under, gate if t < 16 else 0.0  # 40 % of the run
        y = norm(x)
        wanted = gate * gamma * h / r[:, None] + (1 - gate) * factor * tapered * h
        np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-9, atol=1e-12)
        assert torch.equal(
            norm.eval()(x), y
        )  # evaluation, and a pass without gradients, are no step
        with torch.no_grad():
            assert torch.equal(norm.train()(x), y)
    assert gate == 0.0
    g = torch.autograd.grad(norm(x).sum(), [norm.weight, norm.tapered])
    assert float(g[0].abs().max()) == 0.0 < float(g[1].abs().min())


def test_the_factor_of_tapernorm_is_the_best_in_least_squares() -> None:
    norm, x = TaperNorm(D, 1e-6, 20).double(), tokens(50, D)
    norm(x)
    norm(x)  # the factor was set from the first pass
    aim, near = nn.functional.rms_norm(x, (D,), eps=1e-6).flatten(), x.flatten()
    assert float(norm.factor) == pytest.approx(float(aim @ near / (near @ near)), rel=1e-9)


def test_a_run_with_tapernorm_ends_without_statistics_of_tokens_but_for_the_last_norm() -> None:
    config = RunConfig(norm="tapernorm", depth=2, width=16, heads=2, seq_len=8, batch=4, steps=40)
    begun = begin(config)
    started, *_ = train(config, begun=begun)
    model = begun[0]
    assert isinstance(started, Started)
    assert "TaperNorm" in started.why
    norms = [m for m in model.modules() if isinstance(m, TaperNorm)]
    assert len(norms) == 4
    assert isinstance(model.final_norm, nn.RMSNorm)
    assert all(float(m.gate) == 0.0 and float(m.factor) > 0 for m in norms)
    assert len({float(m.factor) for m in norms}) == 4  # each measured its own input
