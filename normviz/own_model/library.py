"""The installed `transformers`: its version, the kind and class of each model type, the year of its code."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..catalog.models import LANGUAGE

TABLES = {
    "decoder": ("CAUSAL_LM",),
    "encoder": ("MASKED_LM",),
    "encoder-decoder": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "image and text": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
    "vision": ("IMAGE_CLASSIFICATION", "MASKED_IMAGE_MODELING"),
    "audio": ("CTC", "SPEECH_SEQ_2_SEQ", "AUDIO_CLASSIFICATION"),
}
"""The library's lists of classes, by the kind of model. A model of several lists has the class of the first,
and the kind of the last one of language models, else of the first."""


def is_installed() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("transformers") is not None


def version() -> str:
    """The version of the library."""
    return importlib.metadata.version("transformers")


def library(part: str = "") -> Any:
    """The library, or a part such as ".models.auto", without types: pyrefly would read all its models."""
    return import_module(f"transformers{part}")


@cache
def models() -> dict[str, tuple[str, str]]:
    """Kind and class name of each model type."""
    tables = library(".models.auto.modeling_auto")
    classes: dict[str, tuple[str, str]] = {}
    for kind, names in TABLES.items():
        for name in names:
            for key, made in getattr(tables, f"MODEL_FOR_{name}_MAPPING_NAMES").items():
                first = classes.get(key, (kind, made if isinstance(made, str) else made[0]))
                classes[key] = (kind, first[1]) if kind in LANGUAGE else first
    return classes


COPYRIGHT = re.compile(r"Copyright\s*(?:\([cC]\)\s*)?(\d{4})")
HEAD = 3000
"""Characters of a file in which its copyright notice is."""


def code_of(model: str) -> Path:
    """The file with the class of a model type of `models`."""
    return Path(inspect.getfile(getattr(library(), models()[model][1])))


def year(path: Path) -> int | None:
    """The first year in the copyright notice of a model's code, else of its configuration's code."""
    beside = path.with_name(path.name.replace("modeling_", "configuration_"))
    for file in (path, beside):
        if file.exists() and (notice := COPYRIGHT.search(file.read_text(encoding="utf-8")[:HEAD])):
            return int(notice[1])
    return None
