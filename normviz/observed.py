"""Observed: the description of a run that was watched, in place of the settings of one that was configured.

Torch-free. A lane, the store and the exports read it where they read a `RunConfig`. It can't be trained:
the model is the visitor's own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from .catalog import NORMS, PLACEMENTS, SCHEMES
from .config import RANGES, RunConfig, over_budget

SOURCE = "normviz.watch"
PREFIX = "o1-"
"""What the key of an observed run begins with; 1 is the version of its record."""
KEY = re.compile(r"[eo]\d+-[0-9a-f]{16}")
"""The form of a run's key, configured or observed."""
OWN_UNIT = "units of its own"
"""The unit of a loss that somebody's own loop computes."""
NO_PLACEMENT = "own model"
"""Words for a model whose placement is not known."""
FOUND = {"width", "placement", "norm", "notes", "batches"}
"""What is no part of a run's key: a watch finds it while the model trains, or a duel tells it."""


class Observed(BaseModel):
    """A model that was watched while somebody trained it.

    model       its name: its class, or what the caller named it
    blocks      number of blocks of the stack that was watched
    width       channels of the residual stream
    placement   key of the placement in the catalogue, where it was found, else None
    norm        key of the norm, likewise
    parameters  learned numbers of the whole model
    source      the program that watched it
    path        where the blocks are in the model
    run         names this run: two runs of one model are two records
    notes       what was not recorded, a sentence each
    batches     names the batches, where other runs had the same ones; else empty
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(max_length=200)
    blocks: int = Field(ge=1, le=10_000)
    width: int = Field(ge=1)
    placement: str | None = None
    norm: str | None = None
    parameters: int = Field(0, ge=0)
    source: str = SOURCE
    path: str = ""
    run: str = ""
    notes: tuple[str, ...] = ()
    batches: str = ""

    def canonical(self) -> str:
        """Canonical JSON: every field, sorted, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def key(self) -> str:
        """Name of this run: "o1-" and the hash of its record without what is found while it runs."""
        about = json.dumps(self.model_dump(mode="json", exclude=FOUND), sort_keys=True)
        return PREFIX + hashlib.sha256(about.encode()).hexdigest()[:16]

    @property
    def where(self) -> str:
        """Where in the model the blocks are, in words."""
        return self.path or "the model itself"

    def replace(self, /, **changes: Any) -> Observed:
        """The same record with some fields changed."""
        return Observed(**{**self.model_dump(), **changes})

    # What a lane reads from the settings of a run

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return self.blocks

    @property
    def rows(self) -> int:
        """How many rows its layers have after the first: blocks."""
        return self.blocks

    @property
    def family(self) -> str:
        """The family whose rows are blocks, as its are."""
        return "decoder"

    @property
    def scheme(self) -> str:
        """Key of the placement, which decides the colour; of an unknown one a word for it."""
        return self.placement or NO_PLACEMENT

    @property
    def task(self) -> str:
        """What it learns is not known: runs are compared where they had the same batches alone."""
        return f"{NO_PLACEMENT} {self.batches or self.run}"

    @property
    def text(self) -> str:
        """It reads no text of ours."""
        return ""

    @property
    def steps(self) -> int:
        """0: how many steps there will be is not known."""
        return 0

    @property
    def lr_edits(self) -> tuple[tuple[int, float], ...]:
        """Its learning rate can't be changed from here."""
        return ()

    @property
    def label(self) -> str:
        """The model, and its placement where it is known."""
        return f"{self.model}, {SCHEMES.label(self.placement)}" if self.placement else self.model


Settings: TypeAlias = RunConfig | Observed
"""What describes a run: the settings of one that was configured, or the record of one that was observed."""


def label(settings: Settings) -> str:
    """What a lane is called: the placement of a configured run, the model of an observed one."""
    return settings.label if isinstance(settings, Observed) else PLACEMENTS.label(settings.scheme)


def configured(settings: Settings) -> RunConfig:
    """The settings of a configured run. Raises ValueError for an observed one."""
    if isinstance(settings, Observed):
        raise ValueError(
            f"{settings.label} was observed, so it has no settings that could be trained here: open it as a "
            "toy on the History page"
        )
    return settings


def read_settings(values: Mapping[str, Any]) -> Settings:
    """The settings from their JSON. Raises ValueError for what is neither."""
    return (
        Observed(**values) if "blocks" in values and "scheme" not in values else RunConfig(**values)
    )


def nearest(observed: Observed) -> RunConfig:
    """The settings of a small run with the same placement, norm and number of blocks, as far as this product
    has them; the rest are the defaults."""
    usual = RunConfig()
    wanted: dict[str, Any] = {"depth": min(max(observed.blocks, 1), int(RANGES["depth"].high))}
    if observed.placement in SCHEMES:
        wanted["scheme"] = observed.placement
    if observed.norm in NORMS:
        wanted["norm"] = observed.norm
    while over_budget(usual.model_copy(update=wanted)) and wanted["depth"] > 1:
        wanted["depth"] //= 2
    return usual.replace(**wanted)
