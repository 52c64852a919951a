"""Runs that a browser's modules train in Node, and a small live page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from charts_kit import in_node

from normviz import RunConfig
from normviz.browser.model import browser_model
from normviz.browser.page import live_page
from normviz.browser.task import browser_task, prose_codes
from normviz.player import SCRIPTS
from normviz.runs.lane import Lane

TRAIN = """
import { Tape } from "player/tape.js";
import { Run } from "player/training.js";
const bytes = readFileSync(new URL("player/tape.wasm"));
const out = [];
for (const { model, task, settings, start } of given) {
  const tape = await Tape.open(bytes, model, start);
  const values = [...new Uint32Array(tape.memory, tape.at.parameters, model.sizes[2])];
  const run = new Run(tape, task, settings), rows = [];
  while (!run.isOver) rows.push(run.next());
  out.push({ values, rows, bytes: tape.bytes });
}
const plain = (k, v) => (typeof v === "number" && !Number.isFinite(v) ? String(v) : v);
console.log(JSON.stringify(out, plain));
"""


def put_live_page(
    folder: Path,
    duels: Sequence[Sequence[Lane]] = (),
    depths: Sequence[int] = (2,),
    norms: Sequence[str] = ("layernorm",),
    schemes: Sequence[str] = ("pre", "post"),
) -> None:
    """Write the page that trains these placements, with its files."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = {f"{name}.js": text for name, text in SCRIPTS.items()}
    made = live_page(duels, schemes=schemes, depths=depths, norms=norms, scripts=tuple(scripts))
    for name, content in [*((name, text.encode()) for name, text in scripts.items()), *made]:
        (folder / name).write_bytes(content)


def task_with_text(key: str) -> dict[str, Any]:
    """A task as a worker gets it: a page loads the text of prose apart."""
    return {**browser_task(key), **({"codes": [*prose_codes()]} if key == "prose" else {})}


def in_browser(c: RunConfig) -> dict[str, Any]:
    """What a browser needs to train a config."""
    return {
        "model": browser_model(c), "task": task_with_text(c.task),
        "start": {"init": c.init, "initSeed": c.init_seed, "dropout": c.dropout},
        "settings": {
            "lr": c.lr, "edits": c.lr_edits, "warmup": c.warmup, "schedule": c.schedule,
            "steps": c.steps, "beta1": c.beta1, "beta2": c.beta2, "clip": c.clip,
            "weightDecay": c.weight_decay, "dataSeed": c.data_seed,
        },
    }  # fmt: skip


def trained_in_node(configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
    """Of each config the bits of its initial values, and a row a step, made by the browser's modules."""
    return in_node(TRAIN, [in_browser(config) for config in configs])
