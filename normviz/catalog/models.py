"""What was measured against implementations by others: the largest relative difference of streams,
logits and gradients between a scheme and each of its oracles, in float64.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from .norms import NORMS
from .schemes import SCHEMES

PARITY_TABLE = Path(__file__).with_name("parity.json")
TOLERANCE = 1e-10
"""Of every comparison, and of every scheme with its independent twin in the tests."""


def differences() -> dict[str, dict[str, float]]:
    """By scheme and oracle."""
    return json.loads(PARITY_TABLE.read_text(encoding="utf-8"))


# Which norm, placement, final norm and QK-norm real models have, as `normviz census` read it from their
# code in `transformers`.

TABLE = Path(__file__).with_name("models.json")
OWN_LABELS = {"layernorm_1p": "LayerNorm, 1 + scale"}
"""Of norms that the catalogue does not have."""
UNTOLD = "could not be told"
TITLES = ("Placement", "Norm", "Final norm", "QK-norm")
"""Of a model's words, in their order."""
QK_LABELS = {"none": "no", "head": "per head", "full": "full width", None: UNTOLD}


@dataclass(frozen=True)
class Model:
    """What a model's code says with its configuration's defaults; None is "could not be told", and
    `open` says why.

    model      model type in the library
    layer      class of the layer that was followed
    placement  key of a placement of the catalogue
    norm       key of a norm, or layernorm_1p; None also where a layer has several kinds
    final_norm, qk_norm   yes or no; none, head or full
    settings   what of the configuration changes these, and to what
    """

    model: str
    layer: str = ""
    placement: str | None = None
    norm: str | None = None
    final_norm: str | None = None
    qk_norm: str | None = None
    settings: tuple[str, ...] = ()
    open: str = ""

    @property
    def words(self) -> tuple[str, str, str, str]:
        """Placement, norm, final norm and QK-norm for people."""
        return (
            SCHEMES.label(self.placement) if self.placement else UNTOLD,
            OWN_LABELS.get(self.norm, "") or NORMS.label(self.norm) if self.norm else UNTOLD,
            self.final_norm or UNTOLD,
            QK_LABELS[self.qk_norm],
        )

    @property
    def remarks(self) -> str:
        """Why something could not be told, and what changes the answer."""
        return "; ".join(filter(None, (self.open, *self.settings)))


@dataclass(frozen=True)
class Census:
    """All models, the library's version that they were read from, and the day (ISO 8601)."""

    transformers: str
    day: str
    models: tuple[Model, ...]

    @property
    def summary(self) -> str:
        """How many of the stacks have what, the most frequent first."""
        stacks, names = len(self.models), len({model.model for model in self.models})
        columns = zip(*(model.words for model in self.models), strict=True)
        said = (f"{title}: {_counted(words)}" for title, words in zip(TITLES, columns, strict=True))
        return f"{stacks} stacks of blocks in {names} models. {'. '.join(said)}."

    def dump(self) -> str:
        """As JSON, a model a line."""
        head = {"transformers": self.transformers, "day": self.day}
        rows = [json.dumps(_filled(model), ensure_ascii=False) for model in self.models]
        return f'{json.dumps(head)[:-1]}, "models": [\n' + ",\n".join(rows) + "\n]}\n"


def _counted(words: Iterable[str]) -> str:
    return "; ".join(f"{n} {word}" for word, n in Counter(words).most_common())


def _filled(model: Model) -> dict[str, object]:
    """Its fields that are not empty."""
    return {name: value for name, value in asdict(model).items() if value}


@cache
def census() -> Census:
    """The one that ships with NormViz."""
    return read(TABLE.read_text(encoding="utf-8"))


def read(text: str) -> Census:
    """What `Census.dump` wrote."""
    it = json.loads(text)
    models = tuple(Model(**{**m, "settings": tuple(m.get("settings", ()))}) for m in it["models"])
    return Census(it["transformers"], it["day"], models)
