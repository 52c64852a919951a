"""The trainer: deterministic, steerable, and its flat optimizer equals PyTorch's per parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product

import pytest
import torch
from crossing_kit import case
from peek import model_seen, steps_of
from task_kit import with_task
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import OPTIMIZERS, SCHEMES
from normviz.catalog.families import LANGUAGE
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.init import initialise
from normviz.model.transformer import Transformer
from normviz.training.divergence import PATIENCE, TIMES_CHANCE, DivergenceGuard
from normviz.training.events import Diverged, Edited, Event, Finished, Started, Step
from normviz.training.loop import Knobs, train
from normviz.training.schedule import lr_at


def losses(events: Iterable[Event]) -> list[float]:
    return [event.loss for event in events if isinstance(event, Step)]


# The stream of events


def test_events_come_in_order(tiny: RunConfig) -> None:
    started, *steps, finished = train(tiny)
    assert isinstance(started, Started)
    assert started.config == tiny
    assert [step.step for step in steps if isinstance(step, Step)] == list(range(20))
    assert finished == Finished(20)


@pytest.mark.slow
def test_deterministic(tiny: RunConfig) -> None:
    """Each kind of stream, and each task."""
    kinds = {scheme.streams: scheme.key for scheme in SCHEMES}.values()
    for scheme, task in [*product(kinds, ["markov"]), *product(["post"], LANGUAGE)]:
        config = with_task(tiny, task).replace(scheme=scheme, dropout=0.1, steps=3)
        with case(scheme, task):
            for a, b in zip(steps_of(config), steps_of(config), strict=True):
                assert (a.loss, a.grad_norm, a.lr) == (b.loss, b.grad_norm, b.lr)
                assert a.layers is not None and b.layers is not None
                assert a.layers.tobytes() == b.layers.tobytes()


@pytest.mark.parametrize("seed", ["init_seed", "data_seed"])
def test_another_seed_is_another_run(tiny: RunConfig, seed: str) -> None:
    assert losses(train(tiny)) != losses(train(tiny.replace(**{seed: 1})))


def test_no_steps_measures_at_initialisation_and_stops(tiny: RunConfig) -> None:
    started, step, finished = train(tiny.replace(steps=0))
    assert isinstance(started, Started)
    assert isinstance(step, Step)
    assert step.loss == losses(train(tiny))[0]
    assert finished == Finished(0)


def test_nothing_happens_while_nobody_reads(tiny: RunConfig) -> None:
    """Two runs read in turns, one of them slowly, are what they are alone."""
    slow, fast = train(tiny), train(tiny.replace(scheme="post"))
    first = [next(slow) for _ in range(5)]
    others = list(fast)
    assert losses([*first, *slow]) == losses(train(tiny))
    assert losses(others) == losses(train(tiny.replace(scheme="post")))


def test_the_text_is_named_where_there_is_one(tiny: RunConfig) -> None:
    started = next(train(tiny.replace(task="prose", steps=0)))
    assert isinstance(started, Started)
    assert started.text is not None
    assert len(started.text) == 64
    synthetic = next(train(tiny))
    assert isinstance(synthetic, Started)
    assert synthetic.text is None


def test_more_layers_are_recorded_on_request(tiny: RunConfig) -> None:
    steps = [e for e in train(tiny, record=(0,), also_at=(7,)) if isinstance(e, Step)]
    assert [step.step for step in steps if step.layers is not None] == [0, 7]


# The learning rate


def test_steps_say_the_rate_they_used(tiny: RunConfig) -> None:
    config = tiny.replace(warmup=5, schedule="cosine", steps=10)
    assert [step.lr for step in steps_of(config)] == [lr_at(config, s) for s in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("turned_after", [(0,), (1,), (4, 11), (7, 7)], ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS.keys())
def test_a_live_change_is_the_config_that_it_names(
    tiny: RunConfig, optimizer: str, turned_after: tuple[int, ...]
) -> None:
    """Retraining the edited config from scratch gives the same run, bit for bit."""
    config = tiny.replace(optimizer=optimizer, warmup=3, schedule="linear")
    knobs, live = Knobs(), []
    for event in train(config, knobs):
        live.append(event)
        if isinstance(event, Edited):
            continue
        for i, after in enumerate(turned_after):
            if len(losses(live)) == after:
                knobs.lr = 0.01 * (i + 2)
    edited = [event.config for event in live if isinstance(event, Edited)][-1]
    at, peak = (edited.lr_edits or ((0, edited.lr),))[-1]
    assert (at, peak) == (turned_after[-1], 0.01 * (len(turned_after) + 1))  # the very next step
    again = list(train(edited))
    assert losses(again) == losses(live)
    assert [e.lr for e in again if isinstance(e, Step)] == [
        e.lr for e in live if isinstance(e, Step)
    ]


# The optimizer


def per_parameter(config: RunConfig, make: Callable[..., torch.optim.Optimizer]) -> list[float]:
    """A plain training loop: PyTorch's optimizer on a list of parameters, nothing flat."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    optimizer, seen = make(model.parameters()), []
    for step in range(config.steps):
        optimizer.zero_grad()
        loss = model.loss(*task.tensors(step, torch.device("cpu")))
        loss.backward()
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        seen.append(loss.item())
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_flat_optimizers_are_torchs(tiny: RunConfig, decay: float, clip: float | None) -> None:
    config = tiny.replace(weight_decay=decay, clip=clip, beta1=0.8, beta2=0.9, lr=0.01)
    adamw = per_parameter(
        config, lambda p: torch.optim.AdamW(p, 0.01, (0.8, 0.9), weight_decay=decay, fused=False)
    )
    assert losses(train(config)) == pytest.approx(adamw, abs=2e-4)
    config = tiny.replace(optimizer="sgd", momentum=0.9, lr=0.1, weight_decay=decay, clip=clip)
    sgd = per_parameter(config, lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=decay))
    assert losses(train(config)) == pytest.approx(sgd, abs=2e-4)


def test_the_gradient_norm_is_that_before_clipping(tiny: RunConfig) -> None:
    free, clipped = steps_of(tiny), steps_of(tiny.replace(clip=1e-3))
    assert clipped[0].grad_norm == free[0].grad_norm > 1e-3


# Runs that end badly


def with_bad_weight(block: int, value: float) -> Callable[[Transformer], None]:
    def spoil(model: Transformer) -> None:
        list(model.blocks)[block - 1].ffn.branch.down.weight.data[0, 0] = value

    return spoil


def test_a_learning_rate_too_large_ends_as_diverged(tiny: RunConfig) -> None:
    events = list(train(tiny.replace(scheme="none", optimizer="sgd", lr=10.0, momentum=0.99)))
    *_, last, bad, finished = events
    assert isinstance(bad, Diverged)
    assert isinstance(last, Step)
    assert bad.where in ("activation", "gradient", "loss")
    assert last.step == bad.step
    assert not (math.isfinite(last.loss) and math.isfinite(last.grad_norm))
    assert finished == Finished(bad.step + 1)
    assert 0 < bad.step < 19


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize("block", [1, 2])
def test_a_bad_weight_is_found_in_its_layer(tiny: RunConfig, block: int, value: float) -> None:
    with model_seen() as models:
        events = train(tiny)
        seen = [next(events) for _ in range(4)]  # Started and three steps
        with_bad_weight(block, value)(models[0])
        seen += list(events)
    assert [e for e in seen if isinstance(e, Diverged)] == [Diverged(3, block, "activation")]
    assert seen[-1] == Finished(4)


def test_a_bad_embedding_is_layer_zero_and_a_bad_head_none(tiny: RunConfig) -> None:
    found = []
    for name in ("tokens", "head"):
        with model_seen() as models:
            events = train(tiny)
            next(events)
            getattr(models[0], name).weight.data.fill_(math.nan)
            found += [e for e in events if isinstance(e, Diverged)]
    assert found == [Diverged(0, 0, "activation"), Diverged(0, None, "loss")]


def test_without_norms_and_with_xavier_the_loss_blows_up() -> None:
    config = RunConfig(scheme="none", init="xavier", depth=16)
    *steps, bad, finished = list(train(config, record=()))[1:]
    assert isinstance(bad, Diverged)
    assert (bad.step, bad.where) == (0, "blow-up")
    assert bad.layer is not None
    assert 1 <= bad.layer <= 16
    assert finished == Finished(len(steps))
    assert len(steps) == PATIENCE


def guard_of(config: RunConfig) -> DivergenceGuard:
    with model_seen() as models:
        next(train(config))
    from normviz.model.flat import Flat

    return DivergenceGuard(models[0], Flat(models[0], torch.device("cpu")), make_task(config))


def test_a_spike_shorter_than_the_patience_is_survived(tiny: RunConfig) -> None:
    look = guard_of(tiny).check
    high, low = 1.01 * TIMES_CHANCE * make_task(tiny).chance, 3.0
    for step, loss in enumerate([*[high] * (PATIENCE - 1), low, *[high] * (PATIENCE - 1)]):
        assert look(step, loss, 1.0) is None
    bad = look(2 * PATIENCE - 1, high, 1.0)
    assert bad is not None
    assert (bad.step, bad.where) == (PATIENCE, "blow-up")  # it began right after the low step


def test_a_loss_that_starts_high_and_falls_is_let_go_on(tiny: RunConfig) -> None:
    guard = guard_of(tiny)
    high = 3 * TIMES_CHANCE * make_task(tiny).chance
    assert not any(guard.check(step, high * 0.99**step, 1.0) for step in range(3 * PATIENCE))
    flat = [guard.check(step, high, 1.0) for step in range(3 * PATIENCE, 5 * PATIENCE)]
    assert any(flat)


def test_a_norm_that_overflows_is_told_from_a_gradient_that_does(tiny: RunConfig) -> None:
    guard = guard_of(tiny)
    guard.flat.block_grads[0, :] = 3e38
    assert guard.check(5, 3.0, math.inf) == Diverged(5, 1, "gradient norm")


def test_bad_gradients_of_a_finite_loss_name_the_last_bad_block(tiny: RunConfig) -> None:
    guard = guard_of(tiny)
    guard.flat.block_grads[0, 3] = math.inf
    assert guard.check(5, 3.0, math.inf) == Diverged(5, 1, "gradient")


def test_the_parameters_of_a_diverged_run_are_those_that_were_seen(tiny: RunConfig) -> None:
    """No update follows a step that is not finite."""
    with model_seen() as models:
        events = train(tiny)
        next(events)
        models[0].head.weight.data.fill_(math.nan)
        before: Tensor = models[0].tokens.weight.detach().clone()
        list(events)
    assert torch.equal(models[0].tokens.weight, before)
