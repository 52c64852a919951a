"""The anatomies of the model types of `transformers` that ship with NormViz.

`anatomies.json` has one anatomy a line, made by `normviz census --write`. Without torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from .report import Anatomy, parse_anatomy

TABLE = Path(__file__).with_name("anatomies.json")
"""One line a model type: its anatomy, or the sentence why there is none."""


@cache
def anatomies() -> Mapping[str, Anatomy | str]:
    """The shipped anatomy of each model type, or why it has none."""
    by_type: dict[str, Anatomy | str] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_type[row["type"]] = parse_anatomy(row["anatomy"]) if "anatomy" in row else row["error"]
    return by_type


def dump(by_type: Mapping[str, Anatomy | str]) -> str:
    """The text of the file."""
    return "".join(
        f"{line}\n" for line in sorted(_line(kind, anatomy) for kind, anatomy in by_type.items())
    )


def _line(kind: str, anatomy: Anatomy | str) -> str:
    if isinstance(anatomy, str):
        return json.dumps({"type": kind, "error": anatomy}, ensure_ascii=False)
    return json.dumps({"type": kind, "anatomy": asdict(anatomy)}, ensure_ascii=False)
