"""The anatomies of the model types of `transformers` that ship with NormViz, and what the census says of
the same models.

`anatomies.json` has one anatomy a line, made by `normviz inspect --all`. Without torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from ..catalog.models import Model, census
from .report import Anatomy, StackFound, read

TABLE = Path(__file__).with_name("anatomies.json")
"""One line a model type: its anatomy, or the sentence why there is none."""


@cache
def anatomies(path: Path = TABLE) -> Mapping[str, Anatomy | str]:
    """The shipped anatomy of each model type, or why it has none."""
    found: dict[str, Anatomy | str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        it = json.loads(line)
        found[it["type"]] = read(it["anatomy"]) if "anatomy" in it else it["error"]
    return found


def line(kind: str, found: Anatomy | str) -> str:
    """A line of the file."""
    if isinstance(found, str):
        return json.dumps({"type": kind, "error": found}, ensure_ascii=False)
    return json.dumps({"type": kind, "anatomy": asdict(found)}, ensure_ascii=False)


# The same models, read from their code.

AGREES, DIFFERS, TOLD_HERE, TOLD_THERE, OPEN, NOT_RUN = (
    "agree", "differ", "told by data flow alone", "told by the code alone", "told by neither", "did not run",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A row of the census beside the traced stack of the same model."""

    row: Model
    stack: StackFound | None
    outcome: str
    why: str


def compared(path: Path = TABLE) -> Iterator[Compared]:
    """Each row of the census whose model type was tried."""
    tried = anatomies(path)
    for row in census().all:
        if (it := tried.get(row.model)) is None:
            continue
        if isinstance(it, str):
            yield Compared(row, None, NOT_RUN, it)
            continue
        stack = _stack_of(row, it)
        if stack is None:
            ran = ", ".join(kind for each in it.stacks for kind in each.kinds)
            yield Compared(row, None, NOT_RUN, f"{row.layer} is not in what ran: {ran}")
            continue
        yield Compared(row, stack, _outcome(row, stack), _why(row, stack))


FIELDS = ("norm", "final_norm", "qk_norm", "embed_norm")
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


def differences(it: Compared) -> list[str]:
    """The fields in which data flow and code differ, each with what both say."""
    if it.stack is None:
        return []
    here = {
        "norm": it.stack.norm_key,
        "final_norm": {"no": "no", "not told": None}.get(it.stack.final_words, "yes"),
        "qk_norm": it.stack.qk_norm,
        "embed_norm": "yes" if it.stack.embed_norm else "no",
    }
    there = {name: getattr(it.row, name) for name in FIELDS}
    return [
        f"{name}: code {there[name]}, data flow {here[name]}"
        for name in FIELDS
        if None not in (here[name], there[name]) and here[name] != there[name]
    ]


def reasons(model: str) -> str:
    """Why the fields of a model differ; empty if nobody has looked."""
    return "; ".join(why for why, models in SEEN.items() if model in models)


def _stack_of(row: Model, it: Anatomy) -> StackFound | None:
    """The stack whose blocks are of the row's class, or hold it."""
    named = [stack for stack in it.stacks if row.layer in stack.kinds]
    alike = {(stack.placement, stack.kinds) for stack in it.stacks}
    return named[-1] if named else (it.stacks[0] if len(alike) == 1 else None)


def _outcome(row: Model, stack: StackFound) -> str:
    here, there = stack.placement, row.placement
    if here is None or there is None:
        return OPEN if here is there else TOLD_THERE if here is None else TOLD_HERE
    return AGREES if _same(here, there, stack) else DIFFERS


def _same(here: str, there: str, stack: StackFound) -> bool:
    """Whether two keys name one forward pass: the census leaves gains and the ends of the stack aside."""
    return there in (here, *stack.alike, ALIKE.get(here, here))


ALIKE = {"pre_nofinal": "pre", "deepnorm": "post", "peri": "sandwich", "layerscale": "pre"}
"""A placement of the catalogue that the census' rules name without its gains or ends."""


def _why(row: Model, stack: StackFound) -> str:
    if stack.placement is None:
        return stack.why
    return row.open if row.placement is None else ""
