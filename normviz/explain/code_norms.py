"""The norms of a pasted model: PyTorch's where it has one, else the product's own module, as it is."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from ..catalog import NORMS

FOLDER = Path(__file__).parents[1] / "nn" / "norms"
IMPORTS = {
    "Any": "from typing import Any",
    "Tensor": "from torch import Tensor",
    "once_differentiable": "from torch.autograd.function import once_differentiable",
}


def norm_call(key: str, width: str) -> str:
    """The expression that makes a norm over `width` channels."""
    return NORMS[key].call(width)


def imports(key: str, standard: tuple[str, ...] = ()) -> str:
    """The import lines of a module that holds `norm_source`; `standard` are its own, of Python."""
    text = norm_source(key)
    used = [line for word, line in IMPORTS.items() if word in text]
    python = sorted([*standard, *(line for line in used if "torch" not in line)])
    torch = ["import torch", "import torch.nn.functional as F", "from torch import nn"]
    torch += [line for line in used if "torch" in line]
    return "\n".join([*python, *([""] if python else []), *torch])


@lru_cache
def norm_source(key: str) -> str:
    """Source of the classes that `norm_call` needs; empty for PyTorch's own."""
    name = NORMS[key].code.split("(")[0]
    if name.startswith("nn."):
        return ""
    path = next(p for p in FOLDER.glob("*.py") if f"class {name}(" in p.read_text())
    text = path.read_text()
    if "from .group import" in text:
        return _body((FOLDER / "group.py").read_text(), "") + "\n\n\n" + _body(text, name)
    return _body(text, name)


def _body(text: str, name: str) -> str:
    """A module without its docstring and imports, and of its public classes only `name`."""
    kept = []
    for node in ast.parse(text).body[1:]:
        other = isinstance(node, ast.ClassDef) and node.name not in (name,) and node.name[0] != "_"
        if isinstance(node, ast.Import | ast.ImportFrom) or other:
            continue
        kept.append(
            (isinstance(node, ast.ClassDef | ast.FunctionDef), ast.get_source_segment(text, node))
        )
    return "".join(
        ("\n\n\n" if big else "\n") * bool(i) + str(part) for i, (big, part) in enumerate(kept)
    )
