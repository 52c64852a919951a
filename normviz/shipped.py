"""Finished runs that ship with the product, as small .npz files, and their way into a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .catalog import PROBES
from .config import ENGINE, RunConfig
from .events import Diverged, Started, Step
from .home import shipped
from .store import Store

if TYPE_CHECKING:
    from .result import Result


def save(result: Result, path: Path) -> None:
    """Write a finished run."""
    started, bad = result.started, result.bad
    assert started is not None
    about = {
        "engine": ENGINE,
        "probes": PROBES.keys(),
        "config": started.config.model_dump(mode="json"),
        **{name: getattr(started, name) for name in ("device", "threads", "parameters")},
        **{name: getattr(started, name) for name in ("chance", "floor", "text")},
        "bad": [bad.step, bad.layer, bad.where] if bad else None,
    }
    layered = [step for step in result.steps if step.layers is not None]
    np.savez_compressed(
        path,
        about=np.array(json.dumps(about)),
        scalars=np.array([(s.loss, s.lr, s.grad_norm) for s in result.steps]),
        layer_steps=np.array([s.step for s in layered]),
        layers=np.array([s.layers for s in layered]),
    )


def load(path: Path) -> tuple[Started, list[Step], Diverged | None] | None:
    """Read a shipped run; None for one of another engine or another list of probes."""
    with np.load(path) as data:
        about: dict[str, Any] = json.loads(str(data["about"]))
        if about["engine"] != ENGINE or tuple(about["probes"]) != PROBES.keys():
            return None
        layers = dict(zip(data["layer_steps"].tolist(), data["layers"], strict=True))
        steps = [
            Step(i, loss, lr, norm, layers.get(i))
            for i, (loss, lr, norm) in enumerate(data["scalars"].tolist())
        ]
    names = ("device", "threads", "parameters", "chance", "floor", "text")
    started = Started(RunConfig(**about["config"]), **{name: about[name] for name in names})
    return started, steps, Diverged(*about["bad"]) if about["bad"] else None


def adopt(store: Store) -> None:
    """Put every shipped run into the store, unless the store has a finished run of that config. Copies
    that earlier releases left there are deleted."""
    store.drop_copies()
    for path in sorted((shipped("assets") / "runs").glob("*.npz")):
        if (loaded := load(path)) is not None:
            store.adopt(*loaded)
