"""Error rate of the early stop: runs that it stops although they would have trained.

Every run goes to its end while the rule watches it. The rule was made with `grids` and what shipped then;
`drawn` are settings from all over its scope that it was not made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import typer
from early_kit import grids, stops

from normviz import RunConfig, train
from normviz.cores import cores
from normviz.home import shipped
from normviz.observed import configured
from normviz.runs import RecordingBuilder
from normviz.runs.archive import load
from normviz.runs.statistics import wilson
from normviz.runs.verdict import LEARNED, Verdict
from normviz.studies.maps.cell import warm
from normviz.studies.maps.early import MEASURED, applies, looks

FIRST_SEED = 1000


@dataclass(frozen=True)
class Watched:
    """A run to its end: after how many steps the rule would have stopped it, if at all, and its verdict."""

    config: RunConfig
    stopped: int | None
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        """Whether it would have been stopped although it trains."""
        return self.stopped is not None and self.verdict.kind in LEARNED


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
                init=str(rng.choice(MEASURED["init"])),
                task=str(rng.choice(MEASURED["task"])),
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


def watched(config: RunConfig) -> Watched:
    """Train to the end with the rule watching."""
    warm()
    builder = RecordingBuilder()
    for _ in builder.follow(train(config, record=(0, *looks(config)))):
        pass
    it = builder.recording()
    return Watched(config, stops(it), it.verdict)


def summary(what: str, runs: Sequence[Watched]) -> Iterable[str]:
    """How many were stopped and would have trained, with a 95 % interval, then each stopped run."""
    stopped = [one for one in runs if one.stopped is not None]
    wrong = sum(one.is_wrong for one in stopped)
    low, high = wilson(wrong, len(stopped))
    saved = sum(one.config.steps - (one.stopped or 0) for one in stopped)
    steps = sum(one.config.steps for one in runs)
    yield (
        f"{len(runs)} {what}; it applies to {sum(applies(one.config) for one in runs)}, stops "
        f"{len(stopped)} and saves {saved / max(1, steps):.0%} of all steps; {wrong} of the stopped ones "
        f"would have trained ({100 * low:.1f} to {100 * high:.1f} %, 95 % interval)"
    )
    for one in stopped:
        c = one.config
        yield (
            f"  {'WRONG ' if one.is_wrong else ''}{c.scheme} {c.init} {c.task} depth {c.depth} lr {c.lr:g} "
            f"warmup {c.warmup} steps {c.steps} seed {c.data_seed}: stopped after {one.stopped}; to its "
            f"end: {one.verdict.sentence}"
        )


def main(runs: int = 300) -> None:
    """Replay the shipped runs, run the grids, and run so many drawn settings."""
    made = [
        Watched(configured(it.config), None if it.first_bad is not None else stops(it), it.verdict)
        for path in sorted((shipped("assets") / "runs").glob("*.npz"))
        for it in load(path)
    ]
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        made += pool.map(watched, [cell.config for grid in grids() for cell in grid.cells])
        print(*summary("shipped runs and runs of the grids", made), sep="\n", flush=True)
        print(
            *summary("settings drawn from its scope", [*pool.map(watched, drawn(runs))]), sep="\n"
        )


if __name__ == "__main__":
    typer.run(main)
