"""The census of the installed `transformers`: a row per model, or two.

A row holds the placement that the model's code decides, and says what the code leaves open.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

from ..catalog import SCHEMES
from ..catalog.models import LANGUAGE, QK_LABELS, Census, Model
from .interpreter import OTHER, Program, Stopped
from .layers import (
    Followed,
    Judged,
    Stack,
    Undecided,
    attends,
    embed_norm,
    extra,
    final_norm,
    follow,
    judge,
    mixes_by_sinkhorn,
    other_norms,
    placement,
    qk_norm,
    scales,
    stacks,
    wraps_language_model,
)


def census() -> Census:
    """All models of the installed library. Raises NotInstalledError."""
    programs: dict[str, Program] = {}
    found: list[Model] = []
    for name, (kind, made) in sorted(models().items()):
        path = where().get(made)
        if path is None:
            continue  # of an optional package that is not installed
        program = programs.setdefault(str(path), Program(path))
        found += (replace(row, year=year(path)) for row in rows(name, program, made, kind))
    return Census(version(), date.today().isoformat(), tuple(found))


def rows(model: str, program: Program, made: str, kind: str = LANGUAGE[0]) -> Iterator[Model]:
    """One row per stack of the class `made`: two for an encoder and a decoder that differ, none for a
    model without layers of its own. Other models than those of language count if they have attention."""
    if wraps_language_model(program, made):
        return
    found = stacks(program, made, towers=kind not in LANGUAGE)
    if kind not in LANGUAGE:
        found = [stack for stack in found if attends(program, stack.kind)]
    elif not found:
        if "AutoModel" not in program.code(made):  # else it wraps a model that has its own row
            yield Model(model, kind, open="no stack of layers was found below its class")
        return
    each: list[Model] = []
    for stack in found:
        row = _row(Model(model, kind), program, stack)
        if not any(_alike(row, known) for known in each):
            each.append(row)
    if not each:
        return
    ends = {row.final_norm for row in each}
    alike = len({replace(row, layer="", final_norm=None) for row in each}) == 1
    if len(ends) > 1 and alike:
        yield replace(
            each[0], final_norm=None, open="some of its stacks have a final norm, some not"
        )
    else:
        yield from each[:2]


def _alike(one: Model, other: Model) -> bool:
    """Whether two stacks differ at most by the layer, or where one of them could not be followed up to
    its embedding."""
    embed = one.embed_norm if other.embed_norm else other.embed_norm
    return replace(one, layer="", embed_norm=embed) == replace(
        other, layer="", embed_norm=other.embed_norm if one.embed_norm else None
    )


def _row(start: Model, program: Program, stack: Stack) -> Model:
    ends = (final_norm(program, stack), embed_norm(program, stack))
    row = replace(start, layer=stack.kind, final_norm=ends[0], embed_norm=ends[1])
    try:
        if mixes_by_sinkhorn(program, stack):
            return replace(row, placement="mhc")
        followed, judged, without = _judged(program, stack)
    except Undecided as error:
        return replace(row, open=str(error))
    except (Stopped, RecursionError):
        return replace(row, open="its forward pass could not be followed")
    row = replace(row, norm=_norm(judged), qk_norm=qk_norm(judged))
    settings, doubt = _otherwise(program, stack, followed, judged)
    settings = (*without, *scales(judged), *_more(judged), *_others(program, stack), *settings)
    try:
        key = placement(judged)
        if key == "sandwich" and row.embed_norm == "yes":
            key = "peri"
        if key == "none" and (others := other_norms(program, stack.kind)):
            raise Undecided(f"its norms are of another kind: {others}")
        row = replace(row, placement=key, settings=settings)
    except Undecided as error:
        return replace(row, settings=settings, open=str(error))
    if doubt:
        return replace(row, placement=None, open=f"it depends on `{doubt}`, which is not known")
    if followed.wires:
        return replace(row, placement=None, final_norm=None, open=_wired(followed))
    return row


def _judged(program: Program, stack: Stack) -> tuple[Followed, Judged, list[str]]:
    """A layer's forward pass and what it shows; if that is nothing, without an optional input of the
    layer, which the list then names. Raises Undecided or Stopped."""
    followed = follow(program, stack)
    try:
        return followed, judge(followed.result), []
    except Undecided as error:
        if followed.wires:
            raise Undecided(_wired(followed)) from error
        for condition in followed.unknown:
            name, _, left = condition.partition(" is ")
            if left == "None" and name in _inputs(program, stack):
                without = follow(program, stack, [condition])
                with suppress(Undecided):
                    return without, judge(without.result), [f"read with {condition}"]
        raise error


def _wired(followed: Followed) -> str:
    return f"its residual path is a module of its own, {followed.wires[0]}"


def _inputs(program: Program, stack: Stack) -> list[str]:
    method = program.method(stack.kind, "forward")
    return [argument.arg for argument in method.args.args[2:]] if method else []


def _more(judged: Judged) -> Iterator[str]:
    for form in extra(judged):
        yield f"another sublayer, neither attention nor feed-forward: {_label(form)}"


def _others(program: Program, stack: Stack) -> Iterator[str]:
    """The layers of the stack that have no attention, with their placement."""
    for other in stack.others:
        found = _again(program, replace(stack, layer=other, others=()))
        yield f"other layers without attention, {other}: {_label(found[0] if found else 'undecided')}"


def _label(key: str) -> str:
    return SCHEMES.label(key) if key in SCHEMES else key


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
    for name, value in program.config_for(stack.kind).items():
        if isinstance(value, bool) and f".{name}" in program.text:
            other = _again(program, stack, changes={name: not value})
            if other is not None and other != before:
                settings.append(f"{name}={not value}: {_changes(before, other)}")
    if followed.kinds:
        other = _again(program, stack, followed.kinds)
        changes = _changes(before, other) if other else "placement undecided"
        named = [kind for kind in followed.kinds if OTHER.search(kind)] or followed.kinds
        by = f"other layers without attention, by `{named[-1]}`"
        settings.append(f"{by}: {changes or 'the same'}")
    for condition in followed.unknown:
        other = _again(program, stack, [condition])
        if condition in followed.kinds or other is None or other == before:
            continue
        if other[0] != before[0]:
            doubt = condition
        settings.append(f"{condition}, the other way: {_changes(before, other)}")
    return tuple(settings), doubt


Summary = tuple[str, str, str | None]
"""Placement, QK-norm, final norm."""


def _again(
    program: Program,
    stack: Stack,
    turned: Iterable[str] = (),
    changes: dict[str, object] | None = None,
) -> Summary | None:
    try:
        judged = judge(follow(program, stack, turned, changes).result)
    except (Undecided, Stopped, RecursionError):
        return None
    return _summary(judged, final_norm(program, stack, changes))


def _changes(before: Summary, after: Summary) -> str:
    names = (
        f"placement {_label(after[0])}",
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

TABLES = {
    "decoder": ("CAUSAL_LM",),
    "encoder": ("MASKED_LM",),
    "encoder-decoder": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "image and text": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
    "vision": ("IMAGE_CLASSIFICATION", "MASKED_IMAGE_MODELING"),
    "audio": ("CTC", "SPEECH_SEQ_2_SEQ", "AUDIO_CLASSIFICATION"),
}
"""The library's lists of classes, by the kind of model. A model of several lists is read from the first;
if it is in a list of encoders too, it is one of them."""


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


def models() -> dict[str, tuple[str, str]]:
    """Kind and class name of each model, by model type."""
    path = folder() / "auto" / "modeling_auto.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: dict[str, tuple[str, str]] = {}
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for kind, names in TABLES.items():
        for name in names:
            call = tables[f"MODEL_FOR_{name}_MAPPING_NAMES"]
            assert isinstance(call, ast.Call)
            for key, made in ast.literal_eval(call.args[0]):
                first = found.get(key, (kind, made if isinstance(made, str) else made[0]))
                found[key] = (kind, first[1]) if kind in LANGUAGE else first
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
