"""The installed `transformers`: its version, and the class of each language model."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from functools import cache
from pathlib import Path

TABLES = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
)  # fmt: skip
"""If a model is in several of these lists, the first one counts."""


class NotInstalledError(RuntimeError):
    """`transformers` is not installed."""


@cache
def folder() -> Path:
    """The folder of the models' code. Raises NotInstalledError."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalledError(
            "transformers is not installed here: `pip install -r tests/requirements.txt`"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "models"


def version() -> str:
    """Version of the installed library. Raises NotInstalledError."""
    folder()
    return importlib.metadata.version("transformers")


def models() -> dict[str, str]:
    """Class name of each language model, by model type."""
    path = folder() / "auto" / "modeling_auto.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name in TABLES:
        call = tables[name]
        assert isinstance(call, ast.Call)
        for key, kind in ast.literal_eval(call.args[0]):
            found.setdefault(key, kind if isinstance(kind, str) else kind[0])
    return found


@cache
def where() -> dict[str, Path]:
    """The file that defines each class of a model."""
    found: dict[str, Path] = {}
    for path in sorted(folder().glob("*/modeling_*.py")):
        if path.parent.name in ("auto", "deprecated"):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("class "):
                found.setdefault(line[6:].split("(")[0].split(":")[0], path)
    return found
