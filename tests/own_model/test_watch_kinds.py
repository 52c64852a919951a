"""Kinds of training loops, each beside the same loop without a watch, whose numbers are what is recorded."""

from __future__ import annotations

import copy
import gc
import io
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_watch_loop import D, Model, batch, hooks, made
from torch import Tensor, nn

from normviz import watch
from normviz.own_model.hooks import EagerStance
from normviz.own_model.watch import Watch

STEPS = 4


class Truth:
    """A plain loop's own numbers: of each step the loss, and of each block the gradients and the update; of a
    block that is called several times, at each of its calls."""

    def __init__(self, model: Model, it: Watch | None, given: Any = None) -> None:
        self.model, self.it, self.given = model, it, given
        order = getattr(model, "order", range(len(model.layers)))
        self.blocks = [[*model.layers[n].parameters()] for n in order]
        self.losses: list[float] = []
        self.gradients: list[list[float]] = []
        self.updates: list[list[float]] = []
        self.before: list[list[Tensor]] = []

    def gradient(self, scale: float = 1.0) -> None:
        """The gradients as they are now, and the weights."""
        self.gradients.append(
            [norm([p.grad / scale for p in own if p.grad is not None]) for own in self.blocks]
        )
        self.before = [[p.detach().clone() for p in own] for own in self.blocks]

    def step(self, loss: float) -> None:
        """The step was taken."""
        self.losses.append(loss)
        self.updates.append([])
        for own, old in zip(self.blocks, self.before, strict=True):
            pairs = [(p.detach(), q) for p, q in zip(own, old, strict=True) if p.requires_grad]
            size = norm([q for _, q in pairs])
            self.updates[-1].append(norm([p - q for p, q in pairs]) / size)


def norm(tensors: list[Tensor]) -> float:
    """Their norm together; NaN of none."""
    if not tensors:
        return float("nan")
    return float(torch.cat([x.double().flatten() for x in tensors]).norm())


def two(model: Model) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices, AdamW for all else."""
    mats = [p for p in model.layers.parameters() if p.ndim == 2]
    ids = {id(p) for p in mats}
    rest = [p for p in model.parameters() if id(p) not in ids]
    return [torch.optim.Muon(mats, lr=0.02), torch.optim.AdamW(rest, lr=1e-2)]


def several(model: Model, truth: Truth) -> None:
    optimizers = truth.given or two(model)
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        loss.backward()
        truth.gradient()
        for one in optimizers:
            one.step()
        truth.step(loss.item())
        for one in optimizers:
            one.zero_grad()


def anew(model: Model, truth: Truth) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        if step == 2:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        loss = model(*batch(step))[1]
        optimizer.zero_grad()
        loss.backward()
        truth.gradient()
        optimizer.step()
        truth.step(loss.item())


def grown(model: Model, truth: Truth) -> None:
    """An optimizer that gets the model's parameters after a step."""
    optimizer = torch.optim.AdamW([nn.Parameter(torch.ones(2))], lr=1e-2)
    optimizer.step()
    optimizer.add_param_group({"params": [*model.parameters()]})
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        loss.backward()
        truth.gradient()
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())


def told(when: str) -> Callable[[Model, Truth], None]:
    """The loss is told before the backward pass, after the step, or as a number."""

    def loop(model: Model, truth: Truth) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for step in range(STEPS):
            loss = -model(*batch(step))[1]
            loss = -loss * 3
            if when == "first" and truth.it is not None:
                truth.it.step(loss)
            loss.backward()
            truth.gradient()
            optimizer.step()
            optimizer.zero_grad()
            truth.step(loss.item())
            if when != "first" and truth.it is not None:
                truth.it.step(loss if when == "last" else loss.item())

    return loop


def divided(where: str) -> Callable[[Model, Truth], None]:
    """Four micro-batches a step, whose losses are divided before they are told, or as they go backwards."""

    def loop(model: Model, truth: Truth) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for step in range(STEPS):
            total = 0.0
            for micro in range(4):
                loss = model(*batch(4 * step + micro))[1]
                if where == "told":
                    loss = loss / 4
                if where != "output" and truth.it is not None:
                    truth.it.step(loss)
                (loss if where == "told" else loss / 4).backward()
                total += loss.item() / (1 if where == "told" else 4)
            truth.gradient()
            optimizer.step()
            optimizer.zero_grad()
            truth.step(total)

    return loop


def scaled(
    tells: bool, fused: bool = False, zero_first: bool = False
) -> Callable[[Model, Truth], None]:
    """A GradScaler whose first steps overflow."""

    def loop(model: Model, truth: Truth) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=1000)
        if truth.it is not None and truth.it.instruments is not None:
            truth.it.instruments.scaler = scaler
        for step in range(STEPS + 3):
            with torch.autocast("cpu", torch.float16):
                loss = model(*batch(step))[1] * (1e30 if step in (0, 1, 4) else 1.0)
            if zero_first:
                optimizer.zero_grad()
            if tells and truth.it is not None:
                truth.it.step(loss)
            scaler.scale(loss * (1e10 if step in (0, 1, 4) else 1.0)).backward()
            was, scale = model.head.weight.detach().clone(), scaler.get_scale()
            truth.gradient(scale)
            scaler.step(optimizer)
            scaler.update()
            if not zero_first:
                optimizer.zero_grad()
            if torch.equal(was, model.head.weight):
                truth.gradients.pop()
            else:
                truth.step(loss.item())

    return loop


def unscaled(model: Model, truth: Truth) -> None:
    """A GradScaler that was not told, in bfloat16, whose gradients are unscaled and clipped; its scale grows,
    and two micro-batches make a step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)
    for step in range(STEPS):
        total = 0.0
        for micro in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(*batch(2 * step + micro))[1] / 2
            scaler.scale(loss).backward()
            total += loss.item()
        truth.gradient(scaler.get_scale())
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        truth.step(total)


def sam(model: Model, truth: Truth) -> None:
    """Two passes a step: the second one's gradients, at other weights, are those of the step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        model(*batch(step))[1].backward()
        moves = [p.grad * 0.05 / norm([p.grad]) for p in model.parameters()]
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p += move
        optimizer.zero_grad()
        loss = model(*batch(step))[1]
        loss.backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p -= move
        truth.gradient()
        optimizer.step()
        truth.step(loss.item())
        optimizer.zero_grad()


def evaluated(model: Model, truth: Truth) -> None:
    """Trained in evaluation mode, with another forward pass between steps whose gradient nobody takes."""
    model.eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        model(*batch(100 + step))
        loss = model(*batch(step))[1]
        loss.backward()
        truth.gradient()
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())
        with torch.no_grad():
            model(*batch(200 + step))


def penalized(model: Model, truth: Truth) -> None:
    """torch.autograd.grad goes backwards before the step's own backward pass, and torch.func in between."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        loss.backward()
        truth.gradient()
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())


def clipped(model: Model, truth: Truth) -> None:
    """Clipped by value, and by the norm of each half apart: no one factor undoes it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        loss.backward()
        truth.gradient()
        if step % 2:
            nn.utils.clip_grad_value_(model.parameters(), 1e-3)
        else:
            nn.utils.clip_grad_norm_(model.layers[0].parameters(), 1e-2)
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())


def nothing(model: Model, step: int) -> None: ...


def plain(model: Model, truth: Truth, between: Callable[[Model, int], object] = nothing) -> None:
    """One optimizer; `between` is done between backward pass and step."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        if truth.it is not None and truth.it._in_place:
            truth.it.step(loss)
        loss.backward()
        truth.gradient()
        between(model, step)
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())


def averaged(model: Model, truth: Truth) -> None:
    """A copy that follows the weights on average, and is evaluated at each step."""
    mean = torch.optim.swa_utils.AveragedModel(model)

    def between(model: Model, step: int) -> None:
        mean.update_parameters(model)
        copy.deepcopy(model)(*batch(50 + step))[1].backward()
        mean(*batch(60 + step))

    plain(model, truth, between)


def saved(model: Model, truth: Truth) -> None:
    """The whole model is saved at each step, and what is read back goes forwards and backwards."""

    def between(model: Model, step: int) -> None:
        torch.save(model, file := io.BytesIO())
        file.seek(0)
        torch.load(file, weights_only=False)(*batch(50 + step))[1].backward()

    plain(model, truth, between)


def rerun(model: Model, truth: Truth) -> None:
    """Between two steps a cell makes, watches and trains another model, and deletes it."""

    def between(model: Model, step: int) -> None:
        other, optimizer = made()
        if truth.it is not None:
            watch(other, optimizer, to=None, every=1)
        one_step(other, optimizer, 50 + step)

    plain(model, truth, between)


def transformed(model: Model, truth: Truth) -> None:
    def between(model: Model, step: int) -> None:
        values = {name: p.detach() for name, p in model.named_parameters()}
        torch.func.grad(lambda p: torch.func.functional_call(model, p, batch(50 + step))[1])(values)

    plain(model, truth, between)


def interrupted(model: Model, truth: Truth) -> None:
    """After each step a forward pass is broken off in a block, and another one before it goes backwards."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        loss = model(*batch(step))[1]
        loss.backward()
        truth.gradient()
        optimizer.step()
        optimizer.zero_grad()
        truth.step(loss.item())
        broken = model.layers[1].register_forward_hook(_interrupt)
        with pytest.raises(KeyboardInterrupt):
            model(*batch(50 + step))
        broken.remove()
        model(*batch(60 + step))


def twofold(model: Model, truth: Truth) -> None:
    """Two watches; the second one has a cadence of its own."""
    second = watch(model, to=None, every=2) if truth.it is not None else None
    plain(model, truth)
    if second is not None:
        second.close()


def in_lightning(model: Model, truth: Truth) -> None:
    """Lightning's list of optimizers, in manual optimization; the callback makes the watch."""
    import pytorch_lightning as lightning

    from normviz import LightningCallback

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.automatic_optimization = model, False

        def training_step(self, rows: list[Tensor], index: int) -> None:
            loss = self.model(*rows)[1]
            self.manual_backward(loss)
            truth.gradient()
            for one in self.optimizers():  # pyrefly: ignore[not-iterable]
                one.step()
            truth.step(loss.item())
            for one in self.optimizers():  # pyrefly: ignore[not-iterable]
                one.zero_grad()

        def configure_optimizers(self) -> list[torch.optim.Optimizer]:
            return two(self.model)

    callback = LightningCallback(to=None, every=1)
    watches = truth.it is not None
    if truth.it is not None:
        truth.it.close()
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, callbacks=[callback] * watches, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    rows = torch.utils.data.DataLoader([batch(step) for step in range(STEPS)], batch_size=None)
    trainer.fit(Module(), rows)
    truth.it = callback.watch


def frozen() -> Model:
    model = fresh()
    model.layers[1].requires_grad_(False)
    return model


def compiled(whole: bool) -> Callable[[], Model]:
    """Compiled in place: the model, or each of its blocks."""

    def make() -> Model:
        torch._dynamo.reset()
        model = fresh()
        for module in [model] if whole else model.layers:
            module.compile(backend="aot_eager")
        return model

    return make


def fresh() -> Model:
    return made()[0]


class Looped(Model):
    """Blocks that are called in an order, some several times; in training once more, where `more` is True."""

    def __init__(self, order: list[int], more: bool = False) -> None:
        super().__init__()
        self.order, self.more, self.ends = order, more, list[Tensor]()

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tokens(tokens)
        self.ends = []
        for number in self.order + self.order[-1:] * (self.more and self.training):
            x = self.layers[number](x)
            if x.requires_grad:
                x.retain_grad()
            self.ends.append(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def in_order(*order: int) -> Callable[[], Model]:
    """A model whose blocks are called in an order."""

    def make() -> Model:
        torch.manual_seed(0)
        return Looped([*order])

    return make


@dataclass(frozen=True)
class Kind:
    """A kind of loop: what it does, what `missing` says (None: nothing), the model, the watch's cadence, and
    the relative difference up to which gradients are the same."""

    loop: Callable[[Model, Truth], None]
    said: str | None = None
    make: Callable[[], Model] = fresh
    every: int = 1
    near: float = 1e-5


CALLS = "calls: a block that is called several times in a forward pass has a row for each call"
HALF = 1e-3
"""Gradients in float16 and bfloat16 are as near as that."""
KINDS: dict[str, Kind] = {
    "EMA copy": Kind(averaged),
    "torch.save": Kind(saved),
    "re-run cells": Kind(rerun),
    "torch.func": Kind(transformed, "transforms: forward passes inside of torch.func"),
    "SAM": Kind(sam, f"{STEPS} steps were skipped"),
    "several optimizers": Kind(several),
    "Lightning's list": Kind(in_lightning),
    "a new optimizer": Kind(anew),
    "groups added later": Kind(grown),
    "model.compile()": Kind(plain, make=compiled(True), every=2),
    "compiled blocks": Kind(plain, make=compiled(False), every=2),
    "scaler": Kind(scaled(False), "3 steps were skipped", near=HALF),
    "scaler, told": Kind(scaled(True), "3 steps were skipped", near=HALF),
    "scaler, told, cleared after the forward pass": Kind(
        scaled(True, zero_first=True), "3 steps were skipped", near=HALF
    ),
    "scaler, fused": Kind(scaled(True, fused=True), "3 steps were skipped", near=HALF),
    "scaler, not told, clipped": Kind(unscaled, near=HALF),
    "divided, told": Kind(divided("told"), "accumulation: the loss of a step is the sum"),
    "divided later, told": Kind(divided("later")),
    "divided later, in the output": Kind(divided("output")),
    "interrupted": Kind(interrupted),
    "told first": Kind(told("first")),
    "told last": Kind(told("last")),
    "told last as a number": Kind(told("number")),
    "two watches": Kind(twofold),
    "evaluation mode": Kind(evaluated),
    "frozen blocks": Kind(plain, make=frozen),
    "shared block": Kind(plain, CALLS, in_order(1, 1, 1)),
    "looped blocks": Kind(plain, CALLS, in_order(0, 1, 2, 0, 1, 2)),
    "autograd.grad": Kind(penalized),
    "clipped unevenly": Kind(clipped),
}
"""Each kind of loop, in the order in which `python -m tests.bench.loops` prints them."""
SLOW = ("Lightning's list", "compiled blocks")
ALIKE = ("model.compile()", "scaler, told", "told last", "divided later, told", "re-run cells")
"""Kinds that another test or kind proves as well."""


@dataclass(frozen=True)
class Compared:
    """A loop without a watch, the same one with it, and what the watch recorded."""

    plain: Truth
    seen: Truth
    watch: Watch

    def pairs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What was recorded and what is true: [steps] losses, [steps, blocks] gradients and updates."""
        result = self.watch.result
        at = np.searchsorted(result.steps.step, result.steps.layer_steps)
        return {
            "loss": (result.losses, np.array(self.plain.losses)),
            "gradient": (result.values("grad_block")[:, 1:], np.array(self.plain.gradients)[at]),
            "update": (result.values("update_ratio")[:, 1:], np.array(self.plain.updates)[at]),
        }


def compared(kind: Kind) -> Compared:
    """Run a loop without and with a watch, from the same numbers."""

    def trained(watches: bool) -> Truth:
        model = kind.make()
        it = given = None
        if watches:
            given = two(model) if kind.loop is several else torch.optim.SGD(model.parameters())
            it = watch(model, given, to=None, every=kind.every)
        truth = Truth(model, it, given)
        kind.loop(model, truth)
        return truth

    without, seen = trained(False), trained(True)
    assert seen.it is not None
    seen.it.close()
    return Compared(without, seen, seen.it)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in KINDS if k not in ALIKE],
)
def test_what_is_recorded_is_what_the_loop_without_a_watch_has(name: str) -> None:
    kind = KINDS[name]
    it = compared(kind)
    parameters = it.plain.model.parameters(), it.seen.model.parameters()
    for p, q in zip(*parameters, strict=True):
        same = torch.equal(p, q) if kind.every == 1 else torch.allclose(p, q, rtol=1e-5)
        assert same, "the watch changed the training"
    assert torch.overrides._len_torch_function_stack() == 0, "no mode is left"
    pairs, missing = it.pairs(), it.watch.missing
    for what, near in (("loss", 1e-5), ("gradient", kind.near), ("update", 1e-4)):
        np.testing.assert_allclose(*pairs[what], rtol=near, err_msg=what)
    said = kind.said
    assert (missing == []) if said is None else (len(missing) == 1 and said in missing[0]), missing


@pytest.mark.parametrize("order", [[0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 2], [1, 1, 1]])
def test_blocks_that_are_called_again_have_a_row_for_each_call(order: list[int]) -> None:
    torch.manual_seed(0)
    model = Looped(order)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    hidden, streams, own = [], [], []
    with watch(model, optimizer, to=None, every=1) as it:
        for step in range(3):
            model(*batch(step))[1].backward()
            hidden.append([norm([x.grad]) for x in model.ends if x.grad is not None])
            streams.append([float(x.detach().square().mean().sqrt()) for x in model.ends])
            own.append([norm([p.grad for p in model.layers[n].parameters()]) for n in order])
            optimizer.step()
            optimizer.zero_grad()
    for key, wanted in (("grad_hidden", hidden), ("stream_rms", streams), ("grad_block", own)):
        np.testing.assert_allclose(it.result.values(key)[:, 1:], wanted, rtol=1e-5, err_msg=key)
    for key in ("branch_ratio", "grad_qk", "grad_w2", "attn_entropy"):
        assert np.isfinite(it.result.values(key)[:, 1:]).all(), key
    assert len(it.missing) == 1 and "has a row for each call" in it.missing[0]


def test_calls_beyond_the_rows_are_said_and_leave_no_gradient_at_the_stream() -> None:
    torch.manual_seed(0)
    model = Looped([0, 1, 2], more=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, to=None) as it:
        for step in range(3):
            one_step(model, optimizer, step)
    assert any("more often in a forward pass than it has rows" in words for words in it.missing)
    assert np.isnan(it.result.values("grad_hidden")).all()
    assert np.isfinite(it.result.values("grad_block")[:, 1:]).all()


def test_blocks_that_change_after_the_watch_began_are_recorded_from_the_first_step_on() -> None:
    model, _ = made()
    it = watch(model, torch.optim.SGD(model.parameters()), to=None, every=1)
    for layer in model.layers:
        nn.utils.parametrizations.weight_norm(layer.up)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(*batch(0))[1].backward()
    wanted = [norm([p.grad for p in layer.parameters()]) for layer in model.layers]
    optimizer.step()
    np.testing.assert_allclose(it.result.values("grad_block")[0, 1:], wanted, rtol=1e-5)
    assert it.missing == []
    it.close()


def test_an_optimizer_of_other_parameters_is_said() -> None:
    """A copy of the weights in another format is what is stepped."""
    model, _ = made()
    copies = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(copies, lr=0.1)
    with watch(model, optimizer, to=None) as it:
        for step in range(3):
            model(*batch(step))[1].backward()
            for mine, p in zip(copies, model.parameters(), strict=True):
                mine.grad = p.grad
            optimizer.step()
            model.zero_grad()
    assert any("with parameters of the model took one" in words for words in it.missing)


def one_step(model: Model, optimizer: torch.optim.Optimizer, step: int = 0) -> None:
    model(*batch(step))[1].backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize("at", ["before", "forward", "step"])
def test_copies_and_files_have_no_hooks(at: str, folder: object) -> None:
    model, optimizer = made()
    mine: list[int] = []
    model.layers[0].register_forward_hook(lambda *args: mine.append(1))
    it = watch(model, optimizer)
    if at == "forward":
        model(*batch(0))[1].backward()
    elif at == "step":
        one_step(model, optimizer)
    twins = [
        copy.deepcopy(model),
        copy.copy(model),
        torch.optim.swa_utils.AveragedModel(model).module,
    ]
    part = copy.deepcopy(model.layers)
    del model.layers[0]._forward_hooks[next(iter(model.layers[0]._forward_hooks))]
    file = io.BytesIO()
    torch.save(model, file)
    assert b"normviz" not in file.getvalue()
    file.seek(0)
    twins.append(torch.load(file, weights_only=False))
    for twin in twins[:1] + twins[2:]:
        assert hooks(twin, optimizer) <= 1 and "__getstate__" not in vars(twin), "mine alone"
    assert hooks(part, optimizer) == 1
    it.close()
    assert hooks(model, optimizer) == 0 and "__getstate__" not in vars(model)


@pytest.mark.parametrize("keeps", [False, True])
def test_models_are_freed_and_their_runs_end(keeps: bool) -> None:
    watches: list[Any] = []
    models = []
    for in_a_cycle in (False, True, True):  # a cell that is run again
        model, optimizer = made()
        vars(model)["itself"] = [model] * in_a_cycle  # which takes the collector
        it = watch(model, optimizer, to=None)
        one_step(model, optimizer)
        watches.append(it if keeps else weakref.ref(it))  # a notebook's Out keeps what was shown
        models.append(weakref.ref(model))
    del model, optimizer, it
    gc.collect()
    assert [one() for one in models] == [None] * 3
    for one, in_a_cycle in zip(watches, (False, True, True), strict=True):
        if keeps:
            assert (one.status, len(one.result.steps)) == ("finished", 1)
            is_lost = one.steps[0].layers is None
            assert is_lost or not in_a_cycle
            assert any(words.startswith("the last step: ") for words in one.missing) == is_lost
        else:
            assert one() is None


def test_a_watch_that_closes_inside_of_a_transform_ends_its_run_and_says_what_is_missing() -> None:
    """As it does where a model is freed while torch.func works."""
    model, optimizer = made()
    it = watch(model, optimizer, to=None)
    one_step(model, optimizer)

    def value(x: Tensor) -> Tensor:
        it.close()
        return x.sum()

    torch.func.grad(value)(torch.ones(2))
    assert it.status == "finished" and hooks(model, optimizer) == 0
    assert any("some may be missing after a RuntimeError" in words for words in it.missing)


def test_an_unnamed_watch_and_optimizer_go_on_with_the_model() -> None:
    model, optimizer = made()
    there = weakref.ref(watch(model, optimizer, to=None))
    gc.collect()
    one_step(model, optimizer)
    it = there()
    assert it is not None and it.step_number == 1
    it.close()


def _interrupt(*args: object) -> None:
    raise KeyboardInterrupt


def test_two_watches_of_one_model_record_the_same() -> None:
    model, optimizer = made()
    first = watch(model, optimizer, to=None, every=1)
    second = watch(model, optimizer, to=None, every=2)
    for step in range(4):
        one_step(model, optimizer, step)
    first.close()
    second.close()
    assert first.missing == second.missing == []
    np.testing.assert_array_equal(first.result.losses, second.result.losses)
    np.testing.assert_allclose(
        second.result.steps.layers, first.result.steps.layers[::2], rtol=1e-6
    )
    assert torch.overrides._len_torch_function_stack() == 0 and hooks(model, optimizer) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_compiled_in_place_is_told_at_once_and_recorded() -> None:
    torch._dynamo.reset()
    model, optimizer = made()
    model.compile(backend="aot_eager", fullgraph=True)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    with watch(model, optimizer, to=None, every=2) as it:
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before
        assert it.settings.placement == "pre" and it.settings.width == D
        losses = []
        for step in range(5):
            loss = model(*batch(step))[1]
            losses.append(loss.item())
            it.step(loss)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    assert it.result.steps.layer_steps.tolist() == [0, 2, 4] and it.missing == []
    np.testing.assert_allclose(it.result.losses, losses, rtol=1e-5)
    assert not np.isnan(it.result.steps.layers[:, :, 1:]).any()
    assert EagerStance._count == 0


def test_an_optimizer_that_is_never_seen_is_said() -> None:
    model, optimizer = made()
    it = watch(model, optimizer, to=None)
    for step in range(40):
        model(*batch(step))[1].backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
        if step == 3:
            assert it.missing == []
    assert any("no step is recorded of the last 40 backward passes" in s for s in it.missing)
    it.close()


# Trackers: modules with the call signatures of wandb 0.31, trackio 0.43 and torch's SummaryWriter.


class Run:
    def __init__(self) -> None:
        self.rows: list[tuple[dict[str, float], Any]] = []
        self.metrics: list[tuple[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.is_finished = False

    def define_metric(
        self, name: str, step_metric: str | None = None, hidden: bool | None = None
    ) -> None:
        self.metrics.append((name, step_metric))

    def log(
        self, data: dict[str, float], step: int | None = None, commit: bool | None = None
    ) -> None:
        self.rows.append((data, commit if step is None else step))

    def finish(self) -> None:
        self.is_finished = True


class Trackio(Run):
    def log(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.rows.append((metrics, step))


class Writer(Run):
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        if not self.rows or self.rows[-1][1] != global_step:
            self.rows.append(({}, global_step))
        self.rows[-1][0][tag] = scalar_value

    def add_text(self, tag: str, text_string: str) -> None:
        self.summary[tag] = text_string

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        self.metrics.append(("layout", layout))

    def flush(self) -> None: ...

    def close(self) -> None:
        self.is_finished = True


@pytest.mark.parametrize(
    ("to", "begun"),
    [("wandb", False), ("wandb", True), ("trackio", True), ("tensorboard", False)],
)
def test_a_tracker_gets_the_numbers_of_the_store(
    to: str, begun: bool, folder: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {"wandb": Run, "trackio": Trackio, "tensorboard": Writer}[to]()
    fake: Any = types.ModuleType(to)
    fake.run = run if begun else None
    fake.init = lambda project, name, config, embed=True: run
    fake.context_vars = types.SimpleNamespace(
        current_run=types.SimpleNamespace(get=lambda: run if begun else None)
    )
    fake.finish = run.finish
    fake.SummaryWriter = lambda comment: run
    name = "torch.utils.tensorboard" if to == "tensorboard" else to
    monkeypatch.setitem(sys.modules, name, fake)
    model, optimizer = made()
    with watch(model, optimizer, to=to, probes=("grad_block", "stream_rms"), every=1) as it:
        for step in range(3):
            one_step(model, optimizer, step)
            assert len(run.rows) == step, "the caller's next log takes it along"
    result = it.result
    assert len(run.rows) == 3
    for step, (row, where) in enumerate(run.rows):
        assert where == (begun is False if to == "wandb" else step)
        assert row["normviz/loss"] == result.losses[step]
        assert row["normviz/stream_rms/0"] == result.at("stream_rms", step, 0)
        assert row["normviz/grad_block/3"] == result.at("grad_block", step, 3)
        assert "normviz/grad_block/0" not in row, "nothing is measured there"
    assert run.is_finished is (to == "tensorboard" or not begun)
    assert [sink for sink in it._sinks if type(sink).__name__ == "_Stored"], "as well as the store"


def test_a_tracker_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    model, optimizer = made()
    with pytest.raises(ValueError, match="wandb is not installed: pip install wandb"):
        watch(model, optimizer, to="wandb")
