"""The tape against eager: gradients in float64, probes, trajectories, divergence, memory, and fallbacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from crossing_kit import case, changes, pairs
from peek import model_seen
from tape_kit import Compared, compare

from normviz import RunConfig
from normviz.catalog import FAMILIES, NORMS, POSITIONS, QK_NORMS, SCHEMES
from normviz.catalog.probes import recorded_by
from normviz.config import SETTINGS, engine_of
from normviz.native import build, library
from normviz.training.engine import Choice
from normviz.training.events import Diverged, Started, Step
from normviz.training.loop import train
from normviz.training.probes.instruments import ROWS

TURNED = {"geonorm", "deep_delta", "gtrxl"}
SPECTRAL = {"sigma_reparam"}
FALLBACKS = {
    "denseformer", "attnres", "delta_attnres", "residual_dual", "siamese", "hyper", "mhc", "mhc_lite",
    "kromhc", "hc_identity", *TURNED, *SPECTRAL,
}  # fmt: skip
"""Placements that the tape does not have."""
NO_NORMS = {"seednorm", "gatednorm", "tapernorm", "batchnorm", "powernorm"}
ILL_CONDITIONED = "prmsnorm"
"""It divides by one channel of 20: rounding decides the fourth digit of a gradient."""
TAPED = [scheme.key for scheme in SCHEMES if scheme.key not in FALLBACKS]
TAPED_NORMS = [norm.key for norm in NORMS if norm.key not in {*NO_NORMS, ILL_CONDITIONED}]
# GELU: where the input of a ReLU is within rounding of 0, its gradient may be on either side.
SMALL = RunConfig(
    depth=2, width=20, heads=2, seq_len=7, batch=5, ffn_ratio=3, activation="gelu", steps=1
)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0", "-g")


def forget() -> None:
    """Whether a library loads here is asked anew."""
    library.load.cache_clear()
    library.unavailable.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """The library, from the present tape.cpp."""
    made = build.LIBRARY
    if not made.exists() or made.stat().st_mtime < build.SOURCE.stat().st_mtime:
        try:
            build.build(made)
        except build.BuildError as error:
            pytest.skip(str(error))
        forget()


def run(config: RunConfig, engine: Choice = "tape", **options: object) -> list[object]:
    return list(train(config, engine=engine, **options))


def steps_of(events: list[object]) -> list[Step]:
    return [event for event in events if isinstance(event, Step)]


def losses(config: RunConfig, engine: Choice = "tape", **options: object) -> list[float]:
    return [step.loss for step in steps_of(run(config, engine, **options))]


def close(found: Compared) -> None:
    """Gradients within 1e-6 of float64, or three times as far as eager where that is far itself; the
    probes of both engines agree, and so do the losses."""
    ours, theirs = found.error("tape"), found.error("eager")
    assert ours <= (1e-6 if theirs < 3e-7 else 3 * theirs), (found.config, ours, theirs)
    assert found.loss["tape"] == pytest.approx(found.loss["exact"], rel=max(1e-6, 3 * theirs))
    for key, values, expected in zip(
        recorded_by("one"), found.layers["tape"], found.layers["eager"], strict=True
    ):
        np.testing.assert_allclose(
            values,
            expected,
            rtol=max(3e-5, 100 * theirs),
            atol=1e-6,
            err_msg=f"{key} {found.config}",
        )


@pytest.mark.slow
def test_every_scheme_and_norm_have_eagers_gradients_and_probes() -> None:
    """In turn with each QK-norm and with norms of values, in the ramp of the gains that have one."""
    attention = [*product(QK_NORMS.keys(), ("off", "on"))]
    for n, (scheme, norm) in enumerate(pairs(TAPED, TAPED_NORMS, 1)):
        qk, v = attention[n % len(attention)]
        config = SMALL.replace(scheme=scheme, norm=norm, qk_norm=qk, v_norm=v)
        if norm == "groupnorm":  # rounding decides more where a group has five channels
            config = config.replace(width=40)
        with case(scheme, norm, qk, v):
            close(compare(config, share=0.05))


def test_every_qk_norm_with_every_activation() -> None:
    for qk, activation in product(QK_NORMS.keys(), ("relu", "gelu")):
        with case(qk, activation):
            close(compare(SMALL.replace(qk_norm=qk, activation=activation, init_seed=3)))


@pytest.mark.parametrize("kind", ["normal", "massive", "ties", "zeros", "wide", "nan", "inf"])
def test_the_outliers_of_a_tensor_are_numpys(kind: str) -> None:
    for rows, width in ((1, 1), (1, 64), (5, 13), (64, 3), (256, 32), (70, 33)):
        with case(rows, width):
            assert_outliers_are_numpys(rows, width, kind)


def assert_outliers_are_numpys(rows: int, width: int, kind: str) -> None:
    rng = np.random.default_rng(rows * width)
    x = rng.standard_normal((2, rows, width)).astype(np.float32)
    match kind:
        case "massive":
            x[1, 0, 0] = -3e4
        case "ties":
            x = np.round(x)
        case "zeros":
            x[:] = 0
        case "wide":
            x *= 10.0 ** rng.uniform(-12, 12, x.shape).astype(np.float32)
        case "nan" | "inf":
            x[1, -1, -1] = {"nan": np.nan, "inf": -np.inf}[kind]
    out, at, scratch = (
        np.empty((2, 5)),
        np.array([0, rows * width]),
        np.empty(3 * width, np.float32),
    )
    sizes, sums = np.empty(rows * width, np.int32), np.empty(2 * width)
    library.load().tape_stream(
        2, x.ctypes.data, at.ctypes.data, rows, 1, width, scratch.ctypes.data, sizes.ctypes.data,
        sums.ctypes.data, out.ctypes.data,
    )  # fmt: skip
    out = out[:, 2:]
    sorted_sizes = np.sort(np.abs(x).reshape(2, -1), axis=1)
    middle = sorted_sizes[:, (rows * width - 1) // 2]
    middle = np.where(np.isnan(sorted_sizes[:, -1]), np.nan, middle)
    with np.errstate(all="ignore"):
        squares = np.square(x.astype(np.float64)).mean(1)
        kurtosis = np.square(squares).mean(1) / np.square(squares.mean(1))
    assert np.array_equal(out[:, 0], sorted_sizes[:, -1], equal_nan=True)
    assert np.array_equal(out[:, 1], middle, equal_nan=True)
    np.testing.assert_allclose(out[:, 2], kurtosis, rtol=1e-5)


@pytest.mark.parametrize("scheme", ["rezero", "prores", "layerscale"])
def test_a_branch_that_is_zero_has_cosine_zero(scheme: str) -> None:
    """And no NaN, which charts would draw as a run that broke."""
    row = ROWS["branch_cosine"]
    for engine in ("tape", "eager"):
        first, *_ = steps_of(run(SMALL.replace(scheme=scheme, steps=2), engine))
        assert first.layers is not None
        values = first.layers[row, 1:]
        assert np.isfinite(values).all()
        assert scheme == "layerscale" or not values.any()


CHANGES: list[dict[str, object]] = [
    # Sizes that are not round.
    {"width": 36, "heads": 3, "seq_len": 23, "batch": 5},
    {"width": 24, "heads": 2, "seq_len": 300, "batch": 1, "depth": 1},
    {"width": 7, "heads": 7, "seq_len": 2, "batch": 1, "ffn_ratio": 1},
    {"width": 64, "heads": 1, "seq_len": 33, "batch": 2, "task": "prose"},
    {"width": 32, "heads": 4, "seq_len": 32, "batch": 8, "depth": 1},
    {"width": 20, "heads": 5, "seq_len": 10, "task": "copy", "depth": 5},
    {"width": 4, "heads": 1, "depth": 40, "scheme": "peri"},
    *changes(*(name for name, one in SETTINGS.items() if one.tape or one.training)),
    *({"positions": key, "width": 24, "heads": 3} for key in POSITIONS.keys()),  # noqa: SIM118
    {"task": "masked", "mask": "none", "positions": "none"},
    {
        "task": "masked", "mask": "none", "seq_len": 33, "batch": 3, "qk_norm": "cosine",
        "scheme": "post",
    },
    {"tied": "on", "positions": "none", "scheme": "post"},
    {"softcap": 2.0, "zloss": 0.1, "task": "copy", "seq_len": 8},
    {"parametrisation": "completep", "scheme": "layerscale"},
    {"parametrisation": "completep", "scheme": "prores"},
    {"branch_gain": 0.3, "weight_gain": 0.5, "scheme": "post"},
    {"branch_gain": 2.0, "scheme": "layerscale"},
    {"branch_gain": 2.0, "scheme": "rezero"},
    {
        "activation": "swiglu", "positions": "rope", "norm": "rmsnorm", "qk_norm": "head",
        "scheme": "subln",
    },
    {"activation": "geglu", "scheme": "ngpt", "positions": "rope", "dropout": 0.2},
]  # fmt: skip


@pytest.mark.slow
def test_other_sizes_and_settings_have_eagers_gradients_and_probes() -> None:
    for change in CHANGES:
        with case(change):
            close(compare(SMALL.replace(**change), share=0.05))


@pytest.mark.parametrize("scheme", ["peri", "spannorm"])
def test_dropout_has_eagers_gradients_and_draws_other_numbers_each_step(scheme: str) -> None:
    config = SMALL.replace(scheme=scheme, dropout=0.3)
    close(compare(config))
    steps = config.replace(steps=3, lr=1e-6)
    with_dropout, eager = losses(steps), losses(steps, "eager")
    np.testing.assert_allclose(with_dropout, eager, rtol=1e-6)
    assert with_dropout != pytest.approx(losses(steps.replace(dropout=0.0)), rel=1e-4)


@pytest.mark.parametrize("scheme", ["pre", "post"])
def test_the_norm_by_a_part_of_the_channels(scheme: str) -> None:
    config = SMALL.replace(norm=ILL_CONDITIONED, scheme=scheme, width=64, activation="relu")
    found = compare(config, noise=0.05)
    assert found.error("tape") <= max(1e-6, 10 * found.error("eager")) <= 1e-4


@pytest.mark.slow
def test_a_norm_over_more_than_8192_channels() -> None:
    config = SMALL.replace(
        scheme="subln", depth=1, width=516, heads=1, ffn_ratio=16, seq_len=2, batch=1
    )
    found = compare(config, noise=0.01)
    assert found.error("tape") <= max(1e-6, 3 * found.error("eager")) <= 1e-5


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"weight_decay": 0.1, "clip": 0.1, "lr": 0.3},
        {"optimizer": "sgd", "lr": 1.0, "momentum": 0.5, "clip": 0.2},
        {"scheme": "ngpt", "lr": 0.1},
        {"optimizer": "muon", "weight_decay": 0.1},
        {"decay_on": "matrices", "weight_decay": 0.1, "clip": 0.5},
        {"parametrisation": "completep", "lr": 0.01},
    ],
)
def test_the_update_and_its_ratio_are_eagers(change: dict[str, object]) -> None:
    config = SMALL.replace(steps=3, **change)
    ours, theirs = (steps_of(run(config, engine)) for engine in ("tape", "eager"))
    for a, b in zip(ours, theirs, strict=True):
        assert a.layers is not None and b.layers is not None
        assert a.loss == pytest.approx(b.loss, rel=2e-5)
        ratios = a.layers[ROWS["update_ratio"], 1:], b.layers[ROWS["update_ratio"], 1:]
        assert np.isfinite(ratios[0]).all()
        np.testing.assert_allclose(*ratios, rtol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"scheme": "post", "dropout": 0.1},
        {"scheme": "prores", "norm": "rmsnorm", "qk_norm": "head", "beta2": 0.9, "warmup": 5},
        {"scheme": "deepnorm", "norm": "dyt", "weight_decay": 0.1, "schedule": "cosine"},
    ],
)
def test_fifty_steps_follow_eager_and_probes_change_no_bit(change: dict[str, object]) -> None:
    config = SMALL.replace(steps=50, **change)
    always, never = losses(config, record=range(50)), losses(config, record=())
    assert always == never == losses(config)
    eager = losses(config, "eager")
    np.testing.assert_allclose(always[:10], eager[:10], rtol=1e-5)
    np.testing.assert_allclose(always, eager, rtol=5e-3)
    assert always != eager  # they are two engines


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"scheme": "none", "depth": 16},
        {"scheme": "pre_nofinal", "lr": 10.0},
        {"scheme": "none", "optimizer": "sgd", "lr": 10.0, "momentum": 0.99},
    ],
)
def test_a_run_diverges_at_eagers_step_and_in_its_way(change: dict[str, object]) -> None:
    """Of a gradient that overflows, rounding decides which of two blocks is first."""
    config = RunConfig(**{"steps": 40, **change})
    ours, theirs = (
        [e for e in run(config, engine, record=()) if isinstance(e, Diverged)]
        for engine in ("tape", "eager")
    )
    assert len(theirs) == 1
    assert [(e.step, e.where) for e in ours] == [(e.step, e.where) for e in theirs]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_number_that_is_not_finite_ends_the_run_in_eagers_layer(
    value: float, activation: str
) -> None:
    def diverged(engine: Choice) -> list[object]:
        with model_seen() as models:
            events = train(SMALL.replace(steps=9, activation=activation), engine=engine)
            seen: list[object] = [next(events) for _ in range(3)]
            models[0].blocks[1].ffn.branch.up.weight.data[0, 0] = value
            seen += list(events)
        last = steps_of(seen)[-1]
        return [e for e in seen if isinstance(e, Diverged)] + [np.isnan(last.loss), last.step]

    assert diverged("tape") == diverged("eager")


# What the tape does not run.


@pytest.mark.slow
def test_eager_runs_the_rest_and_the_run_says_why() -> None:
    several, turned = "several streams, such as {}", "to the stream, such as {}"
    cases: list[tuple[dict[str, str], str]] = [
        *(({"scheme": key}, several.format(key)) for key in FALLBACKS - TURNED - SPECTRAL),
        *(({"scheme": key}, turned.format(key)) for key in TURNED),
        ({"scheme": "sigma_reparam"}, "no matrices divided by their largest singular value"),
        *(({"norm": key}, "no norm of the kind") for key in NO_NORMS),
    ]
    for change, part in cases:
        config = SMALL.replace(**change)
        started = next(train(config, engine="tape"))
        with case(change):
            assert isinstance(started, Started)
            assert (started.engine, engine_of(config)) == ("eager", "eager")
            assert part in started.why


@pytest.mark.slow
def test_estimates_know_the_engine() -> None:
    tried: list[dict[str, object]] = [
        *({"scheme": key} for key in TAPED),
        *({"norm": key} for key in NORMS.keys()),  # noqa: SIM118
        *({"family": key} for key in FAMILIES.keys()),  # noqa: SIM118
        *changes(),
    ]
    for change in tried:
        config = SMALL.replace(**change)
        started = next(train(config))
        with case(change):
            assert isinstance(started, Started)
            assert engine_of(config) == started.engine


def test_a_run_says_which_engine_it_has() -> None:
    started = [run(SMALL, engine)[0] for engine in ("tape", "eager")]
    said = [(s.engine, s.why) for s in started if isinstance(s, Started)]
    assert said == [("tape", ""), ("eager", "")]


@pytest.fixture
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("broken", "part"),
    [
        (lambda m: m.setattr(library, "LIBRARY", Path(__file__)), "does not load"),
        (lambda m: m.setattr(library, "VERSION", 0), "not 0: install NormViz again"),
    ],
)
def test_without_a_library_that_loads_eager_runs(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None], part: str
) -> None:
    broken(monkeypatch)
    started = run(SMALL)[0]
    assert isinstance(started, Started)
    assert started.engine == "eager"
    assert part in started.why


@pytest.mark.usefixtures("fresh")
@pytest.mark.slow
def test_wider_vectors_change_no_bit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A CPU without AVX-512 has the narrow ones in both builds."""
    configs = [
        SMALL.replace(width=48, heads=3, depth=3, steps=20),
        SMALL.replace(width=66, heads=3, seq_len=37, batch=3, depth=3, steps=5),
    ]
    here = [event for config in configs for event in run(config)]
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-DNARROW"))
    monkeypatch.setattr(library, "LIBRARY", narrow := tmp_path / "narrow.so")
    build.build(narrow)
    library.load.cache_clear()
    there = [event for config in configs for event in run(config)]
    for one, other in zip(here, there, strict=True):
        if isinstance(one, Step) and isinstance(other, Step):
            assert (one.loss, one.grad_norm) == (other.loss, other.grad_norm)
            np.testing.assert_array_equal(one.layers, other.layers)


# Memory.

SANITIZED = """
import sys
from pathlib import Path
from normviz import RunConfig
from normviz.native import library
library.LIBRARY = Path({made!r})
from normviz.training.loop import train
small = dict(depth=1, width=12, heads=3, seq_len=7, batch=3, ffn_ratio=3, steps=1)
for scheme in {schemes!r}:
    for _ in train(RunConfig(scheme=scheme, qk_norm="cosine", **small)): pass
for norm in {norms!r}:
    for _ in train(RunConfig(norm=norm, scheme="hybridnorm", v_norm="on", **small)): pass
for change in {changes!r}:
    for event in train(RunConfig(**{{**small, **change}})): pass
print(event)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_PRELOAD is Linux's")
def test_the_sanitizers_find_no_bad_address_and_nothing_undefined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = tmp_path / "tape.so"
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, *SANITIZERS))
    build.build(made)
    runtimes = [
        subprocess.run(
            ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    changes = [
        {"width": 36, "seq_len": 23, "activation": "gelu"},
        {"width": 8, "heads": 2, "seq_len": 270, "batch": 1, "depth": 1},
        {"width": 7, "heads": 7, "seq_len": 2, "batch": 1, "ffn_ratio": 1},
        {"scheme": "none", "lr": 10.0, "steps": 4, "depth": 3},
        {"task": "copy", "seq_len": 8},
        {"dropout": 0.5},
    ]
    code = SANITIZED.format(made=str(made), schemes=TAPED, norms=TAPED_NORMS, changes=changes)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "LD_PRELOAD": " ".join(runtimes),
            "ASAN_OPTIONS": "detect_leaks=0",
        },
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("Finished")
