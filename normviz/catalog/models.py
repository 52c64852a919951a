"""Two tables about implementations by others: differences from ours, and the norms of real models.

`parity.json` has the largest relative difference of streams, logits and gradients between a scheme
and each of its oracles, in float64. `models.json` has the norm, placement, final norm and QK-norm of
real models of `transformers`, and how each row was told. `normviz census --write` makes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

from .norms import NORMS
from .schemes import SCHEMES

PARITY_TABLE = Path(__file__).with_name("parity.json")
TOLERANCE = 1e-10
"""The limit for every comparison, also of a scheme with its independent twin in the tests."""


def differences() -> dict[str, dict[str, float]]:
    """The largest relative difference by scheme and oracle, from `parity.json`."""
    return json.loads(PARITY_TABLE.read_text(encoding="utf-8"))


# The census of real models.

TABLE = Path(__file__).with_name("models.json")
UNTOLD = "could not be told"
TITLES = ("Placement", "Norm", "Final norm", "QK-norm", "Embedding norm")
"""Titles of `Model.words`, in the same order."""
FIELDS = ("placement", "norm", "final_norm", "qk_norm", "embed_norm")
"""The answers of a row, in the order of their titles."""
DATA_FLOW, CODE = "data flow", "code"
"""How a row was told: by the flow of data in a forward pass, or by an earlier program that read the code."""
LANGUAGE = ("decoder", "encoder", "encoder-decoder")
"""The kinds of language models."""
OTHERS = ("vision", "audio", "image and text")
"""The kinds of other models."""
QK_LABELS = {"none": "no", "head": "per head", "full": "full width", None: UNTOLD}


@dataclass(frozen=True)
class Model:
    """What a model computes with its configuration's defaults; None where that could not be told, and `open`
    has the reason.

    model      model type in the library
    kind       of LANGUAGE or OTHERS, by the library's lists; a decoder has no list as encoder
    layer      class of the block that was followed
    placement  key of a placement of the catalogue
    norm       key of a norm; None also where a layer has several kinds
    final_norm, qk_norm   yes or no; none, head or full
    embed_norm yes or no: whether a norm acts on the embedding before the first block
    settings   values of the configuration that change these, and to what; read from the code
    year       the first year in the copyright notice of its code; None where it has none
    told       DATA_FLOW or CODE
    transformers  the version of the library that it was told of
    by_code    of a row told by data flow: the answers that were read from the code, since the flow of data
               gives none or takes the word in another sense
    """

    model: str
    kind: str = LANGUAGE[0]
    layer: str = ""
    placement: str | None = None
    norm: str | None = None
    final_norm: str | None = None
    qk_norm: str | None = None
    embed_norm: str | None = None
    settings: tuple[str, ...] = ()
    open: str = ""
    year: int | None = None
    told: str = DATA_FLOW
    transformers: str = ""
    by_code: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, str, str, str, str]:
        """Labels of placement, norm, final norm, QK-norm and norm on the embedding."""
        return (
            SCHEMES.label(self.placement) if self.placement else UNTOLD,
            NORMS.label(self.norm) if self.norm else UNTOLD,
            self.final_norm or UNTOLD,
            QK_LABELS[self.qk_norm],
            self.embed_norm or UNTOLD,
        )

    @property
    def told_words(self) -> str:
        """How it was told: "data flow", "code", or "data flow; code: QK-norm"."""
        others = [TITLES[FIELDS.index(name)] for name in self.by_code]
        return f"{self.told}; {CODE}: {', '.join(others)}" if others else self.told

    @property
    def remarks(self) -> str:
        """Why something is unknown, and which settings change the answer."""
        return "; ".join(filter(None, (self.open, *self.settings)))


@dataclass(frozen=True)
class Census:
    """All models, and the day on which the table was made (ISO 8601)."""

    day: str
    all: tuple[Model, ...]

    @property
    def transformers(self) -> str:
        """The version of the library, or the versions."""
        return ", ".join(sorted({model.transformers for model in self.all}))

    @property
    def origin(self) -> str:
        """What the rows are, and how they were told, with counts: those of all kinds of models."""
        types = len({model.model for model in self.all})
        flow = [model for model in self.all if model.told == DATA_FLOW]
        read, single = len(self.all) - len(flow), sum(len(model.by_code) for model in flow)
        return (
            f"{len(self.all)} stacks of blocks of {types} model types in transformers {self.transformers}, "
            f"{len(self.models)} of them of language models, with the defaults of each configuration (table "
            f"of {self.day}). The placement of {len(flow)} was told by the flow "
            f"of data in one forward pass. The other {read} were read from the code by an earlier program, "
            f"as were {single} single answers of those {len(flow)} and all remarks on settings. Where that "
            "did not tell, the table says so. Rows are code paths of a library, not models in use."
        )

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The language models."""
        return self.of(LANGUAGE)

    def of(self, kinds: Iterable[str]) -> tuple[Model, ...]:
        """The models of some kinds."""
        wanted = tuple(kinds)
        return tuple(model for model in self.all if model.kind in wanted)

    @property
    def summary(self) -> str:
        """The stacks of language models counted by each of `TITLES`, the most frequent first."""
        stacks, names = len(self.models), len({model.model for model in self.models})
        columns = zip(*(model.words for model in self.models), strict=True)
        counts = (
            f"{title}: {_counted(words)}" for title, words in zip(TITLES, columns, strict=True)
        )
        return f"{stacks} stacks of blocks in {names} language models. {'. '.join(counts)}."

    def dump(self) -> str:
        """The census as JSON, one model a line."""
        head = {"day": self.day}
        rows = [json.dumps(_filled(model), ensure_ascii=False) for model in self.all]
        return f'{json.dumps(head)[:-1]}, "models": [\n' + ",\n".join(rows) + "\n]}\n"


def _counted(words: Iterable[str]) -> str:
    return "; ".join(f"{n} {word}" for word, n in Counter(words).most_common())


def _filled(model: Model) -> dict[str, object]:
    """Its fields that are not empty."""
    return {name: value for name, value in asdict(model).items() if value}


@cache
def census() -> Census:
    """The census that ships with NormViz, from `models.json`."""
    return parse_census(TABLE.read_text(encoding="utf-8"))


def parse_census(text: str) -> Census:
    """The census in a text that `Census.dump` wrote. Raises ValueError for a text that is not JSON."""
    table = json.loads(text)
    lists = ("settings", "by_code")
    models = tuple(Model(**(m | {n: tuple(m.get(n, ())) for n in lists})) for m in table["models"])
    return Census(table["day"], models)
