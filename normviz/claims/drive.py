"""From a claim to its result: what the store lacks is run, then every number is read off.

A claim with a lab has no training runs of its own: the lab measures each config in a process of its
own, anew each time, and the store is only used for what links open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from ..config import ENGINE
from ..maps import Began, Cell, Done, Reused, sweep
from ..maps.drive import stored
from ..maps.points import point
from ..runs.store import Store
from .evidence import CellResult, Sample
from .figure import series
from .lab_process import Reading, measure_all
from .record import Claim
from .stored import ClaimResult

News = Reused | Began | Done | Reading | ClaimResult


class ClaimError(RuntimeError):
    """A claim's experiment could not be finished; one sentence says why."""


def run(
    store: Store,
    claim: Claim,
    seeds: int | None = None,
    processes: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[News]:
    """Run a claim's experiment and end with its Result, unless `stop` says so before.

    Runs that ship do not count: what comes out is held against them.
    Raises ClaimError where a run failed.
    """
    readings: dict[str, dict[str, float]] = {}
    seconds, failures = 0.0, list[str]()
    if claim.lab:
        for reading in measure_all(claim.lab, claim.cells(seeds), store.folder, stop):
            readings[reading.cell.key] = reading.values
            seconds += reading.seconds
            yield reading
    else:
        for news in sweep(store, claim.whole(seeds), processes, True, stop, shipped=False):
            if isinstance(news, Done) and news.run is None:
                failures.append(news.measured.message or "a run ended without a word")
            yield news
    if stop():
        return
    if failures:
        raise ClaimError(f"{claim.key} has no result: {failures[0]}")
    results = {
        cell.key: _result_of(store, claim, cell, readings, False) for cell in claim.cells(seeds)
    }
    yield result(claim, results, seeds or claim.seeds, seconds)


def result(
    claim: Claim, results: dict[str, CellResult], seeds: int, lab_seconds: float
) -> ClaimResult:
    """The claim's numbers and figure from its cells by key."""
    samples = [
        Sample(
            {
                arm: [
                    results[cell.key]
                    for cell in sorted(claim.grid(arm, seeds).cells, key=lambda cell: cell.at)
                    if cell.seed == seed
                ]
                for arm in claim.arms
            }
        )
        for seed in range(seeds)
    ]
    numbers = {
        name: [float(number.of(sample)) for sample in samples]
        for name, number in claim.numbers.items()
    }
    points = [one.point for one in results.values() if one.point is not None]
    return ClaimResult(
        claim=claim.key,
        engine=min(
            (one.recording.version for one in results.values() if one.recording), default=ENGINE
        ),
        date=date.today().isoformat(),
        seeds=seeds,
        seconds=round(sum(p.seconds for p in points) or lab_seconds, 1),
        arms=claim.settings(),
        rule=claim.rule_words(),
        numbers=numbers,
        figure=series(claim, samples, numbers),
        runs=[] if claim.lab else sorted(results),
        flat=sum(p.kind == "flat" for p in points),
        tape=sum(p.engine == "tape" for p in points),
    )


def read(store: Store, claim: Claim, seeds: int | None = None) -> ClaimResult | None:
    """The result from runs that the store has, shipped ones too; None where one is missing or where a
    lab measures it."""
    cells = claim.cells(seeds)
    if claim.lab or any(stored(store, cell.key, True) is None for cell in cells):
        return None
    results = {cell.key: _result_of(store, claim, cell, {}, True) for cell in cells}
    return result(claim, results, seeds or claim.seeds, 0.0)


def _result_of(
    store: Store, claim: Claim, cell: Cell, readings: dict[str, dict[str, float]], shipped: bool
) -> CellResult:
    if claim.lab:
        return CellResult(cell.config, lab=readings[cell.key])
    run = stored(store, cell.key, True, shipped)
    if run is None:
        raise ClaimError(f"{claim.key} has no result: run {cell.key} is not in the store")
    it = store.recording(run)
    return CellResult(cell.config, it, point(cell, run, it))
