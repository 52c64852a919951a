"""The instruments of a watched model: hooks that exist during one recorded step, and what they measure.

Every number is reduced at once into one row of a device buffer; nothing is read back before the step is over.
The definitions are those of `catalog.PROBES`, except where the class says what is sampled.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..catalog.probes import recorded_by
from ..training.probes.instruments import token_cosine
from .flow import Flow, Plan, wide
from .hooks import EagerStance, Hooks, in_transform, weakly
from .norms import tell
from .stack import Call, Stack, Stream, arguments, channel_axis, find_stream

KEYS = recorded_by("one")
"""The rows of a recorded step: what a model with one stream has."""
SEQUENCES = 8
"""The token cosine is of so many sequences of a batch at most."""
ENTRIES = 2**20
"""The median of a stream is of so many of its numbers at most, evenly spaced."""
WEIGHTS = 2**16
"""The update over the weights is of so many numbers of a block at most, evenly spaced."""
CLIPPED = 1e-5
"""Gradients were scaled between backward pass and step where their norm changed by more than this share."""

LOG = logging.getLogger(__name__)
Row = Tensor
"""[len(KEYS), blocks + 1] what was measured in a step; column 0 is the input of the first block."""
Sizes = dict[tuple[int, int], Tensor]
"""Norms of gradients, by the identity of a parameter and 0, or by it and the number of a part of it."""
_measuring: weakref.WeakKeyDictionary[nn.Module, Flow] = weakref.WeakKeyDictionary()
"""The flows that measure a block now. A second watch of the same blocks reads them."""


class Instruments:
    """Records one training step at a time of a model that somebody else trains.

    What is sampled: the token cosine is of SEQUENCES sequences, medians of ENTRIES numbers, attention of as
    many sequences and heads as have `flow.ENTRIES` logits, and the update of WEIGHTS numbers a block. Smaller
    models are measured whole. With accumulation, what is measured forwards is of the first micro-batch.
    Gradients are those that the backward passes left, before clipping. A pass whose gradients were cleared
    without a step is no part of one.
    """

    def __init__(
        self,
        model: nn.Module,
        stack: Stack,
        scaler: Any = None,
    ) -> None:
        self._model, self.stack, self.scaler = weakref.ref(model), stack, scaler
        self.depth = len(stack.blocks)
        self.rows: dict[nn.Module, list[int]] = {}
        """The rows of each block: one for each of its calls in a forward pass."""
        for index, block in enumerate(stack.blocks):
            self.rows.setdefault(block, []).append(index)
        self.stream: Stream | None = None
        self.plans: list[Plan | None] = [None] * self.depth
        self.notes: dict[str, str] = {}
        self.parameters = _by_block(stack)
        self.scales = [norm_scales(block) for block in stack.blocks]
        self.start = [[p.detach().clone() for p in own] for own in self.scales]
        self.batch_first = all(
            getattr(m, "batch_first", True) for block in stack.blocks for m in block.modules()
        )
        self.is_sharded = any(hasattr(p, "device_mesh") for own in self.parameters for p in own)
        self.is_armed = False
        self.on_block: Callable[[], None] = lambda: None
        """Called as the first block is entered outside of a forward pass that the watch sees."""
        self.on_thrown: Callable[[], None] = lambda: None
        """Called as a backward pass begins after an earlier one whose gradients were cleared."""
        self.on_backward: Callable[[], None] = lambda: None
        """Called after a backward pass that left gradients."""
        self._hooks = Hooks()
        self._stance: EagerStance | None = None
        self.open: list[tuple[int, Flow | None, Flow | None, dict[int, str]]] = []
        """Calls of blocks that have begun: row, own flow, the flow that measures it, names of parameters."""
        self.number = 0  # of the present pass, over all steps
        self._in_task = False
        self.row = self._fresh()
        self._clean()

    def __del__(self) -> None:
        self.disarm()

    def failed(self, error: Exception) -> None:
        """Say that a hook failed; what it measured in this step is a gap."""
        LOG.warning("a probe of normviz.watch failed", exc_info=error)
        self._note("probes", f"they failed at a step with {type(error).__name__}: see the log")
        self._exit_flows()
        self.is_live = False
        self.has_failed = True

    def _clean(self) -> None:
        """Forget what was recorded of the present step."""
        self.passes = 0
        self.is_live = self.is_paused = False
        self.has_failed = False
        self.calls: list[Call] = []  # of the first two blocks, until the stream is found
        self.seen: dict[nn.Module, int] = {}  # calls of each block in the present pass
        self.reached = -1  # the row of the last call
        # By pass and layer: streams with a hook, and their squared gradients of the present backward pass.
        self.hooked: set[tuple[int, int]] = set()
        self.pending: dict[tuple[int, int], Tensor] = {}
        self.uses_half = False
        self._forget_backward()

    def _forget_backward(self) -> None:
        self.came = False  # whether a backward pass left gradients
        self.mark: tuple[Tensor, int, int] | None = (
            None  # a parameter, and its gradient's state after that
        )
        self.committed: set[tuple[int, int]] = (
            set()
        )  # what `pending` had in earlier backward passes
        self.is_spoiled = False  # whether gradients at the stream can't be told
        self.squares: dict[
            int, Tensor
        ] = {}  # of gradients at the stream, by layer, over micro-batches
        self.left: Sizes = {}  # as the backward passes left them
        self.taken: Sizes = {}  # as the optimizers found them
        # By block: parameters that an optimizer is going to change, and numbers of them before that.
        self.samples: list[list[tuple[list[nn.Parameter], Tensor]]] = [
            [] for _ in range(self.depth)
        ]
        self.scale: Tensor | None = None  # of the loss, by the scaler

    def _fresh(self) -> Row:
        device = next(iter(self.stack.blocks[0].parameters())).device
        kind = torch.float32 if device.type == "mps" else torch.float64
        shape = (len(KEYS), self.depth + 1)
        there = "cpu" if device.type == "meta" else device
        return torch.full(shape, torch.nan, dtype=kind, device=there)

    def put(self, key: str, layer: int, value: Tensor) -> None:
        """Write one number into the present row: inf where it is not finite, because NaN is what was not
        measured."""
        self.row[KEYS.index(key), layer].copy_(torch.where(value.isfinite(), value, torch.inf))

    # Hooks, during recorded steps alone

    def arm(self) -> None:
        """Begin a step that is recorded, with hooks on all blocks."""
        self._exit_flows()
        self._clean()
        self.row = self._fresh()
        self.parameters = _by_block(self.stack)  # a block may have got others since
        if self.is_armed:
            return
        self.is_armed = True
        for block in self.rows:
            self._hooks.before(block, weakly(self._enters))
            self._hooks.after(block, weakly(self._leaves), always=True)
        if (
            "torch._dynamo" in sys.modules and self._stance is None
        ):  # a compiled model runs its own code in this step
            self._stance = EagerStance()

    def compile_again(self) -> None:
        """Let compiled modules run their compiled code."""
        if self._stance is not None:
            self._stance.remove()
            self._stance = None

    def disarm(self, inside: bool = False) -> None:
        """Begin a step that is not recorded, without hooks on blocks. Compiled code comes back later if this
        is `inside` of a compiled module's call."""
        self._hooks.remove()
        if not inside:
            self.compile_again()
        self._exit_flows()
        self._clean()
        self.is_armed = False

    def forget(self, keeps_pass: bool) -> None:
        """Begin the present step again, after gradients were cleared without a step. With `keeps_pass` its
        last forward pass stays, whose stream was not measured."""
        self.row.fill_(torch.nan)
        if keeps_pass:
            self._forget_backward()
        else:
            self._clean()

    def begin_pass(self, is_live: bool) -> None:
        """A forward pass of the model begins; it is live if it can be one of training."""
        self._exit_flows()  # of a pass that was interrupted
        self._in_task = False
        self.is_live = is_live and not self.has_failed
        if not is_live:
            return
        self.pending.clear()
        if not self.passes:
            self.parameters = _by_block(self.stack)
        if self.passes and not self.came:  # no backward pass came for what was measured
            self.passes = 0
            self.row.fill_(torch.nan)
        self.passes += 1
        self.number += 1
        self.seen.clear()
        self.reached = -1

    def pause(self) -> None:
        """Measure no further pass of this step: the optimizer asks for the loss elsewhere."""
        self.is_paused = True
        self.is_live = False

    def _exit_flows(self) -> None:
        for index, own, _, _ in reversed(self.open):
            self._exit(index, own)
        self.open.clear()

    def _exit(self, index: int, own: Flow | None) -> None:
        if own is not None:
            _leave(own)
            if _measuring.get(block := self.stack.blocks[index]) is own:
                del _measuring[block]

    def _enters(self, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recomputes = in_backward()
        if block is self.stack.blocks[0] and not recomputes:
            self.on_block()
        if not self._counts(block):
            return
        index = self._row(block, recomputes)
        if index is None:
            return
        if not recomputes:
            self.open.append((index, None, None, {}))
        x = self._entering(args, kwargs)
        if x is None:
            self._note("stream", "no argument of a block has the shape of its result")
            return
        self._watch_gradient(index, x)
        if recomputes:
            return
        channels = self._channels(x)
        is_first = self.passes == 1
        if is_first:
            self._measure_stream(index, x.movedim(channels, -1))
        learns = self.plans[index] is None
        names = {id(p): name for name, p in block.named_parameters()} if learns else {}
        measures = _measuring.get(block) if is_first else None
        own = None
        if learns or (is_first and measures is None):
            own = Flow(x, learns, is_first and measures is None, channels)
            if own.measures:
                measures = _measuring[block] = own
            own.__enter__()
        self.open[-1] = index, own, measures, names

    def _row(self, block: nn.Module, recomputes: bool) -> int | None:
        """The row of a call of a block; None if it has none."""
        rows = self.rows[block]
        if recomputes:  # which of several calls is computed again can't be told
            return rows[0] if len(rows) == 1 else None
        count = self.seen[block] = self.seen.get(block, 0) + 1
        if count > len(rows):
            self._repeats(rows)
            return None
        row = rows[count - 1]
        if len(rows) > 1:
            self._note(
                "calls",
                "a block that is called several times in a forward pass has a row for each call, where "
                "gradients, updates and drift of its parameters are of all calls together",
            )
            if row < self.reached:
                self.is_spoiled = True
                self._note("order", "blocks are called in another order than in evaluation mode")
        self.reached = row
        return row

    def _repeats(self, rows: Sequence[int]) -> None:
        self.is_spoiled = True
        self._note(
            f"block {rows[-1] + 1}",
            "it is called more often in a forward pass than it has rows: the stream and its branches are of "
            "the first calls, gradients of parameters are of all calls, gradients at the stream are not "
            "recorded",
        )

    def _leaves(
        self,
        block: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        if in_backward():
            if (
                result is not None
                and self._counts(block)
                and self.rows[block][-1] == self.depth - 1
            ):
                self._ends_again(block, result)
            return
        if not self.open or self.stack.blocks[self.open[-1][0]] is not block:
            return
        index, own, measured, names = self.open.pop()
        self._exit(index, own)
        if result is None or not self._counts(block):
            return
        if self.passes == 1 and index < 2 and self.stream is None:
            self._find_stream(Call(args, kwargs, result))
        if index == self.depth - 1:
            self._watch_end(result, False)
        if self.plans[index] is None and own is not None:
            self.plans[index] = own.plan(names)
        if measured is not None:
            self._measure_block(index, measured)

    def _ends_again(self, block: nn.Module, result: Any) -> None:
        """The last block is computed again."""
        if len(self.rows[block]) == 1:
            self._watch_end(result, True)
        elif (self.number, self.depth) not in self.hooked:
            self._note("the last call", "its gradient is not recorded with reentrant checkpoints")

    def _watch_end(self, result: Any, recomputes: bool) -> None:
        """The stream that leaves the last block."""
        x = self._leaving(result)
        if x is None:
            return
        self._watch_gradient(self.depth, x)
        if not recomputes and self.passes == 1:
            self._measure_stream(self.depth, x.movedim(self._channels(x), -1))

    def _counts(self, block: nn.Module) -> bool:
        """Whether a call of a block belongs to a training step. A copy of a model may have the hooks too."""
        return block in self.rows and self.is_armed and self.is_live and not in_transform()

    # The stream

    def _entering(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        if self.stream is not None:
            return self.stream.entering(args, kwargs)
        return next((x for _, x in arguments(args, kwargs)), None)

    def _channels(self, x: Tensor) -> int:
        """The axis of its channels."""
        return (
            channel_axis(self.stack.blocks[0], x.shape) if self.stream is None else self.stream.axis
        )

    def _leaving(self, result: Any) -> Tensor | None:
        if self.stream is not None:
            return self.stream.leaving(result)
        return result if isinstance(result, Tensor) else result[0]

    def _find_stream(self, call: Call) -> None:
        """Find the stream in the calls of the first two blocks; if it is another argument than the first one,
        what was measured before is thrown away."""
        self.calls.append(call)
        if len(self.calls) < min(2, self.depth):
            return
        self.stream = find_stream(self.calls, self.stack.blocks[0])
        first = next(iter(arguments(self.calls[0].args, self.calls[0].kwargs)), (None, None))[0]
        self.calls = []
        if self.stream is None:
            return
        if not self.stream.verified and self.depth > 1:
            self._note("between blocks", "the stream is changed between two blocks")
        if self.stream.others:
            self._note("streams", f"{self.stream.others} more tensors pass from block to block")
        if self.stream.argument != first:
            self.row.fill_(torch.nan)
            self.hooked.clear()  # the hooks that are there do nothing
            self.plans = [None] * self.depth

    @torch.no_grad()
    def _measure_stream(self, layer: int, x: Tensor) -> None:
        x = wide(x.detach())
        if x.ndim == 2:
            x = x[None]
        x = x.flatten(1, -2)  # [B, T, D]
        if not self.batch_first:
            x = x.transpose(0, 1)
        sizes = x.abs()
        largest = sizes.amax()
        flat = sizes.flatten()
        step = -(-flat.numel() // ENTRIES)
        squares = x.square().mean((0, 1))
        self.put("stream_rms", layer, torch.linalg.vector_norm(x) / x.numel() ** 0.5)
        self.put("stream_max", layer, largest)
        self.put("stream_max_ratio", layer, largest / flat[::step].median())
        self.put("stream_kurtosis", layer, squares.square().mean() / squares.mean().square())
        if x.shape[1] > 1:
            self.put("token_cosine", layer, token_cosine(x[None, :SEQUENCES].clone())[0])

    def _watch_gradient(self, layer: int, x: Tensor) -> None:
        """Add the squares of the gradient of a stream to those of the step's other micro-batches."""
        key = self.number, layer
        if key in self.hooked or not x.requires_grad:
            return
        self.hooked.add(key)
        x.register_hook(weakly(self._gradient, key))

    @torch.no_grad()
    def _gradient(self, key: tuple[int, int], gradient: Tensor) -> None:
        if not self.is_armed or self.is_paused or key not in self.hooked:
            return
        self.backward_began()
        self.pending[key] = torch.linalg.vector_norm(wide(gradient.detach())).double().square()

    # Backward passes

    def _trained(self) -> list[nn.Parameter]:
        """The trained parameters of the blocks, or of the model where these are frozen."""
        trained = [p for own in self.parameters for p in own if p.requires_grad]
        model = self._model()
        if trained or model is None:
            return trained
        return [p for p in model.parameters() if p.requires_grad]

    def was_thrown(self) -> bool:
        """Whether the gradients that a backward pass of this step left were cleared without a step."""
        if not self.came:
            return False
        trained = self._trained()
        if all(p.grad is None for p in trained):
            return bool(trained)
        if self.mark is not None:
            parameter, grad, version = self.mark
            now = parameter.grad
            if now is not None and (id(now), now._version) == (grad, version):
                return False
        grads = [_local(p.grad) for p in trained if p.grad is not None]
        return not any(float(norm) for norm in _foreach_norm(grads))

    def backward_began(self) -> None:
        """A backward pass reaches what was hooked. Its end is waited for."""
        if self._in_task or self.is_paused or not in_backward():
            return
        if self.was_thrown():
            self.on_thrown()
        self._in_task = True
        before = [_state_of(p.grad) for p in self._trained()]
        torch.autograd.Variable._execution_engine.queue_callback(
            partial(weakly(self._backward_ended), before)
        )

    @torch.no_grad()
    def _backward_ended(self, before: list[tuple[int, int]]) -> None:
        self._in_task = False
        pending, self.pending = self.pending, {}
        trained = self._trained()
        # Of shards and replicas they may come later.
        if before == [_state_of(p.grad) for p in trained] and not (_has_peers() or self.is_sharded):
            return  # torch.autograd.grad, which leaves none
        self.came = True
        left = next((p for p in trained if p.grad is not None), None)
        self.mark = None if left is None else (left, *_state_of(left.grad))
        if self.is_armed and not self.has_failed:
            self.is_spoiled |= not self.committed.isdisjoint(pending)
            self.committed |= pending.keys()
            for (_, layer), square in pending.items():
                self.squares[layer] = self.squares.get(layer, 0.0) + square
            if not _has_peers():
                self.left = self._sizes(self._everything())
        self.on_backward()

    # Inside of a block

    @torch.no_grad()
    def _measure_block(self, index: int, flow: Flow) -> None:
        layer = index + 1
        self.uses_half |= any(p.dtype == torch.float16 for p in self.parameters[index]) or (
            torch.is_autocast_enabled(self.row.device.type)
            and torch.get_autocast_dtype(self.row.device.type) == torch.float16
        )
        for key, name in (
            ("branch_ratio", "ratio"),
            ("branch_cosine", "cosine"),
            ("branch_in_rms", "reads"),
            ("sum_rms", "total"),
        ):
            values = [
                value for sublayer in flow.sums if (value := getattr(sublayer, name)) is not None
            ]
            if values and len(values) == len(flow.sums):
                self.put(key, layer, torch.stack([x.double() for x in values]).mean())
        if not flow.sums:
            self._note("branches", "no sum of the stream and a branch was seen in a block")
        if len(flow.attention) == 1:
            for key, value in zip(
                ("attn_logit_max", "attn_entropy", "attn_sink"), flow.attention[0], strict=True
            ):
                self.put(key, layer, value)
        elif flow.attention:
            self._note("attention", f"a block has {len(flow.attention)} attentions")
        else:
            how = (
                "a kernel hides its logits" if flow.hidden_attention else "none was seen in a block"
            )
            self._note("attention", how)

    # Gradients, as the optimizer's step begins

    def _everything(self) -> list[Tensor]:
        model = self._model()
        own = self._trained() if model is None else model.parameters()
        return [p for p in own if p.grad is not None]

    @torch.no_grad()
    def gradients(self, optimizer: Any = None) -> None:
        """Measure what is there before an optimizer's step: all gradients before the first one of a training
        step, those of its own parameters before each further one."""
        if self.has_failed:
            return
        every = self._everything()
        if self.taken and optimizer is not None:
            own = {id(p) for group in optimizer.param_groups for p in group["params"]}
            every = [p for p in every if id(p) in own]
        else:
            self._measure_drift()
        sizes = self._sizes(every)
        inside = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales by itself
        if isinstance(inside, Tensor):
            sizes = {key: size / inside.to(size) for key, size in sizes.items()}
        self.taken |= sizes
        self.scaler = self.scaler or _scaler_that_steps()
        if self.scaler is not None and self.scaler._scale is not None:
            self.scale = self.scaler._scale.clone()
        self._sample(every)

    def _measure_drift(self) -> None:
        for index, (scales, starts) in enumerate(zip(self.scales, self.start, strict=True)):
            drift = [
                (p.detach().float() - start.float()).flatten()
                for p, start in zip(scales, starts, strict=True)
            ]
            if drift:
                change = torch.cat(drift)
                size = torch.linalg.vector_norm(change) / change.numel() ** 0.5
                size = size.full_tensor() if hasattr(size, "full_tensor") else size
                self.put("norm_drift", index + 1, size)

    def _sizes(self, parameters: Sequence[Tensor]) -> Sizes:
        """The norm of each parameter's gradient, of all shards together, and of the parts of it that make
        queries and keys."""
        squares, sharded = _squares(parameters)
        if any(sharded) and not self.is_sharded and _has_peers():
            self._note(
                "shards",
                "the model went into shards after the watch began, and one process has a part of each "
                "gradient: watch it after that",
            )
            return {}
        if any(sharded):
            squares = _reduced(parameters, squares, sharded)
        norms = squares.sqrt().to(self.row.device).unbind()
        sizes = {(id(p), 0): norm for p, norm in zip(parameters, norms, strict=True)}
        for block, plan in zip(self.stack.blocks, self.plans, strict=True):
            parts = [] if plan is None else [part for part in plan.query_key if part[2] is not None]
            own = dict(block.named_parameters()) if parts else {}
            for name, axis, rows in parts:
                p = own.get(name)
                if p is None or (id(p), 0) not in sizes or _is_sharded(p) or p.grad is None:
                    continue
                at = torch.tensor(rows, device=p.grad.device)
                norm = torch.linalg.vector_norm(wide(p.grad.index_select(axis, at)))
                sizes[id(p), 1 + hash((axis, rows))] = norm.double().to(self.row.device)
        return sizes

    def _before_clipping(self) -> tuple[Sizes, Tensor]:
        """The norms of gradients as the backward passes left them, without the scale of the loss; and that
        scale. A gradient that has grown since got more from elsewhere."""
        keys = list(self.taken)
        taken = torch.stack([self.taken[key].double() for key in keys])
        scale = taken.new_ones(())
        whole = [i for i, key in enumerate(keys) if key[1] == 0]
        if not self.left:
            self._note("clipping", "gradients are after clipping, if there was any")
            return self.taken, scale
        left = torch.stack([self.left.get(key, self.taken[key]).double() for key in keys])
        if self.scale is not None:
            scale = self.scale.to(taken)
        else:  # a power of two is the scale of a loss: no clipping hits one
            ratio = torch.linalg.vector_norm(left[whole]) / torch.linalg.vector_norm(taken[whole])
            power = ratio.log2().round()
            is_scale = ((ratio.log2() - power).abs() < CLIPPED) & (power >= 1)
            scale = torch.where(is_scale, power.exp2(), scale)
        if self.uses_half and self.scale is None:
            self._note(
                "scale", "gradients before clipping: give scaler=, because the loss is scaled"
            )
            return self.taken, scale
        most = torch.maximum(taken, left / scale)
        return dict(zip(keys, most.unbind(), strict=True)), scale

    @torch.no_grad()
    def finish(self) -> Tensor | None:
        """Write the gradients of a step that the optimizers took; returns the norm of all of them."""
        if self.has_failed:
            self.row.fill_(torch.nan)
        if not self.taken or self.has_failed:
            return None
        sizes, scale = self._before_clipping()
        for index, own in enumerate(self.parameters):
            there = [sizes[id(p), 0] for p in own if (id(p), 0) in sizes]
            if there:
                self.put("grad_block", index + 1, torch.linalg.vector_norm(torch.stack(there)))
            self._by_plan(index, sizes)
        if not self.is_spoiled:
            for layer, squares in self.squares.items():
                self.put("grad_hidden", layer, squares.sqrt() / scale.to(squares))
        elif not any(key.startswith("block ") for key in self.notes):
            self._note(
                "gradients at the stream",
                "not recorded where several backward passes go through one forward pass",
            )
        every = [size for key, size in sizes.items() if key[1] == 0]
        return torch.linalg.vector_norm(torch.stack(every))

    def _by_plan(self, index: int, sizes: Sizes) -> None:
        """The gradients of query and key, and of the last FFN matrix."""
        plan, block = self.plans[index], self.stack.blocks[index]
        if plan is None:
            return
        own = dict(block.named_parameters())
        lasts = [own[name] for name in experts(block, plan.last_ffn or "") if name in own]
        last = [sizes[id(p), 0] for p in lasts if (id(p), 0) in sizes]
        if last:
            self.put("grad_w2", index + 1, torch.linalg.vector_norm(torch.stack(last).double()))
        parts: list[Tensor] = []
        for name, axis, rows in plan.query_key:
            p = own.get(name)
            if p is None:
                return
            is_whole = rows is None or len(rows) == p.shape[axis]
            size = sizes.get((id(p), 0 if is_whole else 1 + hash((axis, rows))))
            if size is None:
                return
            parts.append(size.double())
        if parts:
            self.put("grad_qk", index + 1, torch.linalg.vector_norm(torch.stack(parts)))

    def _sample(self, parameters: Sequence[Tensor]) -> None:
        """Keep evenly spaced numbers of the parameters that an optimizer is going to change, by block."""
        given = {id(p) for p in parameters}
        for own, samples in zip(self.parameters, self.samples, strict=True):
            done = {id(p) for some, _ in samples for p in some}
            fresh = [p for p in own if p.requires_grad and id(p) in given - done]
            if fresh:
                samples.append((fresh, self._numbers(own, fresh)))

    def _numbers(self, own: Sequence[Tensor], some: Sequence[Tensor]) -> Tensor:
        every = -(-sum(_local(p).numel() for p in own if p.requires_grad) // WEIGHTS)
        parts = [_local(p.detach()).flatten()[::every].float() for p in some]
        return torch.cat([x.to(self.row.device) for x in parts])

    @torch.no_grad()
    def updates(self) -> None:
        """Measure what the optimizers changed so far in this step."""
        if self.has_failed:
            return
        found: dict[int, tuple[Tensor, Tensor]] = {}
        for index, (own, samples) in enumerate(zip(self.parameters, self.samples, strict=True)):
            if samples:
                before = torch.cat([numbers for _, numbers in samples])
                after = torch.cat([self._numbers(own, some) for some, _ in samples])
                norm = torch.linalg.vector_norm
                found[index] = norm(before - after), norm(before)
        if found and self.is_sharded and _has_peers():
            squares = torch.stack([x for pair in found.values() for x in pair]).square()
            torch.distributed.all_reduce(squares)
            pairs = squares.sqrt().view(-1, 2)
            found = {index: (a, b) for index, (a, b) in zip(found, pairs, strict=True)}
        for index, (change, size) in found.items():
            self.put("update_ratio", index + 1, change / size)

    def _note(self, about: str, words: str) -> None:
        self.notes.setdefault(about, words)


def norm_scales(block: nn.Module) -> list[nn.Parameter]:
    """The learned scales of all norms in a block, told by what its modules compute."""
    scales: list[nn.Parameter] = []
    for leaf in block.modules():
        own = list(leaf.parameters(recurse=False))
        if any(True for _ in leaf.children()) or not own or any(p.ndim > 1 for p in own):
            continue
        norm = tell(leaf, (2, 4, max(p.numel() for p in own)))
        if norm is not None and norm.over != "channel" and norm.scale is not None:
            scales.append(leaf.get_parameter(norm.scale))
    return scales


def experts(block: nn.Module, name: str) -> list[str]:
    """The names of a parameter of one expert in all experts: modules of two matrices or more in one list."""
    parts = name.split(".")
    for at, part in enumerate(parts):
        holder = block.get_submodule(".".join(parts[:at])) if part.isdecimal() else None
        if (
            isinstance(holder, nn.ModuleList)
            and len([p for p in holder[0].parameters() if p.ndim > 1]) > 1
        ):
            return [".".join([*parts[:at], str(k), *parts[at + 1 :]]) for k in range(len(holder))]
    return [name]


def _leave(flow: Flow) -> None:
    """Take a mode from the stack of modes, wherever it is."""
    above = []
    while torch.overrides._len_torch_function_stack():
        top = torch.overrides._pop_mode()
        if top is flow:
            break
        above.append(top)
    for mode in reversed(above):
        torch.overrides._push_mode(mode)


def _state_of(grad: Tensor | None) -> tuple[int, int]:
    """Names a gradient and what it holds."""
    return (0, 0) if grad is None else (id(grad), grad._version)


def _scaler_that_steps() -> Any:
    """The GradScaler whose `step` calls the optimizer now; None if none does."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        it = frame.f_locals.get("self") if frame.f_code.co_name == "step" else None
        if isinstance(it, torch.amp.GradScaler):
            return it
        frame = frame.f_back
    return None


def in_backward() -> bool:
    """Whether this is called from inside of a backward pass."""
    return torch._C._current_graph_task_id() != -1


def _has_peers() -> bool:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1


def _by_block(stack: Stack) -> list[list[nn.Parameter]]:
    return [list(block.parameters()) for block in stack.blocks]


def _is_sharded(p: Tensor) -> bool:
    placements = getattr(p, "placements", ())
    return any(placement.is_shard() for placement in placements)


def _local(p: Tensor) -> Tensor:
    return p.to_local() if hasattr(p, "to_local") else p


def _squares(parameters: Sequence[Tensor]) -> tuple[Tensor, list[bool]]:
    """[n] squared norms of gradients, of the shards here, and which are shards."""
    grads = [_local(p.grad) for p in parameters if p.grad is not None]
    grads = [g.coalesce().values() if g.is_sparse else g for g in grads]
    if not grads:
        return torch.zeros(0, dtype=torch.float64), []
    norms: list[Tensor] = []
    device = grads[0].device
    for g in _foreach_norm(grads):
        norms.append(g.to(device).double())
    return torch.stack(norms).square(), [_is_sharded(p) for p in parameters]


def _foreach_norm(grads: Sequence[Tensor]) -> Iterable[Tensor]:
    half = any(g.dtype in (torch.float16, torch.bfloat16) for g in grads)
    return torch._foreach_norm(list(grads), 2, dtype=torch.float32 if half else None)


def _reduced(parameters: Sequence[Tensor], squares: Tensor, sharded: Sequence[bool]) -> Tensor:
    """The squares of shards, summed over the processes that hold them: one all-reduce."""
    mesh = next(p.device_mesh for p, is_shard in zip(parameters, sharded, strict=True) if is_shard)  # pyrefly: ignore[missing-attribute]
    mask = torch.tensor(sharded, device=squares.device)
    parts = torch.where(mask, squares, 0.0)
    torch.distributed.all_reduce(parts, group=mesh.get_group())
    return torch.where(mask, parts, squares)


def read_rows(rows: Sequence[Row]) -> Iterator[NDArray[np.float64]]:
    """The rows on the host: one transfer."""
    if rows:
        yield from torch.stack(list(rows)).double().cpu().numpy()
