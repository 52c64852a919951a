"""The census of the installed `transformers`: a row per language model.

A row holds the placement that the model's code decides, and says what the code leaves open.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

from ..catalog import SCHEMES
from ..catalog.models import QK_LABELS, Census, Model
from .interpreter import Program, Stopped
from .layers import (
    Followed,
    Judged,
    Stack,
    Undecided,
    final_norm,
    follow,
    judge,
    placement,
    qk_norm,
    scales,
    stacks,
)


def census() -> Census:
    """All language models of the installed library. Raises NotInstalledError."""
    programs: dict[str, Program] = {}
    found: list[Model] = []
    for model, kind in sorted(models().items()):
        path = where().get(kind)
        if path is None:
            continue  # of an optional package that is not installed
        program = programs.setdefault(str(path), Program(path))
        found += (replace(row, year=year(path)) for row in rows(model, program, kind))
    return Census(version(), date.today().isoformat(), tuple(found))


def rows(model: str, program: Program, kind: str) -> Iterator[Model]:
    """One row per stack: two for an encoder and a decoder that differ, none for a model without layers
    of its own."""
    found = stacks(program, kind)
    if not found:
        if "AutoModel" not in program.code(kind):  # else it wraps a model that has its own row
            yield Model(model, open="no stack of layers was found below its class")
        return
    each: list[Model] = []
    for stack in found:
        row = _row(model, program, stack)
        if not any(replace(row, layer=known.layer) == known for known in each):
            each.append(row)
    ends = {row.final_norm for row in each}
    alike = len({replace(row, layer="", final_norm=None) for row in each}) == 1
    if len(ends) > 1 and alike:
        yield replace(
            each[0], final_norm=None, open="some of its stacks have a final norm, some not"
        )
    else:
        yield from each[:2]


def _row(model: str, program: Program, stack: Stack) -> Model:
    row = Model(model, stack.layer, final_norm=final_norm(program, stack))
    try:
        followed = follow(program, stack.layer)
        judged = judge(followed.result)
    except Undecided as error:
        return replace(row, open=str(error))
    except (Stopped, RecursionError):
        return replace(row, open="its forward pass could not be followed")
    row = replace(row, norm=_norm(judged), qk_norm=qk_norm(judged))
    settings, doubt = _otherwise(program, stack, followed, judged)
    settings = (*scales(judged), *settings)
    try:
        row = replace(row, placement=placement(judged), settings=settings)
    except Undecided as error:
        return replace(row, settings=settings, open=str(error))
    if doubt:
        return replace(row, placement=None, open=f"it depends on `{doubt}`, which is not known")
    if followed.wires:
        why = f"its residual path is a module of its own, {followed.wires[0]}"
        return replace(row, placement=None, final_norm=None, open=why)
    return row


def _norm(judged: Judged) -> str | None:
    """The kind of the norms on the stream, if they are all the same."""
    kinds = Counter(judged.kinds)
    return next(iter(kinds)) if len(kinds) == 1 else None


def _otherwise(
    program: Program, stack: Stack, followed: Followed, judged: Judged
) -> tuple[tuple[str, ...], str]:
    """The effect of each switch of the configuration; and an undecided condition that would change the
    placement, if there is one."""
    before, settings, doubt = _summary(judged, final_norm(program, stack)), [], ""
    for name, value in program.config_for(stack.layer).items():
        if isinstance(value, bool) and f".{name}" in program.text:
            other = _again(program, stack, changes={name: not value})
            if other is not None and other != before:
                settings.append(f"{name}={not value}: {_changes(before, other)}")
    for condition in followed.unknown:
        other = _again(program, stack, turned=condition)
        if other is None or other == before:
            continue
        if other[0] != before[0]:
            doubt = condition
        settings.append(f"{condition}, the other way: {_changes(before, other)}")
    return tuple(settings), doubt


Summary = tuple[str, str, str | None]
"""Placement, QK-norm, final norm."""


def _again(
    program: Program, stack: Stack, turned: str = "", changes: dict[str, object] | None = None
) -> Summary | None:
    try:
        judged = judge(follow(program, stack.layer, turned, changes).result)
    except (Undecided, Stopped, RecursionError):
        return None
    return _summary(judged, final_norm(program, stack, changes))


def _changes(before: Summary, after: Summary) -> str:
    names = (
        f"placement {SCHEMES.label(after[0]) if after[0] in SCHEMES else after[0]}",
        f"QK-norm {QK_LABELS[after[1]]}",
        f"final norm {after[2]}",
    )
    return " and ".join(s for s, a, b in zip(names, before, after, strict=True) if a != b)


def _summary(judged: Judged, final: str | None) -> Summary:
    try:
        key = placement(judged)
    except Undecided:
        key = "undecided"
    return key, qk_norm(judged), final


# The installed library: its version, and the class and file of each language model.

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


COPYRIGHT = re.compile(r"Copyright\s*(?:\(c\)\s*)?(\d{4})")
HEAD = 3000
"""Characters of a file in which its copyright notice is."""


def year(path: Path) -> int | None:
    """The first year in the copyright notice of a model's code, else of its configuration's code."""
    beside = path.with_name(path.name.replace("modeling_", "configuration_"))
    for file in (path, beside):
        if file.exists() and (found := COPYRIGHT.search(file.read_text(encoding="utf-8")[:HEAD])):
            return int(found[1])
    return None


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
