"""The census of real models beside their anatomies: which answers of its rows the flow of data gives.

    anatomies.json (a trace of each model type) + models.json -> models.json, made again

Without torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..catalog.models import CODE, DATA_FLOW, FIELDS, Model
from .report import Anatomy, StackFound

GAINS_ASIDE = {"pre_nofinal": "pre", "deepnorm": "post", "layerscale": "pre"}
"""Placements that the census counts as another one, since it leaves gains and the final norm aside."""


def answers(stack: StackFound | None) -> dict[str, str | None]:
    """What the flow of data says of each field of a row; None where it does not tell."""
    if stack is None:
        return dict.fromkeys(FIELDS)
    key = stack.placement
    final = {"no": "no", "not told": None}.get(stack.final_words, "yes")
    embed = "yes" if stack.embed_norm else "no"
    values = (GAINS_ASIDE.get(key or "", key), stack.norm_key, final, stack.qk_norm, embed)
    return dict(zip(FIELDS, values, strict=True))


def made_again(row: Model, stack: StackFound | None, version: str) -> Model:
    """A row with the answers that a trace in the library's `version` gives.

    What was read from the code stays where the trace does not say the same. Where it gives no placement, or
    another one than was read, the row stays as it is.
    """
    here = answers(stack)
    read = FIELDS if row.told == CODE else row.by_code
    by_code = tuple(name for name in read if here[name] != getattr(row, name))
    if here["placement"] is None or "placement" in by_code:
        return row
    told: dict[str, Any] = {name: here[name] for name in FIELDS if name not in by_code}
    open_ = row.open if row.placement else ""
    return replace(row, **told, told=DATA_FLOW, transformers=version, by_code=by_code, open=open_)


def rows_of(model: str, kind: str, year: int | None, anatomy: Anatomy, version: str) -> list[Model]:
    """Rows of a model type that the census does not have: one for each stack with other answers."""
    rows: dict[tuple[str | None, ...], Model] = {}
    for stack in anatomy.stacks:
        start = Model(model, kind, stack.kinds[0], open=stack.why, year=year, transformers=version)
        rows.setdefault(tuple(answers(stack).values()), made_again(start, stack, version))
    return [*rows.values()]


def stack_of(row: Model, anatomy: Anatomy | str | None) -> StackFound | None:
    """The stack whose blocks are of the row's class, or hold it."""
    if anatomy is None or isinstance(anatomy, str):
        return None
    named = [stack for stack in anatomy.stacks if row.layer in stack.kinds]
    alike = {(stack.placement, stack.kinds) for stack in anatomy.stacks}
    return named[-1] if named else (anatomy.stacks[0] if len(alike) == 1 else None)


CONFIRMED, CONTRADICTED, TOLD_HERE, TOLD_THERE, OPEN, NOT_RUN = (
    "told by data flow", "contradicted", "told by data flow alone", "told by the code alone",
    "told by neither", "did not run",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A row of the census beside the traced stack of the same model, what came out, and why."""

    row: Model
    stack: StackFound | None
    outcome: str
    why: str


def compared(rows: Iterable[Model], tried: Mapping[str, Anatomy | str]) -> Iterator[Compared]:
    """Each row beside its model's anatomy, or the sentence why there is none."""
    for row in rows:
        anatomy = tried.get(row.model, "no anatomy of it was made")
        stack = stack_of(row, anatomy)
        if isinstance(anatomy, str):
            yield Compared(row, None, NOT_RUN, anatomy)
        elif stack is None:
            ran = ", ".join(kind for each in anatomy.stacks for kind in each.kinds)
            yield Compared(row, None, NOT_RUN, f"{row.layer} is not in what ran: {ran}")
        else:
            yield Compared(row, stack, *_outcome(row, stack))


def _outcome(row: Model, stack: StackFound) -> tuple[str, str]:
    """What came out, and why a row is not told, or which answers are contradicted."""
    here = answers(stack)
    if here["placement"] is None:
        return (OPEN if row.placement is None else TOLD_THERE), stack.why
    if row.placement is None:
        return TOLD_HERE, row.open
    other = [n for n in FIELDS if n not in row.by_code and here[n] != getattr(row, n)]
    wrong = other if row.told == DATA_FLOW else [n for n in other if n == "placement"]
    return (CONTRADICTED if wrong else CONFIRMED), ", ".join(wrong)


SEEN = {
    "queries and keys get unit length by a function, which the code's reading does not follow": (
        "swinv2", "yoso",
    ),
    "its embedding has a norm of its own class, or follows the norm of another stack": (
        "blip", "hrm_text", "llama4", "perceiver",
    ),
    "norms of the convolutions or patches before the stack are on the way": (
        "mobilevit", "mobilevitv2", "moonshine", "pvt_v2",
    ),
    "each stage ends with a norm, or the norm is in the class with the head": (
        "cvt", "mobilevitv2", "perceiver", "pvt_v2", "swiftformer",
    ),
    "the list that was found holds no blocks": ("pvt",),
    "its blocks were not told: those with cross-attention have the norms": ("mllama",),
}  # fmt: skip
"""Why the data flow and the code differ in a field, by model: from the paths of the norms found."""


def differences(comparison: Compared) -> list[str]:
    """The fields in which data flow and code differ, each with what both say."""
    here = answers(comparison.stack)
    there = {name: getattr(comparison.row, name) for name in FIELDS[1:]}
    return [
        f"{name}: code {answer}, data flow {here[name]}"
        for name, answer in there.items()
        if None not in (here[name], answer) and here[name] != answer
    ]


def reasons(model: str) -> str:
    """Why the fields of a model differ; empty if nobody has looked."""
    return "; ".join(why for why, models in SEEN.items() if model in models)
