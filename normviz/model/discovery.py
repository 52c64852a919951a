"""The classes of a folder by their names, so that a new file there needs no registration."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from torch import nn


def classes(package: str, path: Iterable[str], suffix: str = "") -> dict[str, type[Any]]:
    """Every `nn.Module` that a module of a package defines, of those whose names end with `suffix`. A broken
    module stops the import."""
    modules = (
        import_module(f"{package}.{module.name}")
        for module in iter_modules(path)
        if module.name.endswith(suffix)
    )
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
    }
