"""The instruments of a watched model: hooks that exist during one recorded step, and what they measure.

Every number is reduced at once into one row of a device buffer; nothing is read back before the step is over.
The definitions are those of `catalog.PROBES`, except where the class says what is sampled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..catalog.probes import recorded_by
from ..training.probes.instruments import token_cosine
from .flow import Flow, Plan
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

Row = Tensor


class Instruments:
    """Records one training step at a time of a model that somebody else trains.

    What is sampled: the token cosine is of SEQUENCES sequences, medians of ENTRIES numbers, attention of as
    many sequences and heads as have `flow.ENTRIES` logits, and the update of WEIGHTS numbers a block. Smaller
    models are measured whole. With accumulation, what is measured forwards is of the first micro-batch.
    """

    def __init__(
        self,
        model: nn.Module,
        stack: Stack,
        scaler: Any = None,
    ) -> None:
        self.model, self.stack, self.scaler = model, stack, scaler
        self.depth = len(stack.blocks)
        self.stream: Stream | None = None
        self.plans: list[Plan | None] = [None] * self.depth
        self.notes: dict[str, str] = {}
        self.parameters = _by_block(stack)
        self.scales = [norm_scales(block) for block in stack.blocks]
        self.start = [[p.detach().clone() for p in own] for own in self.scales]
        self.batch_first = all(
            getattr(m, "batch_first", True) for block in stack.blocks for m in block.modules()
        )
        self.is_armed = False
        self._handles: list[Any] = []
        self._clean()

    def _clean(self) -> None:
        """Forget what was recorded of the present step."""
        self.micro = -1
        self.is_live = True
        self.open: list[tuple[int, Flow, dict[int, str]]] = []
        self.calls: list[Call] = []
        self.hooked: set[int] = set()
        self.squares: dict[int, Tensor] = {}
        self.asked_at: int | None = None
        self.backward_norm: Tensor | None = None
        self.before: list[Tensor | None] = []
        self.uses_half = False
        self.row = self._fresh()

    def _fresh(self) -> Row:
        device = next(iter(self.stack.blocks[0].parameters())).device
        kind = torch.float32 if device.type == "mps" else torch.float64
        shape = (len(KEYS), self.depth + 1)
        return torch.full(
            shape, torch.nan, dtype=kind, device=device if not _is_meta(device) else "cpu"
        )

    def put(self, key: str, layer: int, value: Tensor) -> None:
        """Write one number into the present row: inf where it is not finite, because NaN is what was not
        measured."""
        self.row[KEYS.index(key), layer].copy_(torch.where(value.isfinite(), value, torch.inf))

    # Hooks, during recorded steps alone

    def arm(self) -> None:
        """Install the hooks of one recorded step."""
        if self.is_armed:
            return
        self.is_armed = True
        self._clean()
        for index, block in enumerate(self.stack.blocks):
            self._handles += [
                block.register_forward_pre_hook(self._enters(index), with_kwargs=True),
                block.register_forward_hook(
                    self._leaves(index), with_kwargs=True, always_call=True
                ),
            ]
        if "torch._dynamo" in sys.modules:  # a compiled model runs its own code in this step
            self._handles.append(_Stance())

    def disarm(self) -> None:
        """Remove all hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for _, flow, _ in reversed(self.open):
            flow.__exit__(None, None, None)
        self.open.clear()
        self.is_armed = False

    def _enters(self, index: int) -> Callable[..., None]:
        def hook(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if torch.compiler.is_compiling() or not self._counts(index, block):
                return
            recomputes = _in_backward()
            if index == 0 and not recomputes:
                self.micro += 1
                self.hooked.clear()
            x = self._entering(args, kwargs)
            if x is None:
                self._note("stream", "no argument of a block has the shape of its result")
                return
            self._watch_gradient(index, x, recomputes)
            if recomputes:
                return
            channels = self._channels(x)
            if self.micro == 0:
                self._measure_stream(index, x.movedim(channels, -1))
            learns = self.plans[index] is None
            names = {id(p): name for name, p in block.named_parameters()} if learns else {}
            flow = Flow(x, learns, self.micro == 0, channels)
            if self.micro == 0 or learns:
                flow.__enter__()
                self.open.append((index, flow, names))

        return hook

    def _leaves(self, index: int) -> Callable[..., None]:
        def hook(
            block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
        ) -> None:
            if torch.compiler.is_compiling() or block is not self.stack.blocks[index]:
                return
            flow = names = None
            if self.open and self.open[-1][0] == index:
                _, flow, names = self.open.pop()
                flow.__exit__(None, None, None)
            if result is None or not self._counts(index, block):
                return
            recomputes = _in_backward()
            if not recomputes and self.micro == 0 and index < 2 and self.stream is None:
                self._find_stream(Call(args, kwargs, result))
            if index == self.depth - 1 and (x := self._leaving(result)) is not None:
                self._watch_gradient(self.depth, x, recomputes)
                if not recomputes and self.micro == 0:
                    self._measure_stream(self.depth, x.movedim(self._channels(x), -1))
            if flow is not None and names is not None:
                self._measure_block(index, flow, names)

        return hook

    def _counts(self, index: int, block: nn.Module) -> bool:
        """Whether a call of a block belongs to a training step. A model's copy has copies of the hooks."""
        is_own = block is self.stack.blocks[index]
        return is_own and self.is_armed and self.is_live and self.model.training

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
            self.squares.clear()
            self.plans = [None] * self.depth

    @torch.no_grad()
    def _measure_stream(self, layer: int, x: Tensor) -> None:
        x = x.detach()
        x = x if x.dtype == torch.float64 else x.float()
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

    def _watch_gradient(self, layer: int, x: Tensor, recomputes: bool) -> None:
        """Add the squares of the gradient of a stream to those of the step's other micro-batches."""
        if layer in self.hooked or not x.requires_grad:
            return
        self.hooked.add(layer)
        if not recomputes and (self.asked_at is None or layer <= self.asked_at):
            self.asked_at = layer

        def hook(gradient: Tensor) -> None:
            if not self.is_armed:
                return
            with torch.no_grad():
                g = gradient.detach()
                size = torch.linalg.vector_norm(g if g.dtype == torch.float64 else g.float())
                self.squares[layer] = self.squares.get(layer, 0.0) + size.double().square()
            if not recomputes and layer == self.asked_at and _in_backward():
                engine = torch.autograd.Variable._execution_engine
                engine.queue_callback(self._after_backward)

        self._handles.append(x.register_hook(hook))

    # Inside of a block

    @torch.no_grad()
    def _measure_block(self, index: int, flow: Flow, names: dict[int, str]) -> None:
        if self.plans[index] is None:
            self.plans[index] = flow.plan(names)
        if not flow.measures:
            return
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

    @torch.no_grad()
    def _after_backward(self) -> None:
        everything = self._everything()
        if self.is_armed and not _has_peers():  # their gradients may not be added yet
            self.backward_norm, _ = total_norm(everything)

    def _everything(self) -> list[Tensor]:
        return [p for p in self.model.parameters() if p.grad is not None]

    @torch.no_grad()
    def gradients(self) -> Tensor:
        """Measure what is there before the optimizer's step; returns the norm of all gradients, a number."""
        everything = self._everything()
        after, is_sharded = total_norm(everything)
        scale = None if self.scaler is None else self.scaler._scale
        factor, loss_scale = torch.ones_like(after), torch.ones_like(after)
        if self.backward_norm is not None and not is_sharded:
            ratio = self.backward_norm / after
            if scale is not None:
                loss_scale = scale.to(ratio)
                ratio = ratio / loss_scale
            else:  # a power of two is the scale of a loss: no clipping hits one
                power = ratio.log2().round()
                is_scale = ((ratio.log2() - power).abs() < CLIPPED) & (power >= 1)
                loss_scale = torch.where(is_scale, power.exp2(), loss_scale)
                ratio = torch.where(is_scale, torch.ones_like(ratio), ratio)
            factor = torch.where((ratio - 1).abs() > CLIPPED, ratio, factor)
        if self.uses_half and scale is None:
            self._note(
                "scale", "gradients before clipping: give scaler=, because the loss is scaled"
            )
            factor = torch.ones_like(factor)
        elif self.backward_norm is None:
            self._note("clipping", "gradients are after clipping, if there was any")
        of_parameter = dict(zip(map(id, everything), self._norms(everything), strict=True))
        for index, own in enumerate(self.parameters):
            there = [of_parameter[id(p)] for p in own if id(p) in of_parameter]
            if there:
                norm = torch.linalg.vector_norm(torch.stack(there)) * factor
                self.put("grad_block", index + 1, norm)
            self._by_plan(index, of_parameter, factor)
            drift = [
                (p.detach().float() - start.float()).flatten()
                for p, start in zip(self.scales[index], self.start[index], strict=True)
            ]
            if drift:
                change = torch.cat(drift)
                self.put(
                    "norm_drift",
                    index + 1,
                    torch.linalg.vector_norm(change) / change.numel() ** 0.5,
                )
        for layer, squares in self.squares.items():
            self.put("grad_hidden", layer, squares.sqrt() / loss_scale.to(squares))
        self.before = [self._sample(own) for own in self.parameters]
        return after * factor

    def _by_plan(self, index: int, of_parameter: dict[int, Tensor], factor: Tensor) -> None:
        """The gradients of query and key, and of the last FFN matrix."""
        plan, block = self.plans[index], self.stack.blocks[index]
        if plan is None:
            return
        own = dict(block.named_parameters())
        lasts = [own[name] for name in experts(block, plan.last_ffn or "") if name in own]
        last = [of_parameter[id(p)] for p in lasts if id(p) in of_parameter]
        if last:
            self.put(
                "grad_w2", index + 1, torch.linalg.vector_norm(torch.stack(last).double()) * factor
            )
        parts: list[Tensor] = []
        for name, axis, rows in plan.query_key:
            p = own.get(name)
            if p is None or p.grad is None or (rows is not None and _is_sharded(p)):
                return
            if rows is None or len(rows) == p.shape[axis]:
                parts.append(of_parameter[id(p)])
            else:
                at = torch.tensor(rows, device=p.grad.device)
                parts.append(torch.linalg.vector_norm(_wide(p.grad.index_select(axis, at))))
        if parts:
            norm = torch.linalg.vector_norm(
                torch.stack([x.double().to(self.row.device) for x in parts])
            )
            self.put("grad_qk", index + 1, norm * factor)

    def _norms(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The norm of each parameter's gradient, of all shards together."""
        squares, sharded = _squares(parameters)
        if any(sharded):
            squares = _reduced(parameters, squares, sharded)
        return list(squares.sqrt().to(self.row.device))

    def _sample(self, own: Sequence[Tensor]) -> Tensor | None:
        """Evenly spaced numbers of a block's trained parameters."""
        trained = [_local(p.detach()) for p in own if p.requires_grad and p.grad is not None]
        every = -(-sum(p.numel() for p in trained) // WEIGHTS)
        parts = [p.flatten()[::every].float() for p in trained]
        return torch.cat([x.to(self.row.device) for x in parts]) if parts else None

    @torch.no_grad()
    def updates(self) -> None:
        """Measure the optimizer's step, after it."""
        for index, (own, before) in enumerate(zip(self.parameters, self.before, strict=True)):
            if before is None:
                continue
            after = self._sample(own)
            if after is not None and after.shape == before.shape:
                size = torch.linalg.vector_norm(before)
                self.put("update_ratio", index + 1, torch.linalg.vector_norm(before - after) / size)

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
        if norm is None or norm.over == "channel" or norm.start is None:
            continue
        apart = [abs(float(p.detach().float().mean()) - norm.start) for p in own]
        scales.append(own[apart.index(min(apart))])
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


class _Stance:
    """`torch.compile` is off while it exists."""

    def __init__(self) -> None:
        self.stance = torch.compiler.set_stance("force_eager")

    def remove(self) -> None:
        self.stance.__exit__(None, None, None)


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _has_peers() -> bool:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1


def _is_meta(device: torch.device) -> bool:
    return device.type == "meta"


def _by_block(stack: Stack) -> list[list[nn.Parameter]]:
    return [list(block.parameters()) for block in stack.blocks]


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


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


def total_norm(parameters: Sequence[Tensor]) -> tuple[Tensor, bool]:
    """The norm of all gradients, a number, and whether they are shards of several processes."""
    squares, sharded = _squares(parameters)
    if any(sharded):
        squares = _reduced(parameters, squares, sharded)
    return squares.sum().sqrt(), any(sharded)


def read_rows(rows: Sequence[Row]) -> Iterator[NDArray[np.float64]]:
    """The rows on the host: one transfer."""
    if rows:
        yield from torch.stack(list(rows)).double().cpu().numpy()
