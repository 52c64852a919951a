"""From a claim to its result: what the store lacks is run, then every number is read off.

A claim with a lab has no training runs of its own: the lab measures each config in processes of its own.
`run` measures anew each time; `result_here` reads what workers have stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import lru_cache

from ...config import ENGINE
from ...cores import cores
from ...execution import Began
from ...runs import Run
from ...runs.run import reading_key
from ...runs.store import Store
from ...runs.store.cells import reading
from ..maps import Cell, Done, Reused, sweep
from ..maps.drive import stored
from .choice import filled
from .evidence import CellResult, Sample
from .figure import series
from .lab_process import Reading, measure_all
from .record import Claim
from .stored import ClaimResult, changed

News = Reused | Began | Done | Reading | ClaimResult


class ClaimError(RuntimeError):
    """A claim's experiment could not be finished; one sentence says why."""


def run(
    store: Store,
    claim: Claim,
    seeds: int | None = None,
    processes: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    first: int = 0,
) -> Iterator[News]:
    """Run a claim's experiment from the seed `first` on and end with its result, unless `stop` says so
    before.

    Runs that ship do not count: what comes out is held against them.
    Raises ClaimError where a run failed.
    """
    if claim.tuned and (seeds or claim.seeds) < 2:
        raise ClaimError(
            f"{claim.key} chooses the learning rates of each seed on the other seeds: give it 2 seeds or more"
        )
    readings: dict[str, dict[str, float]] = {}
    seconds, failures = 0.0, list[str]()
    cells = claim.cells(seeds, first)
    if claim.lab:
        parallel = 1 if claim.is_timing else processes or cores()
        for reading in measure_all(claim.lab, cells, store.folder, stop, parallel):
            readings[reading.cell.key] = reading.values
            seconds += reading.seconds
            yield reading
    elif cells:
        grid = claim.whole(seeds, first)
        for news in sweep(store, grid, processes, stop, shipped=False):
            if isinstance(news, Done) and not news.measured.id:
                failures.append(news.measured.message or "a run ended without a word")
            yield news
    if stop():
        return
    if failures:
        raise ClaimError(f"{claim.key} has no result: {failures[0]}")
    results = {cell.key: _result_of(store, claim, cell, readings) for cell in cells}
    yield result(claim, results, seeds or claim.seeds, seconds, first)


def result(
    claim: Claim,
    results: dict[str, CellResult],
    seeds: int,
    lab_seconds: float,
    first: int = 0,
) -> ClaimResult:
    """The claim's numbers and figure from its cells by key."""
    samples = _samples(claim, results, seeds, first)
    fallen = [sample.fallen() for sample in samples]
    numbers = _numbers(claim, samples)
    points = [
        cell_result.point for cell_result in results.values() if cell_result.recording is not None
    ]
    return ClaimResult(
        claim=claim.key,
        engine=ENGINE,
        date=date.today().isoformat(),
        seeds=seeds,
        first=first,
        seconds=round(sum(p.seconds for p in points) or lab_seconds, 1),
        arms=claim.settings(),
        rule=claim.rule_words(),
        numbers=numbers,
        fallen=changed(_numbers(claim, fallen), numbers),
        figure=series(claim, samples, numbers),
        runs=[] if claim.lab else sorted(results),
        tape=sum(p.engine == "tape" for p in points),
    )


def _samples(claim: Claim, results: dict[str, CellResult], seeds: int, first: int) -> list[Sample]:
    grids = {arm: claim.grid(arm, seeds, first).cells for arm in claim.arms}
    return [
        Sample(
            {
                arm: [
                    results[cell.key]
                    for cell in sorted(cells, key=lambda cell: cell.at)
                    if cell.seed == seed
                ]
                for arm, cells in grids.items()
            }
        )
        for seed in range(seeds)
    ]


def _numbers(claim: Claim, samples: Sequence[Sample]) -> dict[str, list[float]]:
    read = {name: [float(of(sample)) for sample in samples] for name, of in claim.read.items()}
    return filled(claim, read)


def keys(claim: Claim) -> list[str]:
    """Names of the claim's results in the store."""
    return [key(claim, cell) for cell in claim.cells()]


def key(claim: Claim, cell: Cell) -> str:
    """Name of a cell's result in the store."""
    return reading_key(claim.lab, cell.config) if claim.lab else cell.key


def _here(store: Store, claim: Claim, cell: Cell) -> Run | None:
    """A cell's result that was trained or measured with this store."""
    if claim.lab:
        return reading(store, claim.lab, cell.config)
    return stored(store, cell.key, shipped=False)


def missing_here(store: Store, claim: Claim) -> list[Cell]:
    """The claim's cells without a result that was trained or measured with this store."""
    return [cell for cell in claim.cells() if _here(store, claim, cell) is None]


def result_here(store: Store, claim: Claim) -> ClaimResult | None:
    """The result from what was trained or measured with this store; None where a cell is missing."""
    runs = [run for cell in claim.cells() if (run := _here(store, claim, cell)) is not None]
    if len(runs) < len(claim.cells()):
        return None
    return _result_here(store, claim, tuple(run.id for run in runs))


@lru_cache(maxsize=64)
def _result_here(store: Store, claim: Claim, numbers: tuple[int, ...]) -> ClaimResult:
    results, seconds = dict[str, CellResult](), 0.0
    for cell, number in zip(claim.cells(), numbers, strict=True):
        if (run := store.run(number)) is None:
            raise ClaimError(f"{claim.key} has no result: run {number} is not in the store")
        seconds += run.seconds
        results[cell.key] = (
            CellResult(cell, lab=dict(run.reading))
            if claim.lab
            else CellResult(cell, store.recording(run))
        )
    return result(claim, results, claim.seeds, seconds)


def _result_of(
    store: Store, claim: Claim, cell: Cell, readings: dict[str, dict[str, float]]
) -> CellResult:
    if claim.lab:
        return CellResult(cell, lab=readings[cell.key])
    run = stored(store, cell.key, shipped=False)
    if run is None:
        raise ClaimError(f"{claim.key} has no result: run {cell.key} is not in the store")
    return CellResult(cell, store.recording(run))
