"""The README's results: each lane of the presets from eight seeds, in `results.json` beside this file.

    python -m tests.bench.results
    python -m tests.bench.documents    # writes the table of it

Weights and batches both move with the seed. The loss is the mean of the last tenth of the steps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from normviz import train
from normviz.config import seeded
from normviz.lessons.presets import PRESETS
from normviz.result import collect
from normviz.runs import Recording

FILE = Path(__file__).with_name("results.json")
SEEDS = 8
SHOWN = ("hero", "prose", "init", "warmup", "high_lr", "depth", "today", "muon", "no_norm")
"""The presets of language models, which are told by their training loss."""


def main() -> None:
    lanes = [
        (preset, lane, config)
        for preset in SHOWN
        for lane, config in enumerate(PRESETS[preset].lanes())
    ]
    torch.set_num_threads(1)
    rows = list[dict[str, Any]]()
    for preset, lane, config in lanes:
        runs = [collect(train(one)) for one in seeded(config, SEEDS)]
        rows.append({"preset": preset, "lane": lane, "key": config.key, **told(runs)})
        print(rows[-1], flush=True)
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def told(runs: Sequence[Recording]) -> dict[str, Any]:
    """Chance, the engines, and each final loss; None where the run diverged."""
    losses = [None if run.first_bad else round(run.final, 4) for run in runs]
    engines = {run.started.engine for run in runs if run.started}
    return {"chance": round(runs[0].chance, 4), "engines": sorted(engines), "losses": losses}


if __name__ == "__main__":
    main()
