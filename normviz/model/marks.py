"""The mark on each parameter that says what its initial value is; `nn.init` asks it and no name.

A module marks a parameter where it makes it: `kept`, or `drawn` by the rule of a role.
"""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Made = TypeVar("Made", bound=nn.Module | nn.Parameter)
Module = TypeVar("Module", bound=nn.Module)

EMBEDDINGS = ("tokens.weight", "positions.weight", "head.weight")
MATRICES = ("qkv.weight", "out.weight", "up.weight", "down.weight")
BIASES = ("qkv.bias", "out.bias", "up.bias", "down.bias")
ROLES = (*EMBEDDINGS, *MATRICES, *BIASES)
"""What a drawn parameter is in the model; each initialisation has a rule for every role."""

KEPT = "kept"
_MARK = "initial_value"


def kept(made: Made) -> Made:
    """Mark a parameter, or all of a module: it starts as it was made."""
    for parameter in made.parameters() if isinstance(made, nn.Module) else (made,):
        setattr(parameter, _MARK, KEPT)
    return made


def drawn(module: Module, role: str) -> Module:
    """Mark the own parameters of a module: the initialisation draws them, `weight` as `role`.weight.

    Raises ValueError for a role without a rule.
    """
    for name, parameter in module.named_parameters(recurse=False):
        if f"{role}.{name}" not in ROLES:
            allowed = ", ".join(ROLES)
            raise ValueError(f"no initialisation has a rule for {role}.{name}: roles are {allowed}")
        setattr(parameter, _MARK, f"{role}.{name}")
    return module


def mark_of(parameter: nn.Parameter) -> str | None:
    """KEPT, the role by which it is drawn, or None where nobody marked it."""
    return getattr(parameter, _MARK, None)
