"""Error rate of the early stop: runs that it stops although they would have trained.

Every run goes to its end while the rule watches it. The rule was made with the shipped runs and `grids`;
`drawn` are settings from all over its scope that it was not made with.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..config import RunConfig
from ..cores import cores
from ..execution import Ended, Local
from ..home import shipped
from ..maps import Grid, make
from ..maps.cell import warm
from ..maps.early import MEASURED, FlatDetector, applies, looks
from ..observed import configured
from ..runs import Recording, RecordingBuilder
from ..runs.archive import load
from ..runs.statistics import wilson
from ..runs.verdict import LEARNED

FIRST_SEED = 1000


@dataclass(frozen=True)
class Watched:
    """A run to its end: after how many steps the rule would have stopped it, if at all, and its verdict."""

    config: RunConfig
    stopped: int | None
    kind: str
    sentence: str

    @property
    def is_wrong(self) -> bool:
        """Whether it would have been stopped although it trains."""
        return self.stopped is not None and self.kind in LEARNED


def grids() -> list[Grid]:
    """Grids where Post-LN nearly fails, where it leaves chance late, and where other schemes fail."""
    post = RunConfig(scheme="post", steps=150)
    return [
        make(post, {"depth": (6, 8, 10, 12), "lr": (1e-3, 3e-3)}, seeds=2),
        make(post.replace(init="torch"), {"depth": (8, 16, 24), "lr": (3e-3, 1e-2)}, seeds=2),
        make(post.replace(steps=400), {"depth": (7, 8, 9)}, seeds=3),
        make(post.replace(lr=3e-2, depth=8), {"scheme": ("deepnorm", "b2t", "mixln", "pre")}),
    ]


def drawn(count: int) -> list[RunConfig]:
    """Settings drawn evenly from the rule's scope, the learning rate and the steps from their logarithms,
    each from seeds of its own."""
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        steps = round(150 * (400 / 150) ** rng.random())
        found.append(
            RunConfig(
                scheme="post",
                init=str(rng.choice(MEASURED["init"])),  # pyright: ignore
                task=str(rng.choice(MEASURED["task"])),  # pyright: ignore
                depth=int(rng.integers(6, 25)),
                lr=float(f"{1e-3 * 10 ** rng.random():.3g}"),
                warmup=int(rng.choice([0, 0, 20, 50, 100, 200])),
                steps=steps,
                init_seed=FIRST_SEED + k,
                data_seed=FIRST_SEED + k,
            )
        )
    assert all(map(applies, found))
    return found


def watched(canonical: str) -> Watched:
    """Train to the end, in a child process, with the rule watching."""
    from ..training.loop import train

    warm()
    config, builder = RunConfig.model_validate_json(canonical), RecordingBuilder()
    for _ in builder.follow(train(config, record=(0, *looks(config)))):
        pass
    it = builder.recording()
    return Watched(config, stops(it), it.verdict.kind, it.verdict.sentence)


def measure(count: int = 300) -> str:
    """Replay the shipped runs, run the grids and `count` drawn settings."""
    made = [
        Watched(
            configured(it.config), None if it.first_bad is not None else stops(it), *_verdict(it)
        )
        for path in sorted((shipped("assets") / "runs").glob("*.npz"))
        for it in load(path)
    ]
    made += _all([cell.config for grid in grids() for cell in grid.cells])
    return "\n".join(
        (
            *summary("runs that the rule was made with", made),
            *summary("settings drawn from its scope", list(_all(drawn(count)))),
        )
    )


def summary(what: str, runs: Sequence[Watched]) -> list[str]:
    """How many were stopped and would have trained, with a 95 % interval, then each stopped run."""
    stopped = [one for one in runs if one.stopped is not None]
    wrong = sum(one.is_wrong for one in stopped)
    low, high = wilson(wrong, len(stopped))
    saved = sum(one.config.steps - (one.stopped or 0) for one in stopped)
    steps = sum(one.config.steps for one in runs)
    lines = [
        f"{len(runs)} {what}; it applies to {sum(applies(one.config) for one in runs)}, stops "
        f"{len(stopped)} and saves {saved / max(1, steps):.0%} of all steps; {wrong} of the stopped ones "
        f"would have trained ({100 * low:.1f} to {100 * high:.1f} %, 95 % interval)"
    ]
    for one in stopped:
        c = one.config
        lines.append(
            f"  {'WRONG ' if one.is_wrong else ''}{c.scheme} {c.init} {c.task} depth {c.depth} lr {c.lr:g} "
            f"warmup {c.warmup} steps {c.steps} seed {c.data_seed}: stopped after {one.stopped}; to its "
            f"end: {one.sentence}"
        )
    return lines


def stops(it: Recording) -> int | None:
    """How many steps a recorded run would have made."""
    flat = FlatDetector(configured(it.config), it.chance)
    return next((step.step + 1 for step in it.steps if flat.check(step)), None)


def _verdict(it: Recording) -> tuple[str, str]:
    return it.verdict.kind, it.verdict.sentence


def _all(configs: Sequence[RunConfig]) -> Iterator[Watched]:
    tasks = {config.key: (config.canonical(),) for config in configs}
    with (
        tempfile.TemporaryDirectory() as folder,
        Local(watched, tasks, Path(folder), cores()) as pool,
    ):
        for event in pool.events(lambda: False):
            if isinstance(event, Ended):
                if event.problem is not None:
                    raise RuntimeError(event.problem)
                yield event.result
