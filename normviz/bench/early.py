"""Error rate of the early stop: runs that it stops although they would have trained."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..config import RunConfig
from ..home import shipped
from ..maps import Grid, make, stored, sweep
from ..maps.early import FlatDetector, applies
from ..maps.points import point
from ..runs import Recording
from ..runs.archive import load
from ..runs.store import Store

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
        for it in load(path):
            configs.append(it.config)
            if it.first_bad is None and (step := stops(it)) is not None:
                ended.append((path.stem, step, it.verdict.kind, it.verdict.sentence))
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


def stops(it: Recording) -> int | None:
    """How many steps a recorded run would have made."""
    flat = FlatDetector(it.config, it.chance)
    return next((step.step + 1 for step in it.steps if flat.check(step)), None)


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
        end = point(cell, whole, store.recording(whole, layers=False))
        c = cell.config
        name = f"{c.scheme} {c.init} depth {c.depth} lr {c.lr:g} seed {cell.seed}"
        found.append((name, len(store.steps(run).step), end.kind, end.sentence))
    return found
