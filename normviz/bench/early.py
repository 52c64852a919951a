"""Error rate of the early stop: runs that it stops although they would have trained."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ..config import RunConfig
from ..events import Started, Step
from ..home import shipped
from ..shipped import load
from ..store import Store
from ..sweep import Grid, make, stored, sweep
from ..sweep.early import Flat, applies
from ..sweep.points import point
from ..verdict import judge

TRAINED = ("learned", "solved")


def grids() -> list[Grid]:
    """Grids where Post-LN nearly fails, where it leaves chance late, and where other schemes fail."""
    post = RunConfig(scheme="post", steps=150)
    return [
        make(post, {"depth": (6, 8, 10, 12), "lr": (1e-3, 3e-3)}, seeds=2),
        make(post.replace(init="torch"), {"depth": (8, 16, 24), "lr": (3e-3, 1e-2)}, seeds=2),
        make(post.replace(steps=400), {"depth": (7, 8, 9)}, seeds=3),
        make(post.replace(lr=3e-2, depth=8), {"scheme": ("deepnorm", "b2t", "mixln", "pre")}),
    ]


def measure() -> str:
    """Replay the shipped runs, run the grids with early stop, then finish the stopped runs."""
    configs: list[RunConfig] = []
    ended = []
    for path in sorted((shipped("assets") / "runs").glob("*.npz")):
        loaded = load(path)
        if loaded is None:
            continue
        started, steps, bad = loaded
        configs.append(started.config)
        if bad is None and (step := stops(started, steps)) is not None:
            losses = np.array([step.loss for step in steps])
            verdict = judge(losses, started.config.steps, started.chance, started.floor)
            ended.append((path.stem, step, verdict.kind, verdict.sentence))
    with tempfile.TemporaryDirectory() as folder:
        for grid in grids():
            configs += [cell.config for cell in grid.cells]
            ended += _stopped(Store(Path(folder)), grid)
    wrong = [one for one in ended if one[2] in TRAINED]
    lines = [
        f"  {name}: stopped after {step} of its steps; to its end: {sentence}"
        for name, step, _, sentence in ended
    ]
    return "\n".join(
        (
            f"{len(configs)} runs, to {sum(map(applies, configs))} of which the rule applies, "
            f"{len(ended)} stopped early, {len(wrong)} of which would have trained",
            *lines,
        )
    )


def stops(started: Started, steps: list[Step]) -> int | None:
    """Steps after which the rule stops a recorded run; None if it does not."""
    flat = Flat(started.config, started.chance)
    return next((step.step + 1 for step in steps if flat.look(step)), None)


def _stopped(store: Store, grid: Grid) -> list[tuple[str, int, str, str]]:
    """The cells that the rule stops: name, steps, and kind and sentence of the verdict without it."""
    for _ in sweep(store, grid, early=True):
        pass
    early = {cell: stored(store, cell.key, early=True) for cell in grid.cells}
    for _ in sweep(store, grid, early=False):  # finish the stopped runs
        pass
    found = []
    for cell, run in early.items():
        if run is None or run.is_done:
            continue
        whole = stored(store, cell.key, early=False)
        assert whole is not None
        end = point(cell, whole, store.losses(whole.id))
        c = cell.config
        name = f"{c.scheme} {c.init} depth {c.depth} lr {c.lr:g} seed {cell.seed}"
        found.append((name, len(store.steps(run).step), end.kind, end.sentence))
    return found
