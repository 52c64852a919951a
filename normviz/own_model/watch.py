"""`normviz.watch(model, optimizer)`: a model of one's own, in a training loop of one's own, under the probes.

    watch = normviz.watch(model, optimizer)
    for batch in data:
        loss = model(**batch).loss
        loss.backward(); optimizer.step(); optimizer.zero_grad()

It changes no number of the training. Hooks on the model exist during recorded steps alone; `close()` leaves
none. What can't be recorded is named in `watch.missing`, and is a gap in charts and tables.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import statistics
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ..catalog import NORMS, PROBES
from ..observed import Observed
from ..result import Result
from ..runs import Steps
from ..runs.store import Store, StoreError
from ..training.events import Diverged, Started, Step
from . import doctor
from .anatomy import stack_found, trace_model
from .hooks import Hooks, in_transform, weakly
from .instruments import KEYS, Instruments, Row, in_backward, read_rows
from .report import Finding, StackFound
from .source import inputs_of
from .stack import Stack, find_stacks, main_stack, tensors
from .step_clock import StepClock
from .trackers import TRACKERS, tracker

LOG = logging.getLogger(__name__)
FIRST = 32
"""So many steps are recorded at first, each."""
PLAIN = 8
"""So many steps are then left out, to time the loop without the probes."""
SHARE = 0.02
"""The measured extra time of recorded steps is at most this share of the time of all."""
SPARSEST = 1000
SHARDED = 50
"""Of a model in shards every so-many-th step is recorded: all processes must record the same ones."""
FLUSH_SECONDS = 0.5
ONCE = 1.001
"""The losses of a step count once together, up to rounding."""
PASSES = 32
"""So many backward passes without a step are said."""
UNWRITTEN = nn.Module.forward
"""The forward pass of a module that has none."""


OPEN: weakref.WeakSet[Watch] = weakref.WeakSet()
"""The watches that are not closed."""


@atexit.register
def _close_all() -> None:
    for it in list(OPEN):  # a loop that ends need not say so
        it.close()


@dataclass
class _Loss:
    """A loss: told, or found in the output of a forward pass, by the pass's number. `weight` is the gradient
    that reached it, once its backward pass has come."""

    value: Tensor
    is_told: bool
    number: int
    weight: Tensor | None = None
    is_hooked: bool = False
    is_divided: bool = False
    is_scaled: bool = False


@dataclass
class _Waiting:
    """A step that was not read yet."""

    number: int
    lr: float
    loss: Tensor | None
    norm: Tensor | None
    row: Row | None
    doubt: Tensor | None
    found_inf: Tensor | None


class Watch:
    """One run of a model that the caller trains. `watch` makes it."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any = None,
        *,
        blocks: str | None = None,
        every: Literal["auto"] | int = "auto",
        probes: Collection[str] | None = None,
        loss: Callable[[Any], Tensor] | None = None,
        name: str = "",
        to: str | Path | None = "store",
        show: Literal["terminal"] | None = None,
        scaler: Any = None,
    ) -> None:
        self.status: Literal["running", "finished", "stopped", "diverged"] = "finished"
        # So it stays where an option is refused: `__del__` closes what is running.
        _check(every, probes, to, show)
        self.every, self.loss_of = every, loss
        inner = getattr(model, "_orig_mod", model)
        inner = getattr(inner, "module", inner) if isinstance(inner, _WRAPPERS) else inner
        stack = main_stack(find_stacks(inner, blocks))
        self.is_main = _rank() == 0
        self.is_sharded = any(hasattr(p, "device_mesh") for p in inner.parameters())
        self._model = weakref.ref(model)
        self._in_place = getattr(model, "_compiled_call_impl", None) is not None
        self.placement_note = ""
        given = _inner_optimizers(optimizer)
        self.findings: tuple[Finding, ...] = ()
        looks = self.is_main and not self.is_sharded
        record, stack = self._inspected(inner, stack, given) if looks else (None, stack)
        for finding in self.findings:
            LOG.warning("normviz doctor: %s at %s", finding.name, finding)
        instruments = Instruments(inner, stack, scaler)
        self._instruments = weakref.ref(instruments)
        self.notes = instruments.notes
        if self.is_sharded:
            self.placement_note = "the parameters are in shards: inspect the model before that"
        self.keys = tuple(key for key in KEYS if probes is None or key in probes)
        self.settings = _observed(inner, stack, record, name)
        first = next(iter(inner.parameters()))
        self.started = Started(
            self.settings,
            first.device.type,
            torch.get_num_threads(),
            self.settings.parameters,
            math.nan,
            None,
            None,
        )
        self._reset()
        self._cadence = Cadence(every, self.is_sharded)
        self._clock = StepClock(first.device)
        self._flushed = time.perf_counter()
        self._handles: list[Any] = []
        self._hooks = Hooks()
        self._displays: list[Any] = []
        self._given = [weakref.ref(each) for each in given]
        self._owned: weakref.WeakKeyDictionary[Any, tuple[int, bool]] = weakref.WeakKeyDictionary()
        self._tells = not given  # told steps, without an optimizer
        self._began = time.time()
        self._sinks = _sinks(to, self) if self.is_main else []
        self.status = "running"
        self._reads_each = to in TRACKERS  # the caller's next log takes what is there
        if show == "terminal" and self.is_main:
            from .terminal import Terminal

            self._displays.append(Terminal(self))
        if self.is_main or self.is_sharded:
            self._install(model, inner, stack.path, instruments, given)
        OPEN.add(self)

    def _reset(self) -> None:
        """The state of the steps before the first one."""
        self.skipped = 0
        self.bad: Diverged | None = None
        self._steps: list[Step] = []
        self._waiting: list[_Waiting] = []
        self._ended = 0  # steps that are over
        self._recorded = 0  # the step that the instruments are armed for
        self._decided = (-1, False)  # a step, and whether it is recorded
        self._optimizers: list[Any] = []  # that stepped in the present step
        self._losses: list[_Loss] = []
        self._sums_losses = False
        self._passes = 0  # forward passes of training, over all steps
        self._since = self._most = 0  # backward passes since a step, and of a step at most
        self._inside: int | None = None  # the identity of the module whose forward pass goes on
        self._closure: int | None = None  # of the optimizer that has called its closure
        self._is_late = False  # whether the last step ended without a loss
        self._live = False  # whether the present pass may be one of training
        self._lr = 0.0
        self._unsaid: str | None = (
            None  # a note on accumulated losses, if the step turns out to need it
        )
        self._found_inf: Tensor | None = None

    @property
    def instruments(self) -> Instruments | None:
        """What measures; None when the model is no more."""
        return self._instruments()

    @property
    def optimizer(self) -> Any:
        """The optimizer, or the first one; None without."""
        return self._given[0]() if self._given else None

    @property
    def step_number(self) -> int:
        """How many steps were taken so far."""
        return self._ended + bool(self._optimizers)

    def __del__(self) -> None:
        if self.status == "running":
            with contextlib.suppress(Exception):  # of an interpreter that ends
                self.close()

    def failed(self, error: Exception) -> None:
        """Say that a hook failed; the training goes on."""
        LOG.warning("normviz.watch failed in a hook", exc_info=error)
        self.notes.setdefault(
            "steps", f"some may be missing after a {type(error).__name__}: see the log"
        )

    def _inspected(
        self, model: nn.Module, stack: Stack, optimizers: list[Any]
    ) -> tuple[StackFound | None, Stack]:
        """What a trace of the model says of the watched stack (None where it can't be traced), and the stack
        with a block for each call, where blocks are called several times. A module that trains without being
        called, as Lightning's, is left out: what is in it has the stack. Keeps what the doctor finds."""
        parts = stack.path.split(".")
        for depth in range(len(parts)):
            start = ".".join(parts[:depth])
            inner = model.get_submodule(start)
            if type(inner).forward in (UNWRITTEN, nn.ModuleList.forward):
                continue
            try:
                traced = trace_model(inner, inputs_of(inner, None))
            except ValueError as error:
                self.placement_note = self.placement_note or str(error)
                continue
            self.placement_note = ""
            ran = [each for each in traced.stacks if each.runs]
            found = [stack_found(each, traced) for each in ran]
            try:
                self.findings = doctor.findings(inner, traced, found, optimizers)
            except Exception as error:  # whatever a stranger's code raises on other inputs
                LOG.warning("the doctor failed", exc_info=error)
            rest = stack.path.removeprefix(f"{start}.") if start else stack.path
            at = next((n for n, each in enumerate(ran) if each.stack.path == rest), None)
            if at is None:
                break
            each = ran[at]
            order = [call.module for call in each.blocks]
            if len(set(order)) < len(order):
                blocks, names = each.stack.blocks, each.stack.names
                stack = replace(
                    stack,
                    blocks=tuple(blocks[n] for n in order),
                    names=tuple(names[n] for n in order),
                )
            return found[at], stack
        return None, stack

    # Hooks

    def _install(
        self,
        model: nn.Module,
        inner: nn.Module,
        path: str,
        instruments: Instruments,
        optimizers: list[Any],
    ) -> None:
        me = weakref.ref(self)

        def gone(model: object) -> None:
            if (it := me()) is not None:
                it.close()

        self._alive = weakref.ref(model, gone)
        called = _called(model, inner, path)
        self._own = {id(module) for module in called}
        instruments.on_block = weakly(self._block_entered)
        instruments.on_thrown = weakly(self._thrown, True)
        instruments.on_backward = weakly(self._backward_ended)
        # The hooks keep the rest alive, so that all of it goes with the model.
        keeps = self, instruments, optimizers
        for module in called:
            self._hooks.before(module, weakly(self._before_forward), keeps)
            self._hooks.after(module, weakly(self._after_forward))
        if not self._tells:
            self._handles = [
                register_optimizer_step_pre_hook(weakly(self._before_step)),
                register_optimizer_step_post_hook(weakly(self._after_step)),
            ]
        if self._records(0):
            instruments.arm()

    def _before_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        if not self._is_own(module) or self._inside not in (None, id(module)) or in_backward():
            return
        self._inside = id(module)
        self._begin_pass(kwargs)

    def _block_entered(self) -> None:
        """The first block is entered, perhaps by a loop that does not call the model."""
        instruments = self.instruments
        if self._inside is not None or instruments is None:
            return
        if self._optimizers or not instruments.passes or instruments.came:
            self._begin_pass({})

    def _begin_pass(self, kwargs: Mapping[str, Any]) -> None:
        instruments = self.instruments
        if instruments is None or self._closure is not None:
            return
        self._live = torch.is_grad_enabled() and not in_transform()
        if torch.is_grad_enabled() and not self._live:
            self.notes.setdefault(
                "transforms", "forward passes inside of torch.func or torch.jit are not recorded"
            )
        if self._live:
            if self._optimizers:
                self._end_step()
            elif instruments.was_thrown():
                self._thrown(False)
            self._sums_losses = "num_items_in_batch" in kwargs
            self._passes += 1
            self._is_late = False
        instruments.begin_pass(self._live)

    def _after_forward(
        self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any
    ) -> None:
        if id(module) != self._inside or not self._is_own(module):
            return
        self._inside = None
        if not self._live or self._closure is not None:
            return
        loss = self.loss_of(output) if self.loss_of is not None else _loss_in(output)
        if loss is not None:
            self._add(loss, told=False)
        elif (some := next((x for x in tensors(output) if x.requires_grad), None)) is not None:
            some.register_hook(weakly(self._backward_began))

    def _is_own(self, module: nn.Module) -> bool:
        """Whether it is no copy, which may have copies of the hooks."""
        return id(module) in self._own

    def _add(self, value: Tensor | float, told: bool, weight: float | None = None) -> None:
        """Add a loss to the present step."""
        is_tensor = isinstance(value, Tensor)
        number = value.detach() if is_tensor else torch.tensor(float(value))
        one = _Loss(number.double().reshape(()).clone(), told, self._passes)
        if weight is not None:
            one.weight = torch.tensor(weight, dtype=torch.float64)
        elif is_tensor and value.requires_grad:
            one.is_hooked = True
            one.is_divided = _is_divided(value)
            value.register_hook(weakly(self._weighed, one))
        self._losses.append(one)

    def _backward_began(self, gradient: Tensor) -> None:
        if (instruments := self.instruments) is not None:
            instruments.backward_began()

    def _weighed(self, loss: _Loss, gradient: Tensor) -> None:
        """A backward pass begins at a loss; its gradient says how often the loss counts."""
        instruments = self.instruments
        if instruments is None or not in_backward():
            return
        instruments.backward_began()
        loss.weight = gradient.detach().double().sum()
        loss.is_scaled = instruments.scaler is not None and instruments.scaler._scale is not None
        if loss.is_scaled:
            loss.weight = loss.weight / instruments.scaler._scale.to(loss.weight)

    def _backward_ended(self) -> None:
        self._since += 1

    def _thrown(self, keeps_pass: bool) -> None:
        """Gradients of this step were cleared and no optimizer took them."""
        self.skipped += 1
        self._since = 0
        self._losses = [
            one
            for one in self._losses
            if keeps_pass
            and one.number == self._passes
            and not (one.is_hooked and one.weight is not None)
        ]
        if (instruments := self.instruments) is not None:
            instruments.forget(keeps_pass)

    def _owns(self, optimizer: Any) -> bool:
        """Whether an optimizer changes parameters of the model."""
        model = self._model()
        if model is None or self.status != "running":
            return False
        groups = getattr(optimizer, "param_groups", ())
        count = sum(len(group["params"]) for group in groups)  # groups may be added later
        if self._owned.get(optimizer, (None, False))[0] != count:
            own = {id(p) for p in model.parameters()}
            self._owned[optimizer] = count, any(id(p) in own for g in groups for p in g["params"])
        return self._owned[optimizer][1]

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Measure the gradients: now, or after the closure that computes them, as Lightning gives one."""
        if not self._owns(optimizer) or self._closure is not None:
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # args[0] is the optimizer
        if any(one is optimizer for one in self._optimizers):
            self._end_step(begins=callable(closure))
        if not callable(closure):
            self._measure_gradients(optimizer)
            return None

        def measured() -> Any:
            loss = closure()
            if self._closure is None:
                self._measure_gradients(optimizer)
            self._closure = id(optimizer)  # an optimizer that asks again does so elsewhere
            if (instruments := self.instruments) is not None:
                instruments.pause()
            return loss

        if len(args) > 1:
            return (args[0], measured, *args[2:]), kwargs
        return args, {**kwargs, "closure": measured}

    def _is_recorded(self) -> Instruments | None:
        """The instruments, if they record the present step."""
        instruments = self.instruments
        armed = instruments is not None and instruments.is_armed and self._recorded == self._ended
        return instruments if armed else None

    def _measure_gradients(self, optimizer: Any) -> None:
        if (instruments := self._is_recorded()) is not None:
            try:
                instruments.gradients(optimizer)
            except Exception as error:  # a loop of somebody else's goes on
                instruments.failed(error)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        instruments = self.instruments
        if instruments is None or not self._owns(optimizer):
            return
        if self._closure not in (None, id(optimizer)):
            return
        self._closure = None
        is_first = not self._optimizers
        if all(one is not optimizer for one in self._optimizers):
            self._optimizers.append(optimizer)
        if is_first or optimizer is self.optimizer:
            self._lr = _rate(optimizer)
        self._found_inf = getattr(optimizer, "found_inf", None)
        self._most, self._since = max(self._most, self._since), 0
        if self._is_recorded() is not None:
            try:
                instruments.updates()
            except Exception as error:
                instruments.failed(error)
        elif not instruments.is_armed:
            # Here, because a compiled model does not say that its forward pass begins.
            if self._records(self._ended + 1):
                self._recorded = self._ended + 1
                instruments.arm()
            else:
                instruments.compile_again()

    def step(self, loss: Tensor | float | None = None) -> None:
        """Tell the loss of the present step, where the model's output has none: once a step, or for each of
        its backward passes. A tensor that is told before its backward pass also says whether it was divided,
        skipped or interrupted.

        Without an optimizer it also ends the step: call it once a step, between `loss.backward()` and the
        moment at which gradients are cleared.
        """
        self._tell(loss)

    def _tell(self, loss: Tensor | float | None, weight: float | None = None) -> None:
        """As `step`, of a loss that is known to count `weight` times."""
        if self.status != "running":
            raise ValueError(
                "this watch is closed: make another one with normviz.watch(model, optimizer)"
            )
        if not (self.is_main or self.is_sharded) or self._closure is not None:
            return
        if self._optimizers and any(one.is_told for one in self._losses):
            self._end_step(begins=False)  # of a loop that does not call the model
        if self._is_late and not self._optimizers and loss is not None:
            self.notes.setdefault("loss", "one was told after its step was read, and is left out")
            self._is_late = False
            return
        if loss is not None:
            self._add(loss, told=True, weight=weight)
        if self._tells and (instruments := self.instruments) is not None:
            if instruments.is_armed:
                instruments.gradients()
            self._end_step()

    # Steps

    def _records(self, step: int) -> bool:
        """Whether a step is recorded; decided once."""
        if self._decided[0] != step:
            self._decided = step, self._cadence.records(step)
        return self._decided[1]

    def _end_step(self, begins: bool = True) -> None:
        """End the present step. `begins`: the next one has not begun its forward pass."""
        instruments = self.instruments
        row = norm = None
        was_armed = self._is_recorded() is not None
        if instruments is not None and was_armed:
            norm = instruments.finish()
            row = instruments.row
        elif instruments is None and self._recorded == self._ended and self._records(self._ended):
            self.notes.setdefault(
                "the last step",
                "its layers went with the model: close the watch before the model goes",
            )
        loss, doubt = self._loss()
        self._waiting.append(
            _Waiting(self._ended, self._lr, loss, norm, row, doubt, self._found_inf)
        )
        self._is_late = loss is None
        self._note_others()
        self._losses, self._optimizers, self._found_inf = [], [], None
        for timed in self._clock.end(was_armed):
            self._cadence.note(*timed)
        self._ended += 1
        if instruments is not None and not (instruments.is_armed and self._recorded == self._ended):
            if begins and self._records(self._ended):
                self._recorded = self._ended
                instruments.arm()
            else:
                instruments.disarm(self._in_place and self._inside is not None)
        due = time.perf_counter() - self._flushed >= FLUSH_SECONDS or self._ended == 1
        if due or (row is not None and self._reads_each):
            self._read()
        self._clock.begin()

    def _note_others(self) -> None:
        """Say that optimizers were recorded that were not given, beside one that was."""
        given = [one for one in self._optimizers if any(it() is one for it in self._given)]
        known = {id(p) for one in given for group in one.param_groups for p in group["params"]}
        for one in self._optimizers:
            if given and not any(
                id(p) in known for group in one.param_groups for p in group["params"]
            ):
                self.notes.setdefault(
                    "optimizers",
                    f"the steps of {type(one).__name__}, which was not given, are recorded too",
                )

    def _loss(self) -> tuple[Tensor | None, Tensor | None]:
        """The loss of the step, and (of several backward passes) how often all of them count together.

        A loss is left out if it waits for a backward pass that never came. Where the passes count once
        together, as after a division by their number, it is their mean; else it is not told which is meant.
        """
        told = [one for one in self._losses if one.is_told]
        losses = told or self._losses
        weighed = [one for one in losses if one.weight is not None]
        if weighed:
            losses = weighed
        elif not told:
            losses = [one for one in losses if not one.is_hooked]
        if len(losses) < 2:
            return (losses[0].value if losses else None), None
        values = torch.stack([one.value.to(losses[0].value.device) for one in losses])
        if self._sums_losses:
            return values.sum(), None
        divided = all(one.is_divided for one in losses)
        plain = values.sum() if divided else values.mean()
        self._unsaid = (
            "the loss of a step is the sum of the losses of its backward passes, because each was divided"
            if divided
            else "the loss of a step is the mean of the losses that its backward passes told"
        )
        if not weighed:
            return plain, torch.full_like(plain, torch.inf)
        found = self.instruments.scale if self.instruments is not None else None
        weights = torch.stack(
            [
                (one.weight if one.is_scaled or found is None else one.weight / found).to(values)
                for one in losses
                if one.weight is not None
            ]
        )
        total = weights.sum()
        return torch.where(total <= ONCE, (weights * values).sum() / total, plain), total

    def flush(self) -> None:
        """Read what was recorded since the last time: one transfer from the device. A step that an optimizer
        took is over then."""
        if self._optimizers and self._closure is None:
            self._end_step()
        self._read()

    def _read(self) -> None:
        self._flushed = time.perf_counter()
        waiting, self._waiting = self._waiting, []
        if not waiting or not self.is_main:
            return
        with torch.no_grad():
            rows = read_rows([one.row for one in waiting if one.row is not None])
            losses = _numbers([one.loss for one in waiting])
            norms = _numbers([one.norm for one in waiting])
            doubts = _numbers([one.doubt for one in waiting])
            skips = _numbers([one.found_inf for one in waiting])
        at = [KEYS.index(key) for key in self.keys]
        fresh: list[Step] = []
        for one, loss, norm, doubt, skip in zip(waiting, losses, norms, doubts, skips, strict=True):
            layers = None if one.row is None else next(rows)
            if skip > 0:  # inside of a fused optimizer
                self.skipped += 1
                continue
            if doubt > ONCE and self._unsaid is not None:
                self.notes.setdefault("accumulation", self._unsaid)
            if self.bad is None:
                self.bad = first_bad(one.number, loss, norm, layers)
            layers = None if layers is None else layers[at]
            fresh.append(Step(one.number, loss, one.lr, norm, layers))
        self._steps += fresh
        for sink in self._sinks:
            sink.append(fresh)
        for display in self._displays:
            display.update()

    # What came out

    @property
    def missing(self) -> list[str]:
        """What is not recorded, a sentence each."""
        self.flush()
        return self.missing_so_far

    @property
    def missing_so_far(self) -> list[str]:
        """What is not recorded of the steps that were read."""
        sentences = [f"{about}: {words}" for about, words in self.notes.items()]
        if self.placement_note:
            sentences.append(f"placement not told: {self.placement_note}")
        unknown = sum(math.isnan(step.loss) for step in self._steps)
        if unknown and unknown == len(self._steps):
            sentences.append(
                "no loss is recorded, because the model's output has none: call watch.step(loss) before "
                "optimizer.step(), or give loss=a function of the output"
            )
        elif unknown:
            sentences.append(
                f"no loss is recorded at {unknown} steps: watch the compiled model, or call watch.step(loss)"
            )
        recorded = [step.layers for step in self._steps if step.layers is not None]
        if recorded:
            seen = np.any(~np.isnan(np.stack(recorded)), axis=(0, 2)).tolist()
            names = [PROBES[key].label for i, key in enumerate(self.keys) if not seen[i]]
            if names:
                sentences.append(f"not recorded: {', '.join(names)}")
        if self.skipped:
            sentences.append(
                f"{self.skipped} {'step was' if self.skipped == 1 else 'steps were'} skipped: gradients were "
                "cleared and the optimizer did not take "
                "them (after an overflow; or by a method of two passes a step, whose last one is recorded)"
            )
        if not self._ended and self.skipped and not self._tells:
            sentences.append(
                "no step is recorded: no torch.optim.Optimizer with parameters of the model took one; leave "
                "the optimizer out and call watch.step(loss) before gradients are cleared"
            )
        elif self._since > max(PASSES, 2 * self._most) and not self._tells:
            sentences.append(
                f"no step is recorded of the last {self._since} backward passes: no torch.optim.Optimizer "
                "with parameters of the model took one"
            )
        if self._tells:
            sentences.append("no update is measured without an optimizer")
        return sentences

    @property
    def steps(self) -> list[Step]:
        """The steps that were read so far."""
        return self._steps

    @property
    def result_words(self) -> str:
        """What became of it so far, in words."""
        return self.recording.verdict.sentence

    @property
    def result(self) -> Result:
        """The run so far, as `train` gives one: `.tables()`, `.to_parquet()`, `.html()`."""
        self.flush()
        return self.recording

    @property
    def recording(self) -> Result:
        """What was read so far, without reading more from the device."""
        instruments = self.instruments
        stream = None if instruments is None else instruments.stream
        width = self.settings.width if stream is None else stream.width
        notes = tuple(self.missing_so_far)
        settings = self.settings = self.settings.replace(notes=notes, width=width)
        steps = Steps.of(self._steps, self.settings.blocks)
        if not len(steps.layers):
            empty = np.empty((0, len(self.keys), self.settings.blocks + 1))
            steps = Steps(step=steps.step, loss=steps.loss, lr=steps.lr, grad_norm=steps.grad_norm,
                          layer_steps=steps.layer_steps, layers=empty)  # fmt: skip
        status = "diverged" if self.bad and self.status != "running" else self.status
        return Result(
            settings, self.started, status, self.bad, began=self._began, ended=time.time(),
            probes=self.keys, steps=steps,
        )  # fmt: skip

    def close(self, status: Literal["finished", "stopped"] = "finished") -> None:
        """Remove every hook and store the run as finished. A second call does nothing."""
        if self.status != "running":
            return
        self._closure = None
        with contextlib.ExitStack() as after:
            if (instruments := self.instruments) is not None:
                after.callback(instruments.disarm)
            for handle in self._handles:
                after.callback(handle.remove)
            after.callback(self._hooks.remove)
            try:
                self.flush()
            except Exception as error:  # a model may go while torch.func or a compiler is at work
                self.failed(error)
        self._handles.clear()
        self.status = status
        OPEN.discard(self)
        result = self.recording
        for sink in self._sinks:
            sink.end(result)
        for display in self._displays:
            display.end()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close("finished" if kind is None else "stopped")

    def _repr_html_(self) -> str:
        """The run so far as the player, as a notebook shows it."""
        return self.result._repr_html_()

    def _ipython_display_(self) -> None:
        """Live charts while the run goes on, in the output of the cell; afterwards the player."""
        from .notebook import Notebook

        shown = Notebook(self)
        if self.status == "running":
            self._displays.append(shown)
            self.flush()
            shown.update()
        else:
            shown.end()

    def __repr__(self) -> str:
        settings, n = self.settings, self.step_number
        norm = f", {NORMS.label(settings.norm)}" if settings.norm and settings.norm in NORMS else ""
        return (
            f"Watch({settings.label}{norm}: {settings.blocks} blocks at {settings.where}, "
            f"width {settings.width}; {n} steps)"
        )


def watch(model: nn.Module, optimizer: Any = None, **options: Any) -> Watch:
    """Watch a model while the caller trains it with an optimizer or a list of them; returns a `Watch`, whose
    `findings` are the known bugs of norms that the model has (as of `normviz doctor`; they are logged too).

    blocks   path of the list of blocks, as "model.layers"; found by itself where it is left out
    every    "auto" (the first 32 steps, then so many that the extra time stays below 2 %), or a number
    probes   keys of the quantities (`normviz list`); all by default
    loss     a function of the model's output that returns the loss, where the output has none
    name     what the run is called; the model's class by default
    to       "store" (the app's History page); "wandb", "trackio" or "tensorboard" there as well; a path that
             ends in .html or .zip; or None
    show     "terminal" for live charts there
    scaler   the GradScaler; left out, it is found at the first step that it takes

    Raises ValueError, with one sentence, for options that are not allowed and for a model without blocks.
    """
    return Watch(model, optimizer, **options)


class Cadence:
    """Which steps are recorded."""

    def __init__(self, every: Literal["auto"] | int, is_sharded: bool) -> None:
        self.every, self.is_sharded = every, is_sharded
        self.gap, self.next = SHARDED if is_sharded else 0, 0
        self.with_probes: deque[float] = deque(maxlen=9)
        self.without: deque[float] = deque(maxlen=33)

    def records(self, step: int) -> bool:
        """Whether a step is recorded."""
        if isinstance(self.every, int):
            return step % self.every == 0
        if step < FIRST:
            return True
        if step < FIRST + PLAIN and not self.is_sharded:
            return False
        if step < self.next:
            return False
        self.next = step + max(1, self.gap or self._gap())
        return True

    def note(self, recorded: bool, seconds: float) -> None:
        """Take the time of a step into account."""
        (self.with_probes if recorded else self.without).append(seconds)

    def _gap(self) -> int:
        """Steps from one recorded step to the next, so that the extra time is at most SHARE of all."""
        if not self.with_probes or not self.without:
            return PLAIN
        plain = statistics.median(self.without)
        extra = max(0.0, statistics.median(self.with_probes) - plain)
        return min(SPARSEST, max(1, math.ceil(extra / (SHARE * max(plain, 1e-9)))))


def first_bad(step: int, loss: float, norm: float, layers: Any) -> Diverged | None:
    """Where a step is not finite (inf; NaN was not measured): the first block whose stream is not, else the
    loss, else the last block whose gradient is not."""
    if layers is not None:
        bad = np.flatnonzero(np.isinf(layers[KEYS.index("stream_rms")]))
        if len(bad):
            return Diverged(step, int(bad[0]), "activation")
    if math.isinf(loss):
        return Diverged(step, None, "loss")
    if layers is not None and math.isinf(norm):
        blocks = np.flatnonzero(np.isinf(layers[KEYS.index("grad_block")]))
        return Diverged(step, int(blocks[-1]) if len(blocks) else None, "gradient")
    return None


def _observed(model: nn.Module, stack: Stack, record: StackFound | None, name: str) -> Observed:
    """What is known of the model, with its stack's `record` where it could be traced."""
    widths = [p.shape[-1] for p in stack.blocks[0].parameters() if p.ndim == 1]
    return Observed(
        model=(name or type(model).__name__)[:200],
        blocks=len(stack.blocks),
        width=(record.width if record else None) or max(widths, default=1),
        placement=record.placement if record else None,
        norm=record.norm_key if record else None,
        parameters=sum(p.numel() for p in model.parameters()),
        path=stack.path,
        run=uuid.uuid4().hex[:12],
    )


def _check(every: Any, probes: Any, to: Any, show: Any) -> None:
    """Raises ValueError for options that are not allowed."""
    if every != "auto" and (not isinstance(every, int) or isinstance(every, bool) or every < 1):
        raise ValueError(f"every is {every!r}, allowed is 'auto' or a whole number from 1")
    unknown = [key for key in probes or () if key not in KEYS]
    if unknown:
        raise ValueError(f"probes names {unknown[0]!r}, allowed are {', '.join(KEYS)}")
    if show not in (None, "terminal"):
        raise ValueError(f"show is {show!r}, allowed is 'terminal' or None")
    if to not in ("store", None, *TRACKERS) and Path(to).suffix not in (".html", ".zip"):
        raise ValueError(
            f"to is {str(to)!r}, allowed is 'store', a path that ends in .html (a replay) or .zip (Parquet "
            f"tables), {', '.join(map(repr, TRACKERS))}, or None"
        )


_WRAPPERS = (nn.parallel.DistributedDataParallel, nn.DataParallel)


def _rank() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if there else 0


def _inner_optimizers(given: Any) -> list[Any]:
    """The optimizers of torch, out of wrappers as accelerate's. Raises ValueError."""
    every = [given] if not isinstance(given, list | tuple) else given
    found = []
    for optimizer in every:
        inner = getattr(optimizer, "optimizer", None)
        innermost = inner if isinstance(inner, torch.optim.Optimizer) else optimizer
        if innermost is None:
            continue
        if not hasattr(innermost, "register_step_pre_hook"):
            raise ValueError(
                f"optimizer is a {type(innermost).__name__}, allowed is a torch.optim.Optimizer, a list of "
                "them, or none: then call watch.step(loss) once a step"
            )
        found.append(innermost)
    return found


def _is_divided(loss: Tensor) -> bool:
    """Whether the last thing that happened to a loss is a division, or a product with a number below 1."""
    made = type(loss.grad_fn).__name__
    if made != "MulBackward0":
        return made == "DivBackward0"
    try:
        factor = loss.grad_fn._saved_other  # pyrefly: ignore[missing-attribute]
    except RuntimeError:  # its backward pass has come
        return False
    return isinstance(factor, Tensor) and factor.device.type == "cpu" and 0 < float(factor) < 1


def _rate(optimizer: Any) -> float:
    try:
        return float(optimizer.param_groups[0]["lr"])
    except (KeyError, IndexError, TypeError):  # it has none of its own
        return 0.0


def _called(model: nn.Module, inner: nn.Module, path: str) -> list[nn.Module]:
    """The modules from the model to its blocks that a loop may call: of a compiled model itself alone,
    because hooks on what is in it would be compiled too."""
    if model is not inner and not isinstance(model, _WRAPPERS):
        return [model]
    parts = path.split(".")
    inside = [inner.get_submodule(".".join(parts[:n])) for n in range(len(parts))]
    if any(getattr(module, "_compiled_call_impl", None) is not None for module in (model, *inside)):
        return [model]
    written = [m for m in inside if type(m).forward not in (UNWRITTEN, nn.ModuleList.forward)]
    return [model, *(m for m in written if m is not model)]


def _loss_in(output: Any) -> Tensor | None:
    """The loss in what a model returned: what is called so, or the only number with a gradient."""
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(named, Tensor) and named.numel() == 1:
        return named
    parts = output if isinstance(output, list | tuple) else (output,)
    numbers = [x for x in parts if isinstance(x, Tensor) and x.ndim == 0 and x.requires_grad]
    return numbers[0] if len(numbers) == 1 else None


def _numbers(values: list[Tensor | None]) -> list[float]:
    """The numbers on the host; NaN where there is none, and inf where one is not finite."""
    there = [x.double().reshape(()) for x in values if x is not None]
    devices = {x.device for x in there}
    stacked = (
        torch.stack([x.to(there[0].device) for x in there] if len(devices) > 1 else there).tolist()
        if there
        else []
    )
    numbers = iter(stacked)
    return [
        math.nan if x is None else (y if math.isfinite(y := next(numbers)) else math.inf)
        for x in values
    ]


# Where a run goes.


def _sinks(to: str | Path | None, watcher: Watch) -> list[Any]:
    """Where the run is written to. Raises ValueError."""
    if to is None:
        return []
    if to in TRACKERS:
        return [tracker(str(to), watcher.settings, watcher.keys), *_sinks("store", watcher)]
    if to != "store":
        return [_File(Path(to))]
    try:
        return [_Stored(watcher)]
    except StoreError as error:
        LOG.warning("the run is not stored: %s", error)
        return []


class _Stored:
    """Writes the run to the store as it comes."""

    def __init__(self, watcher: Watch) -> None:
        self.store = Store()
        self.run = self.store.observe(watcher.settings, watcher.started, watcher.keys)

    def append(self, steps: list[Step]) -> None:
        try:
            self.store.append(self.run, steps)
        except StoreError as error:
            LOG.warning("steps were not stored: %s", error)

    def end(self, result: Result) -> None:
        try:
            self.store.end_observed(self.run, result)
        except StoreError as error:
            LOG.warning("the end of the run was not stored: %s", error)


class _File:
    """Writes the run to a file when it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, steps: list[Step]) -> None:
        pass

    def end(self, result: Result) -> None:
        if self.path.suffix == ".zip":
            result.to_parquet(self.path)
        else:
            self.path.write_text(result.html(), encoding="utf-8")
