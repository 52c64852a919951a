"""A GPU that is not there: `train()` with FakeTensors on a device that is not the CPU.

Tensors of that device have shapes and no numbers; what is on the CPU stays real. A tensor left on the CPU
that meets one of the device raises, as with CUDA. `Watch.found` counts what makes the host wait for a GPU:
copies to it and from it, numbers that the host reads, shapes that depend on numbers.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from normviz.model.marks import _MARK, mark_of
from normviz.training import loop

DEVICE = torch.device("lazy:0")
"""Not "cuda": with a PyTorch that was built without CUDA, `requires_grad` on that ends the process."""
aten = torch.ops.aten


def where() -> str:
    """The line of NormViz that called."""
    frame = sys._getframe(2)
    while frame is not None:
        if "/normviz/" in frame.f_code.co_filename:
            return f"{frame.f_code.co_filename.rsplit('/normviz/', 1)[1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def is_there(x: object) -> bool:
    return isinstance(x, FakeTensor) and x.device.type != "cpu"


class Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.found: Counter[tuple[str, str]] = Counter()

    def note(self, what: str) -> None:
        self.found[what, where()] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        to = kwargs.get("device")
        goes = to is not None and torch.device(to).type == DEVICE.type
        if func._schema.name == "prim::device" or (not goes and not any(map(is_there, tensors))):
            return func(*args, **kwargs)
        op = func.overloadpacket
        if op is aten._local_scalar_dense:
            self.note("number")
            return {torch.bool: True, torch.int64: 1}.get(tensors[0].dtype, 1.0)
        if op is aten._to_copy and to is not None:
            if not goes:
                self.note("to host")
                return torch.ones(tensors[0].shape, dtype=kwargs.get("dtype") or tensors[0].dtype)
            if not is_there(tensors[0]):
                self.note("to device")
                with self.fake:
                    out = func(*args, **kwargs)
                if not tensors[0].is_floating_point() and 0 < tensors[0].numel() < 9:
                    out.total = int(tensors[0].sum())  # `repeat_interleave` reads it
                return out
        if op is aten.copy_ and is_there(args[0]) != is_there(args[1]):
            self.note("to device" if is_there(args[0]) else "to host")
            if not is_there(args[0]):
                return args[0].fill_(1)
        if (
            op is aten.repeat_interleave
            and isinstance(args[0], Tensor)
            and kwargs.get("output_size") is None
        ):
            self.note("shape of numbers")
            return args[0].new_empty((args[0].total,))
        if op is aten.index and any(i is not None and i.dtype == torch.bool for i in args[1]):
            self.note("shape of numbers")
            (mask,) = args[1]
            return args[0].new_empty((mask.numel(), *args[0].shape[mask.ndim :]))
        with self.fake:
            return func(*args, **kwargs)


def moved(model: nn.Module, *_: object) -> nn.Module:
    """What `model.to(device)` does: parameters and buffers, and nothing else."""
    new: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for p in module._parameters.values():
            if p is not None and id(p) not in new:
                q = nn.Parameter(torch.empty(p.shape, device=DEVICE))
                if (mark := mark_of(p)) is not None:
                    setattr(q, _MARK, mark)
                new[id(p)] = q
        for name, p in list(module._parameters.items()):
            if p is not None and id(p) in new:
                module._parameters[name] = new[id(p)]
        for name, b in module._buffers.items():
            if b is not None:
                module._buffers[name] = torch.empty(b.shape, device=DEVICE, dtype=b.dtype)
    return model


@contextlib.contextmanager
def fake_gpu() -> Iterator[Watch]:
    with (
        warnings.catch_warnings(),
        mock.patch.object(loop, "find_device", return_value=DEVICE),
        mock.patch.object(nn.Module, "to", lambda self, *to: self),
        Watch() as watch,
    ):
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        before = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(
            True
        )  # torch.tensor(..., device=...) goes through the modes
        try:
            yield watch
        finally:
            torch._C._set_only_lift_cpu_tensors(before)


def trained(config: Any, **more: Any) -> list[Any]:
    """(event, what was watched so far) of a run on the device that is not there."""
    begun = loop.begin(config)
    marks = []
    with fake_gpu() as watch:
        moved(begun[0])
        watch.found.clear()
        for event in loop.train(config, begun=begun, engine="eager", **more):
            marks.append((event, Counter(watch.found)))
    return marks
