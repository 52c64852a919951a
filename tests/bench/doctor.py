"""`normviz doctor` on seeded bugs and on sound models: what is found, at which line, and false alarms.

    python -m tests.bench.doctor

The bugs and the small sound models are those of tests/own_model/test_doctor.py. Model types of
transformers are those of the shipped table, as traced when it was made. Exported scripts are made and traced
here, as are models with adapters and staged vision models where peft and timm are installed.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from normviz import inspect
from normviz.catalog import SCHEMES
from normviz.own_model.shipped import anatomies

FOLDERS = (Path(__file__).parents[1] / "own_model", Path(__file__).parents[1] / "kits")
STAGED = (
    "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256", "convnext_atto", "poolformer_s12",
    "mobilevit_xxs", "mobilevitv2_050", "pvt_v2_b0", "twins_svt_small", "davit_tiny", "levit_128s",
)  # fmt: skip
ADAPTERS: dict[str, dict[str, Any]] = {
    "LoRA": {},
    "DoRA": {"use_dora": True},
    "all linear": {"target_modules": "all-linear"},
}
TRUE = {
    "pre_nofinal": "it has no final norm by definition",
    "donut-swin": "it has no norm after its last stage",
}
"""Findings that are no false alarms."""


def main() -> int:
    """Print the counts, missed bugs, and findings on sound models; 1 for a missed bug or a false alarm."""
    sys.path += map(str, FOLDERS)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    missed = [*_missed()]
    import test_doctor as rows

    print(
        f"seeded bugs: {len(rows.BUGS) - len(missed)} of {len(rows.BUGS)} found, with module or line"
    )
    alarms = 0
    groups: dict[str, Iterator[tuple[str, tuple[str, ...]]]] = {
        "small sound models": ((name, inspect(make()).lint) for name, make in rows.SOUND.items()),
        "exported scripts": _exported(),
        "model types of transformers": _shipped(),
    }
    if find_spec("peft"):
        groups["models with adapters of peft"] = _adapted()
    if find_spec("timm"):
        groups["staged models of timm"] = _staged()
    for what, every in groups.items():
        found = dict(every)
        told = {name: lint for name, lint in found.items() if lint}
        wrong = told.keys() - TRUE.keys()
        alarms += len(wrong)
        print(f"{what}: {len(found)}, false alarms {len(wrong)}")
        for name, lint in told.items():
            print(f"  {name}: {lint[0]}{f' (true: {TRUE[name]})' if name in TRUE else ''}")
    return int(bool(missed or alarms))


def _missed() -> Iterator[str]:
    """The seeded bugs that are not found once, with their line."""
    import test_doctor as rows

    for bug, (make, name, where, said) in rows.BUGS.items():
        place = f"test_doctor.py:{rows.LINES[where]}" if where in rows.LINES else where
        found = [each for each in inspect(make()).findings if each.name == name]
        right = len(found) == 1 and place in found[0].where and re.search(said, found[0].measured)
        if not right:
            print(f"  missed: {bug}")
            yield bug


def _exported() -> Iterator[tuple[str, tuple[str, ...]]]:
    from own_model_kit import exported

    for scheme in SCHEMES:
        it = exported(scheme.key)
        yield scheme.key, inspect(it.model, it.tokens).lint


def _shipped() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, it in anatomies().items():
        yield name, () if isinstance(it, str) else it.lint


def _adapted() -> Iterator[tuple[str, tuple[str, ...]]]:
    from own_model_kit import hugging
    from peft import LoraConfig, get_peft_model  # pyrefly: ignore[missing-import]

    for kind in ("gpt2", "llama", "bert"):
        for name, settings in ADAPTERS.items():
            model = get_peft_model(hugging(kind), LoraConfig(r=4, **settings))
            trained = [p for p in model.parameters() if p.requires_grad]
            yield f"{kind}, {name}", inspect(model, optimizer=torch.optim.AdamW(trained)).lint


def _staged() -> Iterator[tuple[str, tuple[str, ...]]]:
    import timm  # pyrefly: ignore[missing-import]
    from timm.optim import create_optimizer_v2  # pyrefly: ignore[missing-import]

    for name in STAGED:
        size = 224 if name.startswith(("twins", "levit")) else 64
        own = {"img_size": size} if name.startswith("swin") else {}
        model = timm.create_model(name, **own)
        optimizer = create_optimizer_v2(model, "adamw", weight_decay=0.05)
        yield name, inspect(model, torch.randn(1, 3, size, size), optimizer=optimizer).lint


if __name__ == "__main__":
    sys.exit(main())
