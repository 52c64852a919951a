"""What a measurement says in words and as charts: computed from its numbers, never more than they."""

from __future__ import annotations

import pytest
from charts_kit import render, rows
from cost_kit import SAME, made

from normviz.formats import timing
from normviz.studies.norm_cost import chart as cost
from normviz.studies.norm_cost import findings
from normviz.studies.norm_cost.findings import CLAIMS
from normviz.studies.norm_cost.result import CostSetting, Measurement, Ratio
from normviz.studies.norm_cost.variants import CONTEXTS, REFERENCE, VARIANTS

RMS = ("rmsnorm", "step")


@pytest.mark.parametrize(
    ("ratio", "sentence"),
    [
        (SAME, "RMSNorm (library) is not distinguishable from LayerNorm: 1.000 (0.995 to 1.005) "),
        (Ratio(1.03, 1.02, 1.04), "takes 1.030 (1.020 to 1.040) times LayerNorm's time"),
        (Ratio(0.9, 0.88, 0.92), "takes 0.900 (0.880 to 0.920) times LayerNorm's time"),
    ],
)
def test_the_verdict_is_the_interval_s(ratio: Ratio, sentence: str) -> None:
    assert sentence in findings.verdict(made({RMS: ratio}))


@pytest.mark.parametrize(
    ("ratio", "sentence"),
    [
        (
            SAME,
            "takes as long as with LayerNorm as far as can be told: 1.000 (0.995 to 1.005) times",
        ),
        (Ratio(0.972, 0.969, 0.976), "takes 2.8 % less time than with LayerNorm (2.4 to 3.1 %)"),
        (Ratio(1.03, 1.02, 1.04), "takes 3.0 % more time than with LayerNorm (2.0 to 4.0 %)"),
    ],
)
def test_what_a_norm_costs_is_said_first_and_of_which_machine(ratio: Ratio, sentence: str) -> None:
    it = made({("none", "step"): ratio})
    said = findings.verdict(it)
    assert said.startswith("Without its norms a whole training step ") and sentence in said
    assert said.index(sentence) < said.index(it.text()) < said.index("RMSNorm (library)")


@pytest.mark.parametrize(
    ("ratio", "reached"),
    [
        (Ratio(1.1, 1.05, 1.2), 0),
        (SAME, 0),
        (Ratio(0.993, 0.991, 0.994), 0),
        (Ratio(0.97, 0.96, 0.98), 1),
        (Ratio(0.95, 0.92, 0.98), 1),
        (Ratio(0.92, 0.90, 0.94), 2),
        (Ratio(0.87, 0.86, 0.89), 3),
        (Ratio(0.8, 0.78, 0.82), 4),
        (Ratio(1.02, 0.7, 1.3), 0),  # so wide that it holds everything: nothing is shown
    ],
)
def test_claims_are_reached_or_not(ratio: Ratio, reached: int) -> None:
    said = findings.verdict(made({RMS: ratio}))
    assert [claim.label in said for claim in CLAIMS] == [i < reached for i in range(4)]
    assert ("1 % and more, do not show" in said) == (reached == 0 and ratio.low > 0.99)
    assert ("too wide to rule the savings out" in said) == (reached == 0 and ratio.low < 0.99)


@pytest.mark.parametrize(
    ("rms", "words"),
    [
        (Ratio(1.03, 1.02, 1.04), "4.6 % less"),
        (Ratio(1.0296, 1.02, 1.04), "4.6 % less"),  # of 1.030 and 1.080, as they are printed
        (Ratio(1.1, 1.095, 1.11), "1.9 % more"),
        (Ratio(1.07, 1.06, 1.08), "not distinguishable"),
    ],
)
def test_both_hand_written_are_compared_too(rms: Ratio, words: str) -> None:
    by_hand = Ratio(1.08, 1.07, 1.09)
    said = findings.verdict(
        made({("rmsnorm_hand", "step"): rms, ("layernorm_hand", "step"): by_hand})
    )
    assert f"1.080 (1.070 to 1.090) times LayerNorm's time: {words}." in said


def test_other_work_is_mentioned() -> None:
    assert "busy" not in findings.verdict(made())
    assert "busy" not in findings.verdict(made(load=None))
    assert "busy with other work (load 2.5 just before)" in findings.verdict(made(load=2.5))


def test_on_a_gpu_it_says_that_kernels_are_replayed() -> None:
    assert "replays" not in findings.verdict(made())
    said = findings.verdict(made(setting=CostSetting(device="cuda")))
    assert "replays of their kernels" in said


def test_a_measurement_that_was_disturbed_tells_nothing_apart() -> None:
    """LayerNorm beside itself was 5 % off: so is whatever RMSNorm is."""
    it = made({("again", "step"): Ratio(1.05, 1.03, 1.07), RMS: Ratio(1.06, 1.04, 1.08)})
    assert "is not distinguishable" in findings.verdict(it)


def test_units_have_the_digits_they_need() -> None:
    assert [timing(s) for s in (3.14159e-5, 4.2e-3, 1.25)] == [
        "31.4 µs",
        "4.2 ms",
        "1.25 s",
    ]
    assert findings.interval(Ratio(3.14159, 3, 3.3)) == "3.14 (3.00 to 3.30)"


# Charts


@pytest.fixture
def wide() -> Measurement:
    return made({("dyt", "alone"): Ratio(8, 7, 9), ("none", "alone"): Ratio(0.01, 0.01, 0.01)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "dark"),
    [(key, key == "step") for key in CONTEXTS.keys()],  # noqa: SIM118
)
def test_a_chart_has_every_variant_and_claim(wide: Measurement, context: str, dark: bool) -> None:
    spec = cost.chart(wide, context, dark)
    svg = render(spec)
    for variant in VARIANTS:
        assert (variant.label in svg) or variant.key == REFERENCE
    for claim in CLAIMS:  # one legend serves all three charts
        assert (claim.label in svg) == (context == "step")
    assert [r["x"] for r in spec["datasets"]["claims"]] == [0.99, 0.93, 0.9, 0.85]
    assert "as a multiple of LayerNorm" in svg
    assert len(rows(spec["datasets"]["rows"])) == (len(VARIANTS) - 1) * len(
        CONTEXTS[context].passes
    )


def test_what_is_not_told_apart_is_pale(wide: Measurement) -> None:
    drawn = {r["variant"]: r["differs"] for r in cost.chart(wide, "alone")["datasets"]["rows"]}
    assert drawn == {v.label: v.key in ("dyt", "none") for v in VARIANTS if v.key != REFERENCE}


def test_a_ratio_near_zero_stays_on_the_chart(wide: Measurement) -> None:
    found = [r for r in cost.chart(wide, "alone")["datasets"]["rows"] if r["ratio"] < 0.5]
    assert {r["variant"] for r in found} == {"No norm"}
    assert all(r["ratio"] == cost.LEAST for r in found)
    assert "0.01 (0.01 to 0.01)" in found[0]["words"]


def test_a_finding_names_all(wide: Measurement) -> None:
    said = findings.finding(wide, "alone")
    assert "DyT both ways 8.00 (7.00 to 9.00)" in said
    assert "RMSNorm (library) forward 1.000 (0.995 to 1.005), not distinguishable" in said
