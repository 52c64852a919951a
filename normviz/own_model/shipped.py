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
def anatomies(path: Path = TABLE) -> Mapping[str, Anatomy | str]:
    """The shipped anatomy of each model type, or why it has none."""
    found: dict[str, Anatomy | str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        it = json.loads(line)
        found[it["type"]] = parse_anatomy(it["anatomy"]) if "anatomy" in it else it["error"]
    return found


def dump(found: Mapping[str, Anatomy | str]) -> str:
    """The text of the file."""
    return "".join(f"{line}\n" for line in sorted(_line(kind, it) for kind, it in found.items()))


def _line(kind: str, found: Anatomy | str) -> str:
    if isinstance(found, str):
        return json.dumps({"type": kind, "error": found}, ensure_ascii=False)
    return json.dumps({"type": kind, "anatomy": asdict(found)}, ensure_ascii=False)
