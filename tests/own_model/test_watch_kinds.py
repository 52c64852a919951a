"""Kinds of training loops, each beside the same loop without a watch, whose numbers are what is recorded."""

from __future__ import annotations

import copy
import gc
import io
import sys
import types
import weakref
from collections.abc import Callable
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
    """A plain loop's own numbers: of each step the loss, and of each block the gradients and the update."""

    def __init__(self, model: Model, it: Watch | None, given: Any = None) -> None:
        self.model, self.it, self.given = model, it, given
        self.losses: list[float] = []
        self.gradients: list[list[float]] = []
        self.updates: list[list[float]] = []
        self.before: list[list[Tensor]] = []

    def gradient(self, scale: float = 1.0) -> None:
        """The gradients as they are now, and the weights."""
        self.gradients.append(
            [norm([p.grad / scale for p in block.parameters()]) for block in self.model.layers]
        )
        self.before = [
            [p.detach().clone() for p in block.parameters()] for block in self.model.layers
        ]

    def step(self, loss: float) -> None:
        """The step was taken."""
        self.losses.append(loss)
        pairs = zip(self.model.layers, self.before, strict=True)
        self.updates.append(
            [
                norm([p.detach() - q for p, q in zip(block.parameters(), old, strict=True)])
                / norm(old)
                for block, old in pairs
            ]
        )


def norm(tensors: list[Tensor]) -> float:
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


KINDS: dict[str, tuple[Callable[[Model, Truth], None], str | None]] = {
    "several optimizers": (several, None),
    "a new optimizer": (anew, None),
    "told first": (told("first"), None),
    "told last": (told("last"), None),
    "told last as a number": (told("number"), None),
    "divided, told": (divided("told"), "accumulation: the loss of a step is the sum"),
    "divided later, told": (divided("later"), None),
    "divided later, in the output": (divided("output"), None),
    "scaler": (scaled(False), "3 steps were skipped"),
    "scaler, told": (scaled(True), "3 steps were skipped"),
    "scaler, told, cleared after the forward pass": (
        scaled(True, zero_first=True),
        "3 steps were skipped",
    ),
    "scaler, fused": (scaled(True, fused=True), "3 steps were skipped"),
    "scaler, not told, clipped": (unscaled, None),
    "SAM": (sam, f"{STEPS} steps were skipped"),
    "evaluation mode": (evaluated, None),
    "autograd.grad": (penalized, None),
    "clipped unevenly": (clipped, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recorded_is_what_the_loop_without_a_watch_has(kind: str) -> None:
    loop, said = KINDS[kind]

    def trained(watches: bool) -> tuple[Truth, Model]:
        model, _ = made()
        it = given = None
        if watches:
            given = two(model) if loop is several else torch.optim.SGD(model.parameters())
            it = watch(model, given, to=None, every=1)
        truth = Truth(model, it, given)
        loop(model, truth)
        return truth, model

    (plain, twin), (seen, model) = trained(False), trained(True)
    assert seen.it is not None
    seen.it.close()
    for p, q in zip(twin.parameters(), model.parameters(), strict=True):
        assert torch.equal(p, q), "the watch changed the training"
    result, missing = seen.it.result, seen.it.missing
    near = 1e-3 if "scaler" in kind else 1e-5
    np.testing.assert_allclose(result.losses, plain.losses, rtol=1e-5)
    np.testing.assert_allclose(result.values("grad_block")[:, 1:], plain.gradients, rtol=near)
    np.testing.assert_allclose(result.values("update_ratio")[:, 1:], plain.updates, rtol=1e-4)
    assert (missing == []) if said is None else (len(missing) == 1 and said in missing[0]), missing


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
    for _ in range(3):  # a cell that is run again
        model, optimizer = made()
        it = watch(model, optimizer, to=None)
        one_step(model, optimizer)
        watches.append(it if keeps else weakref.ref(it))  # a notebook's Out keeps what was shown
        models.append(weakref.ref(model))
    del model, optimizer, it
    gc.collect()
    assert [one() for one in models] == [None] * 3
    for one in watches:
        if keeps:
            assert (one.status, len(one.result.steps)) == ("finished", 1)
        else:
            assert one() is None


def test_an_unnamed_watch_and_optimizer_go_on_with_the_model() -> None:
    model, optimizer = made()
    there = weakref.ref(watch(model, optimizer, to=None))
    gc.collect()
    one_step(model, optimizer)
    it = there()
    assert it is not None and it.step_number == 1
    it.close()


def test_an_interrupted_step_is_no_step_and_no_mode_is_left() -> None:
    model, optimizer = made()
    with watch(model, optimizer, to=None, every=1) as it:
        one_step(model, optimizer, 0)
        broken = model.layers[1].register_forward_hook(_interrupt)
        with pytest.raises(KeyboardInterrupt):
            model(*batch(7))
        broken.remove()
        model(*batch(8))  # interrupted before its backward pass
        one_step(model, optimizer, 1)
    assert torch.overrides._len_torch_function_stack() == 0
    twin, other = made()
    wanted = []
    for step in range(2):
        wanted.append(twin(*batch(step))[1].item())
        one_step(twin, other, step)
    np.testing.assert_allclose(it.result.losses, wanted, rtol=1e-6)
    assert it.missing == []


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


def test_torch_func_runs_and_is_said() -> None:
    model, optimizer = made()
    with watch(model, optimizer, to=None, every=1) as it:
        one_step(model, optimizer)
        values = {name: p.detach() for name, p in model.named_parameters()}
        torch.func.grad(lambda p: torch.func.functional_call(model, p, batch(0))[1])(values)
        one_step(model, optimizer, 1)
    assert len(it.result.steps) == 2 and np.isfinite(it.result.losses).all()
    assert it.missing == [
        "transforms: forward passes inside of torch.func or torch.jit are not recorded"
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("whole", [True, False])
def test_modules_compiled_in_place_are_told_at_once_and_recorded(whole: bool) -> None:
    torch._dynamo.reset()
    model, optimizer = made()
    for module in [model] if whole else model.layers:
        module.compile(backend="aot_eager", fullgraph=True)
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


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("to", ["wandb", "trackio", "tensorboard"])
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
