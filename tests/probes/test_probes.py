"""Probes are inert and complete, and the sites they read mean the same thing in every scheme."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import numpy as np
import pytest
import torch
from crossing_kit import with_schemes
from peek import model_seen, steps_of
from task_kit import with_task
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import FAMILIES, NORMS, PROBES, QK_NORMS, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.model.data import make_task
from normviz.model.sites import SITES
from normviz.probes import Recorder
from normviz.training import loop

ALL_SCHEMES = pytest.mark.parametrize("scheme", SCHEMES.keys())
ROWS = {key: i for i, key in enumerate(PROBES.keys())}
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=8, batch=4, steps=1)

# Inert


def outcome(config: RunConfig, record: Collection[int]) -> tuple[list[float], list[Tensor]]:
    """Losses and gradient norms of a run, and its final parameters."""
    with model_seen() as models:
        steps = steps_of(config, record)
    numbers = [x for step in steps for x in (step.loss, step.grad_norm)]
    return numbers, [p.detach().clone() for p in models[0].parameters()]


@pytest.mark.parametrize(
    "change",
    [{"norm": norm.key} for norm in NORMS] + [{"qk_norm": choice.key} for choice in QK_NORMS],
    ids=str,
)
def test_inert_with_every_norm(change: dict[str, str]) -> None:
    config = SMALL.replace(scheme="peri", v_norm="on", steps=6, **change)
    watched, unwatched = outcome(config, range(6)), outcome(config, ())
    assert watched[0] == unwatched[0]
    assert all(map(torch.equal, watched[1], unwatched[1]))


@pytest.mark.parametrize(("scheme", "extras"), with_schemes([["plain", "qk_norm, dropout, clip"]]))
def test_inert(scheme: str, extras: str) -> None:
    config = SMALL.replace(scheme=scheme, steps=6, lr=0.01)
    if extras != "plain":
        config = config.replace(qk_norm="on", dropout=0.1, clip=0.5)
    watched, unwatched = outcome(config, range(6)), outcome(config, ())
    assert watched[0] == unwatched[0]
    assert all(map(torch.equal, watched[1], unwatched[1]))


def test_probes_draw_no_random_numbers() -> None:
    events = loop.train(SMALL.replace(steps=3))
    next(events)
    state = torch.get_rng_state()
    list(events)
    assert torch.equal(torch.get_rng_state(), state)


def test_recording_some_steps_gives_the_same_numbers_there() -> None:
    config = SMALL.replace(steps=6)
    every, some = steps_of(config, range(6)), steps_of(config, (1, 4))
    assert [step.step for step in some if step.layers is not None] == [1, 4]
    for at in (1, 4):
        assert np.array_equal(some[at].layers, every[at].layers, equal_nan=True)


# Complete


@pytest.mark.parametrize(
    ("scheme", "task"),
    [*product(SCHEMES.keys(), ["markov"]), *product(["pre", "siamese"], FAMILIES["decoder"].tasks)],
)
def test_every_probe_speaks_at_every_layer(scheme: str, task: str) -> None:
    for step in steps_of(with_task(SMALL, task).replace(scheme=scheme, steps=3, init="torch")):
        assert step.layers is not None
        recorded = recorded_by(SCHEMES[scheme].streams)
        assert step.layers.shape == (len(recorded), SMALL.depth + 1)
        for probe, row in zip(map(PROBES.__getitem__, recorded), step.layers, strict=True):
            assert np.isnan(row[: probe.first_layer]).all(), probe.key
            assert np.isfinite(row[probe.first_layer :]).all(), probe.key


@ALL_SCHEMES
def test_without_steps_all_but_the_update_is_measured(scheme: str) -> None:
    (step,) = steps_of(SMALL.replace(scheme=scheme, steps=0))
    (first,) = steps_of(SMALL.replace(scheme=scheme, steps=1))
    assert step.layers is not None
    assert first.layers is not None
    for key in recorded_by(SCHEMES[scheme].streams):
        row = ROWS[key]
        if key == "update_ratio":
            assert np.isnan(step.layers[row]).all()
        else:
            assert np.array_equal(step.layers[row], first.layers[row], equal_nan=True)


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
        next(loop.train(config))
    model, (tokens, targets) = models[0], make_task(config).tensors(0, torch.device("cpu"))
    nudge, watch = Nudge(), Recorder(SUBLAYER_SITES, SUBLAYER_SITES)
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
        "attn_logits", "attn_weights", "final", "logits",
    )  # fmt: skip


@ALL_SCHEMES
def test_every_scheme_passes_every_site_in_order(scheme: str) -> None:
    config = SMALL.replace(scheme=scheme)
    with model_seen() as models:
        next(loop.train(config))
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
        "logits": [0],
    }
