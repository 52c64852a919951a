"""The early stop: what counts as dead, and that nothing that trains does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crossing_kit import BESIDE, case, others
from early_kit import grids, stops

from normviz import RunConfig, train
from normviz.catalog import FAMILIES, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.catalog.setting import Range
from normviz.config import RANGES, SETTINGS
from normviz.home import shipped as shipped_folder
from normviz.runs import collect
from normviz.runs.archive import load
from normviz.runs.store import Origin, Store
from normviz.runs.verdict import judge
from normviz.studies.maps import make, missing, stored
from normviz.studies.maps.cell import measure
from normviz.studies.maps.early import (
    CUT_OFF,
    FLAT,
    GRAD,
    MEASURED,
    FlatDetector,
    applies,
    is_flat,
    looks,
)
from normviz.studies.maps.points import point
from normviz.training.events import Step

pytestmark = pytest.mark.slow

CHANCE = 3.3
CONFIG = RunConfig(scheme="post", depth=6, steps=400)
SHIPPED = sorted((shipped_folder("assets") / "runs").glob("*.npz"))


def replay(losses: list[float], ratio: float = 1e-6, config: RunConfig = CONFIG) -> int | None:
    """Steps until the rule stops a run with these losses, whose gradient arrives by this ratio."""
    flat = FlatDetector(config, CHANCE)
    layers = np.ones((len(recorded_by("one")), config.depth + 1))
    layers[GRAD, 1] = ratio
    for step, loss in enumerate(losses):
        if flat.check(Step(step, loss, config.lr, 1.0, layers if step in looks(config) else None)):
            return step + 1
    return None


FLAT_RUN = [CHANCE] * 400


def test_flat_and_cut_off_is_dead_after_three_looks() -> None:
    assert replay(FLAT_RUN) == 32 + 16 + 16 + 1


GO_ON = [
    (FLAT_RUN, 10 * CUT_OFF, CONFIG),  # the gradient arrives: it may yet leave
    (FLAT_RUN, float("nan"), CONFIG),
    ([CHANCE * 1.1] * 400, 1e-6, CONFIG),  # not at chance
    ([CHANCE * 0.9] * 400, 1e-6, CONFIG),
    ([CHANCE * (1.039 - k * 5e-4) for k in range(250)], 1e-6, CONFIG),  # falls, slowly
    ([float("nan")] * 400, 1e-6, CONFIG),
    (FLAT_RUN, 1e-6, CONFIG.replace(optimizer="sgd")),
    (FLAT_RUN, 1e-6, CONFIG.replace(schedule="cosine")),
    (FLAT_RUN, 1e-6, CONFIG.replace(task="copy")),
    (FLAT_RUN, 1e-6, CONFIG.replace(depth=1)),
    (FLAT_RUN, 1e-6, CONFIG.replace(scheme="deepnorm", depth=100)),
]


def test_what_may_yet_train_goes_on() -> None:
    for i, (losses, ratio, config) in enumerate(GO_ON):
        with case(i):
            if config.depth in (1, 100):
                assert not looks(config)
            assert replay(losses, ratio, config) is None


def test_a_low_rate_has_longer_and_a_warm_up_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MEASURED, "lr", RANGES["lr"])
    assert (replay(FLAT_RUN, config=CONFIG.replace(lr=2e-4)) or 0) > 150
    assert replay(FLAT_RUN, config=CONFIG.replace(lr=5e-5)) is None  # has hardly moved
    assert (replay(FLAT_RUN, config=CONFIG.replace(warmup=100)) or 0) > 130


def test_a_gradient_that_comes_back_starts_the_count_again() -> None:
    flat = FlatDetector(CONFIG, CHANCE)
    ended = None
    for step in range(200):
        layers = np.ones((len(recorded_by("one")), CONFIG.depth + 1))
        layers[GRAD, 1] = 1.0 if step == 64 else 1e-6
        shown = layers if step in looks(CONFIG) else None
        if ended is None and flat.check(Step(step, CHANCE, CONFIG.lr, 1.0, shown)):
            ended = step
    assert ended == 64 + 3 * 16


def measured() -> list[RunConfig]:
    """The Post-LN decoders that the rule was made with: of the grids, and those that ship, but for the
    tour's one on prose of which a tenth is held out, where the rule does not apply."""
    loaded = [one.config for path in SHIPPED for one in load(path)]
    cells = [cell.config for grid in grids() for cell in grid.cells]
    every = cells + loaded
    own = [c for c in every if (c.family, c.scheme, c.optimizer) == ("decoder", "post", "adamw")]
    return [c for c in own if c.task != "prose_split"]


def test_the_rule_applies_to_every_post_ln_run_that_it_was_made_with() -> None:
    assert len(measured()) == 44  # as normviz/studies/maps/early.py says
    assert all(map(applies, measured()))


def test_its_scope_is_no_wider_than_what_it_was_made_with() -> None:
    made_with = measured()
    for name, scope in MEASURED.items():
        if name in ("init_seed", "data_seed"):
            continue
        with case(name):
            values = {getattr(config, name) for config in made_with}
            if isinstance(scope, Range):
                low = 0 if name == "steps" else min(values)  # a shorter run begins a longer one
                assert (scope.low, scope.high) == (low, max(values))
            else:
                assert set(scope) == values


OUTSIDE: dict[str, Any] = {
    "scheme": SCHEMES.keys(), "task": FAMILIES["decoder"].tasks, "depth": [25], "steps": [401], "lr": [1e-4],
    "warmup": [201],
}  # fmt: skip


def test_a_setting_that_it_was_not_made_with_is_out_of_its_scope() -> None:
    """Every setting, so that a new one is out of scope unless it is measured."""
    assert applies(CONFIG)
    for name in SETTINGS.keys() - {"init_seed", "data_seed", "text"}:
        with case(name):
            known = MEASURED.get(name, (getattr(CONFIG, name),))
            values = [value for value in OUTSIDE.get(name, others(name)) if value not in known]
            assert values
            beside = BESIDE.get(name, {}) if name in ("mask", "patch_norm") else {}
            assert not any(
                applies(CONFIG.replace(**{name: value}, **beside))
                for value in values
                if value != "text"
            )


def test_with_another_beta2_nothing_is_stopped() -> None:
    """This one sits at chance, cut off from the gradient, and learns within 800 steps."""
    config = RunConfig(
        scheme="post", depth=14, lr=1e-3, beta2=0.9, steps=100, init_seed=42, data_seed=42
    )
    assert measure(config, early=True).status == "finished"


def test_some_shipped_run_is_stopped_and_none_that_learned() -> None:
    stopped = 0
    for path in SHIPPED:
        (it,) = load(path)
        if stops(it) is not None:
            stopped += 1
            with case(path.stem):
                assert it.first_bad is None
                said = judge(it.losses, it.config.steps, it.chance, it.floor)
                assert said.kind == "at chance"
    assert stopped >= 3


def test_a_stopped_cell_says_so_and_is_no_finished_loss(store: Store) -> None:
    """12 blocks of Post-LN at 0.01 stay at chance on every seed that was ever run."""
    config = RunConfig(scheme="post", lr=1e-2, steps=90)
    grid = make(config, {})
    measured = measure(config, early=True)
    assert measured.started is not None
    assert measured.status == "stopped" and (measured.message or "").startswith(FLAT)
    assert len(measured.steps) == 65
    recorded = [step.step for step in measured.steps if step.layers is not None]
    assert recorded == [0, 1, 2, 4, 8, 16, 32, 64]  # looks at 48, keeps it not
    store.keep_all([measured], "sweep")
    run = stored(store, config.key, early=True)
    assert run is not None and is_flat(run)
    one = point(grid.cells[0], store.recording(run))
    assert one.kind == "flat"
    assert one.sentence.startswith("stopped: flat at chance since step ")
    assert np.isnan(one.final) and one.capped <= one.chance and not one.trains
    assert missing(store, grid, early=True) == []
    assert missing(store, grid, early=False) == list(grid.cells)  # without it, it is run to its end


def kept(store: Store, config: RunConfig, origin: Origin) -> None:
    """A run of one step in the store, stopped by the rule."""
    ended = replace(collect(train(config)), status="stopped", message=FLAT + "5")
    store.keep_all([ended], origin)


ELSEWHERE = RunConfig(scheme="post", depth=25, steps=1)


def test_it_is_one_where_it_ships(store: Store) -> None:
    kept(store, ELSEWHERE, "shipped sweep")
    run = stored(store, ELSEWHERE.key, early=True)
    assert run is not None and is_flat(run)
    assert stored(store, ELSEWHERE.key, early=False) is None
    assert stored(store, ELSEWHERE.key, early=True, shipped=False) is None


def test_a_run_that_a_visitor_stopped_is_no_result(store: Store) -> None:
    run = store.enqueue(CONFIG)
    store.end(run, "stopped", message=f"{FLAT}12")
    assert stored(store, CONFIG.key, early=True) is None
