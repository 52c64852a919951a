"""Hooks of a watch: they keep nothing alive, break no loop, and stay out of copies and files of a module."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

STATE = "__getstate__"
KINDS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip
"""The tables of a module that name its hooks."""


def weakly(method: Callable[..., Any], *given: Any) -> Callable[..., Any]:
    """A hook that calls a method with what is `given` and the hook's arguments, as long as its object exists.

    What goes wrong in it is told to the object's `failed`; the training goes on.
    """
    owner, name = weakref.ref(method.__self__), method.__name__  # pyrefly: ignore[missing-attribute]

    def hook(*args: Any) -> Any:
        if torch.compiler.is_compiling():
            return None
        it = owner()
        if it is None:
            return None
        try:
            return getattr(it, name)(*given, *args)
        except Exception as error:  # a loop of somebody else's goes on
            it.failed(error)
            return None

    return hook


class Hooks:
    """Hooks on modules, which `remove` takes away."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._modules: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def before(self, module: nn.Module, hook: Callable[..., Any], keeps: Any = None) -> None:
        """Call `hook(module, args, kwargs)` before the module's forward pass. `keeps` lives as long."""
        hook.keeps = keeps  # pyrefly: ignore[missing-attribute]
        self._mark(module, hook)
        self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def after(self, module: nn.Module, hook: Callable[..., Any], always: bool = False) -> None:
        """Call `hook(module, args, kwargs, result)` after it; `always` also after an exception."""
        self._mark(module, hook)
        self._handles.append(
            module.register_forward_hook(hook, with_kwargs=True, always_call=always)
        )

    def _mark(self, module: nn.Module, hook: Callable[..., Any]) -> None:
        hook.is_watch = True  # pyrefly: ignore[missing-attribute]
        self._modules.add(module)
        module.__dict__.setdefault(STATE, _state_of(module))

    def remove(self) -> None:
        """Remove them all."""
        for handle in self._handles:
            handle.remove()
        for module in self._modules:
            if not _ours(module):
                module.__dict__.pop(STATE, None)
        self._handles.clear()
        self._modules.clear()


def _ours(module: nn.Module) -> set[int]:
    return {
        number
        for kind in ("_forward_hooks", "_forward_pre_hooks")
        for number, hook in getattr(module, kind).items()
        if getattr(hook, "is_watch", False)
    }


def _state_of(module: nn.Module) -> Callable[[], Any]:
    """What copy and pickle read of a module: all but the hooks of a watch."""
    there = weakref.ref(module)

    def state() -> Any:
        it = there()
        assert it is not None
        state = type(it).__getstate__(it)
        if not isinstance(state, dict):
            return state
        ours = _ours(it)
        return {
            name: OrderedDict((k, v) for k, v in value.items() if k not in ours)
            if name in KINDS
            else value
            for name, value in state.items()
            if name != STATE
        }

    return state


class EagerStance:
    """`torch.compile` is off while one of these exists."""

    _count = 0
    _stance: Any = None

    def __init__(self) -> None:
        if not EagerStance._count:
            EagerStance._stance = torch.compiler.set_stance("force_eager")
        EagerStance._count += 1

    def remove(self) -> None:
        """Let it be on again, if this was the last one."""
        EagerStance._count -= 1
        if not EagerStance._count:
            EagerStance._stance.__exit__(None, None, None)
            EagerStance._stance = None


def in_transform() -> bool:
    """Whether torch.func, forward-mode differentiation or torch.jit follows what is computed now."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
        or torch.jit.is_tracing()
    )
