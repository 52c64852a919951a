"""Probes are inert and complete, and the sites they read mean the same thing in every scheme."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import numpy as np
import pytest
import torch
from crossing_kit import case, pairs
from peek import model_seen, steps_of
from task_kit import with_task
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import FAMILIES, NORMS, PROBES, QK_NORMS, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.model.data import make_task
from normviz.model.sites import SITES
from normviz.training import loop
from normviz.training.probes import Recorder

ROWS = {key: i for i, key in enumerate(PROBES.keys())}
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=8, batch=4, steps=1)

# Inert


def outcome(config: RunConfig, record: Collection[int]) -> tuple[list[float], list[Tensor]]:
    """Losses and gradient norms of a run, and its final parameters."""
    with model_seen() as models:
        steps = steps_of(config, record)
    numbers = [x for step in steps for x in (step.loss, step.grad_norm)]
    return numbers, [p.detach().clone() for p in models[0].parameters()]


@pytest.mark.slow
def test_inert() -> None:
    """Each scheme and each norm, some with dropout and clipping."""
    more = {"v_norm": "on", "dropout": 0.1, "clip": 0.5}
    options = [{"norm": norm.key} for norm in NORMS]
    options += [{"qk_norm": choice.key, **more} for choice in QK_NORMS]
    for scheme, change in pairs(SCHEMES.keys(), options, 1):
        config = SMALL.replace(scheme=scheme, depth=2, steps=3, lr=0.01, **change)
        watched, unwatched = outcome(config, range(3)), outcome(config, ())
        with case(scheme, change):
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


@pytest.mark.slow
def test_every_probe_speaks_at_every_layer() -> None:
    tasks = product(["pre", "siamese"], FAMILIES["decoder"].tasks)
    for scheme, task in [*product(SCHEMES.keys(), ["markov"]), *tasks]:
        config = with_task(SMALL, task).replace(scheme=scheme, init="torch")
        recorded = recorded_by(SCHEMES[scheme].streams)
        for step in steps_of(config):
            assert step.layers is not None
            assert step.layers.shape == (len(recorded), SMALL.depth + 1)
            for probe, row in zip(map(PROBES.__getitem__, recorded), step.layers, strict=True):
                with case(scheme, task, probe.key):
                    assert np.isnan(row[: probe.first_layer]).all()
                    assert np.isfinite(row[probe.first_layer :]).all()


def test_without_steps_all_but_the_update_is_measured() -> None:
    for scheme in ("pre", "siamese", "hyper", "ngpt"):
        (step,) = steps_of(SMALL.replace(scheme=scheme, steps=0))
        (first,) = steps_of(SMALL.replace(scheme=scheme, steps=1))
        assert step.layers is not None and first.layers is not None
        for key in recorded_by(SCHEMES[scheme].streams):
            row = ROWS[key]
            with case(scheme, key):
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


@pytest.mark.slow
def test_every_scheme_passes_every_site_in_order_and_gradients_there_do_not_add_up() -> None:
    """In Post-LN one tensor is stream_in, skip and branch_in. Tensor hooks would see the sum of
    their gradients there, and only there, so they would invent a difference between placements."""
    blocks = [1, 2]
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        config = SMALL.replace(scheme=scheme, depth=len(blocks))
        with model_seen(noise=0.1) as models:
            next(loop.train(config))
        model, (tokens, targets) = models[0], make_task(config).tensors(0, torch.device("cpu"))
        nudge, watch = Nudge(), Recorder(SUBLAYER_SITES, SUBLAYER_SITES)
        model.loss(tokens, targets, nudge).backward()
        model.loss(tokens, targets, watch).backward()
        places: dict[str, list[int]] = {site: [] for site in SITES}
        for site, index in nudge.zeros:
            places[site].append(index)
        with case(scheme):
            assert places == {
                "stream": [0, *blocks],
                **{site: list(range(2 * config.depth)) for site in SUBLAYER_SITES},
                "attn_logits": blocks,
                "attn_weights": blocks,
                "final": [0],
                "logits": [0],
            }
        for site in SUBLAYER_SITES:
            truth = [nudge.zeros[site, i].grad for i in range(2 * config.depth)]
            with case(scheme, site):
                for x, gradient in zip(watch.seen[site], truth, strict=True):
                    torch.testing.assert_close(x.grad, gradient, rtol=1e-5, atol=1e-7)


def test_the_sites_are_pinned() -> None:
    """Probes, stored runs and the page name these; a change is a change of an interface."""
    assert SITES == (
        "stream", "stream_in", "skip", "branch_in", "branch_out", "stream_out",
        "attn_logits", "attn_weights", "final", "logits",
    )  # fmt: skip
