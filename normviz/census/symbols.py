"""Symbols for the residual stream and the operations on it, on which a forward pass is followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Tensor:
    """A symbol for a tensor."""


@dataclass(frozen=True)
class Stream(Tensor):
    """The input of a layer."""


@dataclass(frozen=True)
class Norm(Tensor):
    """The output of a norm; `name` is the path of the module, `kind` the key of the norm."""

    name: str
    kind: str
    of: Tensor


@dataclass(frozen=True)
class Made(Tensor):
    """Any other result of some tensors."""

    of: tuple[Tensor, ...]


@dataclass(frozen=True)
class Sum(Tensor):
    """first + second."""

    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class Scaled(Tensor):
    """A tensor times a number or a vector; `by` is its source code."""

    of: Tensor
    by: str


@dataclass(frozen=True)
class Viewed(Tensor):
    """The same values in another shape, such as heads."""

    of: Tensor


@dataclass(frozen=True)
class Unknown:
    """A value that is not a tensor and is not known."""

    text: str = ""


@dataclass
class Config:
    """A model's configuration, with the defaults of its class."""

    defaults: dict[str, object]


@dataclass
class Module:
    """A module of the file, with the attributes that its __init__ sets."""

    kind: str
    path: str
    attributes: dict[str, object] = field(default_factory=dict)


@dataclass
class Outside:
    """A module of PyTorch or of the library's shared code: name, and arguments as source code."""

    kind: str
    path: str
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    """Several values that are each like this one, such as chunks of a tensor."""

    each: object


def bare(tensor: Tensor) -> Tensor:
    """The tensor without changes of shape around it."""
    while isinstance(tensor, Viewed):
        tensor = tensor.of
    return tensor


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two symbols are the same apart from shapes."""
    a, b = bare(a), bare(b)
    if a is b:
        return True
    if isinstance(a, Norm) and isinstance(b, Norm):
        return a.name == b.name and same(a.of, b.of)
    if isinstance(a, Sum) and isinstance(b, Sum):
        return same(a.first, b.first) and same(a.second, b.second)
    return isinstance(a, Stream) and isinstance(b, Stream)


def tensors(values: Any) -> tuple[Tensor, ...]:
    """All tensors among values, including those inside lists."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, Many):
            found += tensors([value.each])
        elif isinstance(value, list | tuple):
            found += tensors(value)
    return tuple(found)
