"""Cells of sweeps (standard maps, claims) as files that ship, and their way into a store.

A file holds the losses and gradient norms of all steps of its cells, and the layers of a few. The
trainer makes the former as float32, so they are kept exactly; layers are rounded to float32.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .catalog import PROBES
from .config import ENGINE, RunConfig
from .events import Diverged, Started, Step
from .home import shipped
from .schedule import lr_at
from .store import EndedRun, Run, Store

LAYERS = 4
"""So many of a map cell's recorded steps keep their layers, the first and the last among them."""
ABOUT = ("device", "threads", "parameters", "chance", "floor", "text", "message")


def save(store: Store, runs: Sequence[Run], path: Path, layers_at: int = LAYERS) -> None:
    """Write stored runs, each with the layers of at most so many of its recorded steps."""
    about, scalars, layers = [], [], []
    for run in runs:
        steps = store.steps(run)
        kept = _few(len(steps.layer_steps), layers_at)
        about.append(
            {
                "key": run.key,
                "config": run.config.model_dump(mode="json"),
                **{name: getattr(run, name) for name in ABOUT},
                "status": run.status,
                "seconds": round((run.ended or 0.0) - (run.started or 0.0), 2),
                "bad": None if run.bad_step is None else _bad(run),
                "steps": len(steps.step),
                "layer_steps": steps.layer_steps[kept].tolist(),
            }
        )
        scalars.append(np.stack([steps.loss, steps.grad_norm]).astype(np.float32))
        layers.append(steps.layers[kept].astype(np.float32).ravel())
    head = {"engine": ENGINE, "probes": PROBES.keys(), "runs": about}
    np.savez_compressed(
        path,
        about=np.frombuffer(json.dumps(head).encode(), np.uint8),
        scalars=np.concatenate(scalars, axis=1),
        layers=np.concatenate(layers),
    )


def _few(n: int, most: int) -> list[int]:
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})


def _bad(run: Run) -> list[Any]:
    return [run.bad_step, run.bad_layer, run.bad_where]


def load(path: Path, known: Collection[str] = ()) -> Iterator[EndedRun]:
    """The runs of a file but those whose keys are known; none from one of another engine."""
    with np.load(path) as data:
        head = _head(data)
        scalars, layers = data["scalars"].astype(np.float64), data["layers"].astype(np.float64)
    at = layers_at = 0
    for about in head["runs"]:
        config = RunConfig(**about["config"])
        n, m = about["steps"], len(about["layer_steps"])
        shape = (m, len(PROBES), config.depth + 1)
        loss, norm = scalars[:, at : at + n]
        own = layers[layers_at : layers_at + int(np.prod(shape))].reshape(shape)
        at, layers_at = at + n, layers_at + own.size
        if config.key in known:
            continue
        layered = dict(zip(about["layer_steps"], own, strict=True))
        steps = [
            Step(i, float(loss[i]), lr_at(config, i), float(norm[i]), layered.get(i))
            for i in range(n)
        ]
        started = Started(config, **{name: about[name] for name in ABOUT if name != "message"})
        bad = Diverged(*about["bad"]) if about["bad"] else None
        yield EndedRun(started, steps, about["status"], bad, about["message"], about["seconds"])


def _head(data: Mapping[str, Any]) -> dict[str, Any]:
    head = json.loads(data["about"].tobytes())
    fits = head["engine"] == ENGINE and tuple(head["probes"]) == PROBES.keys()
    return head if fits else {**head, "runs": []}


FOLDERS = ("maps", "claims")
"""Of assets: cells of the standard maps, and runs behind claims."""


def _files() -> list[Path]:
    return [path for name in FOLDERS for path in sorted((shipped("assets") / name).glob("*.npz"))]


def keys_of(path: Path) -> frozenset[str]:
    """The keys of a file's runs."""
    with np.load(path) as data:
        return frozenset(about["key"] for about in _head(data)["runs"])


@cache
def names() -> frozenset[str]:
    """The keys of all results that ship as cells of maps or behind claims."""
    return frozenset().union(*map(keys_of, _files()))


def adopt(store: Store) -> None:
    """Put every shipped cell into the store, unless the store has a result of that config."""
    for path in _files():
        store.keep_all(list(load(path, store.done_keys())), "shipped sweep")
