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
import logging
import math
import statistics
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..catalog import NORMS, PROBES
from ..observed import Observed
from ..result import Result
from ..runs import Steps
from ..runs.store import Store, StoreError
from ..training.events import Diverged, Started, Step
from .anatomy import inspect_model
from .instruments import KEYS, Instruments, Row, read_rows
from .report import StackFound
from .stack import Stack, find_stacks, main_stack

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
UNWRITTEN = nn.Module.forward
"""The forward pass of a module that has none."""


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
        _check(every, probes, to, show)
        self.model, self.every, self.loss_of = model, every, loss
        inner = getattr(model, "_orig_mod", model)
        inner = getattr(inner, "module", inner) if isinstance(inner, _WRAPPERS) else inner
        stack = _stack(inner, blocks)
        self.is_main = _rank() == 0
        self.is_sharded = any(hasattr(p, "device_mesh") for p in inner.parameters())
        self.instruments = Instruments(inner, stack, scaler)
        self.placement_note = ""
        looks = self.is_main and not self.is_sharded
        record = self._inspected(inner, stack.path) if looks else None
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
        self.step_number = self.skipped = self.clipped = 0
        self.bad: Diverged | None = None
        self.status: Literal["running", "finished", "stopped", "diverged"] = "running"
        self._steps: list[Step] = []
        self._waiting: list[tuple[int, float, Tensor | None, Tensor | None, Row | None]] = []
        self._losses: list[Tensor] = []
        self._sums_losses = False
        self._told: list[Tensor] = []
        self._closed = False
        self._live = False
        self._norm: Tensor | None = None
        self._cadence = Cadence(every, self.is_sharded)
        # On a CPU other work on the machine does not count; elsewhere this thread only waits.
        self._clock = time.thread_time if first.device.type == "cpu" else time.perf_counter
        self._last = self._clock()
        self._flushed = time.perf_counter()
        self._handles: list[Any] = []
        self._displays: list[Any] = []
        self.optimizer = _inner_optimizer(optimizer)
        self._began = time.time()
        self._sink = _sink(to, self) if self.is_main else None
        if show == "terminal" and self.is_main:
            from .terminal import Terminal

            self._displays.append(Terminal(self))
        if self.is_main or self.is_sharded:
            self._install()
        atexit.register(self.close)  # a loop that ends need not say so

    def _inspected(self, model: nn.Module, path: str) -> StackFound | None:
        """What the anatomy of the model says of the watched stack; None where it can't be traced. A module
        that trains without being called, as Lightning's, is left out: what is in it has the stack."""
        parts = path.split(".")
        for depth in range(len(parts)):
            start = ".".join(parts[:depth])
            inner = model.get_submodule(start)
            if type(inner).forward in (UNWRITTEN, nn.ModuleList.forward):
                continue
            try:
                stacks = inspect_model(inner).stacks
            except ValueError as error:
                self.placement_note = self.placement_note or str(error)
                continue
            self.placement_note = ""
            rest = path.removeprefix(f"{start}.") if start else path
            return next((stack for stack in stacks if stack.path == rest), None)
        return None

    # Hooks

    def _install(self) -> None:
        self._handles.append(
            self.model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        )
        self._handles.append(self.model.register_forward_hook(self._after_forward))
        if self.optimizer is not None:
            self._handles += [
                self.optimizer.register_step_pre_hook(self._before_step),
                self.optimizer.register_step_post_hook(self._after_step),
            ]
        self._prepare()

    def _before_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            return
        self._live = module.training and torch.is_grad_enabled()
        self.instruments.is_live = self._live
        if not self._live or self._closed:
            return
        self._sums_losses = "num_items_in_batch" in kwargs
        if self._losses and self.instruments.asked_at is not None and self._was_skipped():
            self.skipped += 1
            self._forget()

    def _was_skipped(self) -> bool:
        """Whether the gradients of the last backward pass were thrown away without a step."""
        parameters = [p for own in self.instruments.parameters for p in own if p.requires_grad]
        return bool(parameters) and all(p.grad is None for p in parameters)

    def _after_forward(self, module: nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or not self._live or self._closed:
            return
        loss = self.loss_of(output) if self.loss_of is not None else _loss_in(output)
        if loss is not None:
            self._losses.append(loss.detach().clone())

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Measure the gradients: now, or after the closure that computes them, as Lightning gives one."""
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # args[0] is the optimizer
        if not callable(closure):
            self._measure_gradients()
            return None

        def measured() -> Any:
            loss = closure()
            self._measure_gradients()
            self._closed = True  # an optimizer that asks again does so elsewhere
            return loss

        if len(args) > 1:
            return (args[0], measured, *args[2:]), kwargs
        return args, {**kwargs, "closure": measured}

    def _measure_gradients(self) -> None:
        if self.instruments.is_armed and not self._closed:
            self._norm = self.instruments.gradients()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        row = None
        if self.instruments.is_armed:
            self.instruments.updates()
            row = self.instruments.row
        self._end_step(row)

    def step(self, loss: Tensor | float | None = None) -> None:
        """Tell the loss of the present step, where the model's output has none: before `optimizer.step()`.
        Of a step of several micro-batches the mean of what was told counts.

        Without an optimizer it also ends the step: call it once a step, between `loss.backward()` and the
        moment at which gradients are cleared.
        """
        if self.status != "running":
            raise ValueError(
                "this watch is closed: make another one with normviz.watch(model, optimizer)"
            )
        if loss is not None and not self._closed:
            told = loss.detach() if isinstance(loss, Tensor) else torch.tensor(float(loss))
            self._told.append(told.double().clone())
        if self.optimizer is None and (self.is_main or self.is_sharded):
            row = None
            if self.instruments.is_armed:
                self._norm = self.instruments.gradients()
                row = self.instruments.row
            self._end_step(row)

    # Steps

    def _prepare(self) -> None:
        """Decide whether the next step is recorded."""
        if self._cadence.records(self.step_number):
            self.instruments.arm()

    def _forget(self) -> None:
        """Begin the present step again."""
        was_armed = self.instruments.is_armed
        self.instruments.disarm()
        self._losses, self._told, self._norm = [], [], None
        if was_armed:
            self.instruments.arm()

    def _end_step(self, row: Row | None) -> None:
        was_armed = self.instruments.is_armed
        self.instruments.disarm()
        self._waiting.append((self.step_number, self._rate(), self._loss(), self._norm, row))
        self._losses, self._told, self._norm, self._closed = [], [], None, False
        self._cadence.note(was_armed, self._clock() - self._last)
        self.step_number += 1
        if time.perf_counter() - self._flushed >= FLUSH_SECONDS or self.step_number == 1:
            self.flush()
        self._last = self._clock()
        self._prepare()

    def _rate(self) -> float:
        if self.optimizer is None:
            return 0.0
        return float(self.optimizer.param_groups[0]["lr"])

    def _loss(self) -> Tensor | None:
        if self._told:
            return torch.stack(self._told).mean()
        if len(self._losses) < 2:
            return self._losses[0] if self._losses else None
        total = torch.stack([x.double() for x in self._losses])
        return total.sum() if self._sums_losses else total.mean()

    def flush(self) -> None:
        """Read what was recorded since the last time: one transfer from the device."""
        self._flushed = time.perf_counter()
        waiting, self._waiting = self._waiting, []
        if not waiting or not self.is_main:
            return
        with torch.no_grad():
            rows = read_rows([row for *_, row in waiting if row is not None])
            losses = _numbers([loss for _, _, loss, _, _ in waiting])
            norms = _numbers([norm for _, _, _, norm, _ in waiting])
        at = [KEYS.index(key) for key in self.keys]
        fresh: list[Step] = []
        for (number, lr, _, _, row), loss, norm in zip(waiting, losses, norms, strict=True):
            layers = None if row is None else next(rows)
            if self.bad is None:
                self.bad = first_bad(number, loss, norm, layers)
            fresh.append(Step(number, loss, lr, norm, None if layers is None else layers[at]))
        self._steps += fresh
        if self._sink is not None:
            self._sink.append(fresh)
        for display in self._displays:
            display.update()

    # What came out

    @property
    def missing(self) -> list[str]:
        """What is not recorded, a sentence each."""
        sentences = [f"{about}: {words}" for about, words in self.instruments.notes.items()]
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
            sentences.append(f"{self.skipped} steps were skipped: the optimizer did not take them")
        if self.optimizer is None:
            sentences.append("no update is measured without an optimizer")
        return sentences

    @property
    def steps(self) -> list[Step]:
        """The steps that were read so far."""
        return self._steps

    @property
    def result_words(self) -> str:
        """What became of it so far, in words."""
        return self._recording().verdict.sentence

    @property
    def result(self) -> Result:
        """The run so far, as `train` gives one: `.tables()`, `.to_parquet()`, `.html()`."""
        self.flush()
        return self._recording()

    @property
    def recording(self) -> Result:
        """What was read so far, without reading more from the device."""
        return self._recording()

    def _recording(self) -> Result:
        stream = self.instruments.stream
        width = self.settings.width if stream is None else stream.width
        settings = self.settings = self.settings.replace(notes=tuple(self.missing), width=width)
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
        self.instruments.disarm()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.flush()
        self.status = status
        atexit.unregister(self.close)
        if self._sink is not None:
            self._sink.end()
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
            f"Watch({settings.label}{norm}: {settings.blocks} blocks at {settings.path}, "
            f"width {settings.width}; {n} steps)"
        )


def watch(model: nn.Module, optimizer: Any = None, **options: Any) -> Watch:
    """Watch a model while the caller trains it; returns a `Watch`.

    blocks   path of the list of blocks, as "model.layers"; found by itself where it is left out
    every    "auto" (the first 32 steps, then so many that the extra time stays below 2 %), or a number
    probes   keys of the quantities (`normviz list`); all by default
    loss     a function of the model's output that returns the loss, where the output has none
    name     what the run is called; the model's class by default
    to       "store" (the app's Runs page), a path that ends in .html or .zip, or None
    show     "terminal" for live charts there
    scaler   the GradScaler, where there is one

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


def _stack(model: nn.Module, blocks: str | None) -> Stack:
    """The blocks to watch. Raises ValueError if there are none, or if they are one module."""
    stack = main_stack(find_stacks(model, blocks))
    if len(set(map(id, stack.blocks))) < len(stack.blocks):
        raise ValueError(
            f"the blocks of {type(model).__name__} at {stack.path} are one module that is called several "
            "times, and what each call adds can't be told apart"
        )
    return stack


def _observed(model: nn.Module, stack: Stack, record: StackFound | None, name: str) -> Observed:
    """What is known of the model, with its stack's `record` where it could be traced."""
    widths = [p.shape[-1] for p in stack.blocks[0].parameters() if p.ndim == 1]
    return Observed(
        model=(name or type(model).__name__)[:200],
        blocks=len(stack.blocks),
        width=(record.width if record else None) or max(widths, default=1),
        placement=record.placement if record else None,
        norm=record.norm_key if record else None,
        parameters=sum({id(p): p.numel() for p in model.parameters()}.values()),
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
    if to not in ("store", None) and Path(to).suffix not in (".html", ".zip"):
        raise ValueError(
            f"to is {str(to)!r}, allowed is 'store', a path that ends in .html (a replay) or .zip (Parquet "
            "tables), or None"
        )


_WRAPPERS = (nn.parallel.DistributedDataParallel, nn.DataParallel)


def _rank() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if there else 0


def _inner_optimizer(optimizer: Any) -> Any:
    """The optimizer of torch inside of a wrapper, as accelerate's."""
    inner = getattr(optimizer, "optimizer", None)
    innermost = inner if isinstance(inner, torch.optim.Optimizer) else optimizer
    if innermost is not None and not hasattr(innermost, "register_step_pre_hook"):
        raise ValueError(
            f"optimizer is a {type(innermost).__name__}, allowed is a torch.optim.Optimizer, or none: then "
            "call watch.step(loss) once a step"
        )
    return innermost


def _loss_in(output: Any) -> Tensor | None:
    """The loss in what a model returned: what is called so, or the only number with a gradient."""
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(named, Tensor) and named.numel() == 1:
        return named.reshape(())
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


def _sink(to: str | Path | None, watcher: Watch) -> Any:
    if to is None:
        return None
    if to != "store":
        return _File(Path(to), watcher)
    try:
        return _Stored(watcher)
    except StoreError as error:
        LOG.warning("the run is not stored: %s", error)
        return None


class _Stored:
    """Writes the run to the store as it comes."""

    def __init__(self, watcher: Watch) -> None:
        self.watch = weakref.proxy(watcher)
        self.store = Store()
        self.run = self.store.observe(watcher.settings, watcher.started, watcher.keys)

    def append(self, steps: list[Step]) -> None:
        try:
            self.store.append(self.run, steps)
        except StoreError as error:
            LOG.warning("steps were not stored: %s", error)

    def end(self) -> None:
        result = self.watch.result
        try:
            self.store.end_observed(self.run, result)
        except StoreError as error:
            LOG.warning("the end of the run was not stored: %s", error)


class _File:
    """Writes the run to a file when it ends."""

    def __init__(self, path: Path, watcher: Watch) -> None:
        self.path, self.watch = path, weakref.proxy(watcher)

    def append(self, steps: list[Step]) -> None:
        pass

    def end(self) -> None:
        result = self.watch.result
        if self.path.suffix == ".zip":
            result.to_parquet(self.path)
        else:
            self.path.write_text(result.html(), encoding="utf-8")
