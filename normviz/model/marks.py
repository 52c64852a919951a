"""The mark on each parameter that decides its initial value; `model.init` reads it.

A module marks a parameter where it makes it: `as_is`, or `drawn` by the rule of a role.
"""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from ..catalog.inits import ROLES

Made = TypeVar("Made", bound=nn.Module | nn.Parameter)
Module = TypeVar("Module", bound=nn.Module)

AS_IS = "as_is"
_MARK = "initial_value"


def as_is(made: Made) -> Made:
    """Mark a parameter, or all of a module that have no mark: it keeps the value it was made with."""
    for parameter in made.parameters() if isinstance(made, nn.Module) else (made,):
        if mark_of(parameter) is None:
            setattr(parameter, _MARK, AS_IS)
    return made


def drawn(module: Module, role: str) -> Module:
    """Mark the own parameters of a module that have no mark: the initialisation draws them, `weight` as
    `role`.weight.

    Raises ValueError for a role without a rule.
    """
    for name, parameter in module.named_parameters(recurse=False):
        if mark_of(parameter) is not None:
            continue
        if f"{role}.{name}" not in ROLES:
            allowed = ", ".join(ROLES)
            raise ValueError(f"no initialisation has a rule for {role}.{name}: roles are {allowed}")
        setattr(parameter, _MARK, f"{role}.{name}")
    return module


def mark_of(parameter: nn.Parameter) -> str | None:
    """AS_IS, the role by which it is drawn, or None for a parameter without a mark."""
    return getattr(parameter, _MARK, None)
