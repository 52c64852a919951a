"""Norms by hand against PyTorch's modules: every output, and every value on the way to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_kit import CASES, EDITED, F64, array, examples, modules, outputs, rows_of, same
from hypothesis import given
from torch import nn

from normviz.lessons.by_hand import (
    KEYS,
    PRESETS,
    Example,
    HandError,
    code,
    matrix,
    number,
    sentences,
    steps,
    work,
)
from normviz.lessons.by_hand.formulas import running


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_pytorch(case: str) -> None:
    example = CASES[case]
    it = work(example)
    x, counted = torch.from_numpy(it.after.x), torch.from_numpy(it.after.counted)
    for key, norm in modules(example).items():
        given_x = x[counted] if key == "batchnorm" else x
        if key == "batchnorm" and example.mode == "eval":
            seen = given_x if example.experiment == "padding" else torch.from_numpy(it.before.x)
            for _ in range(example.passes if len(seen) > 1 else 0):
                norm(seen)
            norm.eval()
        if key == "batchnorm" and it.refused:
            with pytest.raises(ValueError, match="more than 1 value per channel"):
                norm(given_x)
            assert (it.now[key].y[it.after.counted] == np.array(example.beta)).all()
        else:
            same(it.now[key].y[rows_of(it, key)], array(norm(given_x)))


@pytest.mark.parametrize("case", CASES)
def test_the_shown_pytorch_lines_give_the_numbers_of_the_page(case: str) -> None:
    it = work(CASES[case])
    for key, y in outputs(code.torch(it)).items():
        same(y, it.now[key].y[rows_of(it, key)])


def test_running_statistics_are_those_of_pytorch() -> None:
    x = np.array(EDITED.x)
    norm = nn.BatchNorm1d(5, momentum=0.3, dtype=F64)
    for passes in range(4):
        stats = running(x, np.ones(3, bool), passes, 0.3)
        assert norm.running_mean is not None and norm.running_var is not None
        same(stats.mean, array(norm.running_mean))
        same(stats.variance, array(norm.running_var))
        norm(torch.from_numpy(x))


@given(examples())
def test_any_table_has_finite_numbers_and_sentences(example: Example) -> None:
    it = work(example)
    assert it.now["rmsnorm"].y[it.row, it.feature] == pytest.approx(
        it.now["rmsnorm"].hat[it.row, it.feature] * example.gamma[it.feature]
    )
    for key in KEYS:
        assert np.isfinite(it.now[key].y).all()
        sheet = steps.sheet(it, key)
        assert sum(line.picked for line in sheet.lines) == 1
        assert all(len(line.values) == len(sheet.heads) for line in sheet.lines)
        assert sentences.seen(it, key).endswith(".")
    assert sentences.lead(it).endswith(".")


def test_the_sheet_is_what_a_student_writes() -> None:
    it = work(PRESETS["usual"].example())
    assert steps.sheet(it, "layernorm").steps == (
        ("mean μ", "(1 + 2 + 3 + 6) / 4 = 3"),
        ("variance σ²", "(4 + 1 + 0 + 9) / 4 = 3.5"),
        ("√(σ² + ε)", "√(3.5 + 1e−5) = 1.871"),
        ("x̂", "(6 − 3) / 1.871 = 1.604"),
        ("y = γ x̂ + β", "1 · 1.604 + 0 = 1.604"),
    )
    assert steps.sheet(it, "batchnorm").steps[0] == ("mean μ", "(6 + 3 − 2 + 5) / 4 = 3")
    assert steps.sheet(it, "rmsnorm").steps[1] == ("RMS", "√(12.5 + 1e−5) = 3.536")


@pytest.mark.parametrize(
    ("tried", "changed"),
    [
        ({"experiment": "alone"}, {"batchnorm"}),
        ({"experiment": "alone", "mode": "eval"}, set()),
        ({"experiment": "neighbour", "amount": 5.0}, {"batchnorm"}),
        ({"experiment": "neighbour", "amount": 5.0, "mode": "eval"}, set()),
        ({"experiment": "neighbour", "amount": 0.0}, set()),
        ({"experiment": "padding"}, {"batchnorm"}),
        ({"experiment": "padding", "masked": True}, set()),
        ({"experiment": "padding", "mode": "eval"}, {"batchnorm"}),
        ({"experiment": "padding", "mode": "eval", "masked": True}, set()),
        ({"experiment": "shift", "amount": 10.0}, {"rmsnorm"}),
        ({"experiment": "scale", "amount": 100.0}, set()),
        ({"experiment": "scale", "amount": 100.0, "mode": "eval"}, {"batchnorm"}),
    ],
)
def test_what_is_tried_changes_these_norms(tried: dict, changed: set[str]) -> None:
    """On the rows whose own numbers were left alone; and the sentence names the same norms."""
    it = work(EDITED.replace(gamma=(1.0,) * 5, eps=1e-5, **tried))
    left = [i for i, row in enumerate(it.after.rows) if row]
    if it.example.experiment == "neighbour":
        left.remove(it.example.neighbour - 1)
    assert {key for key in KEYS if it.moved(key)[left].any()} == changed
    named = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "batchnorm": "BatchNorm"}
    sentence = sentences.lead(it)
    assert {key for key in KEYS if named[key] in sentence} == changed
    assert ("No norm" in sentence) == (not changed)


def test_batchnorm_lets_an_earlier_row_see_a_later_one() -> None:
    it = work(EDITED.replace(experiment="neighbour", amount=5.0, row=2))
    assert it.example.neighbour == 3
    assert "rows 1 and 2 have seen the future" in sentences.seen(it, "batchnorm")
    assert "future" not in sentences.seen(it, "layernorm")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1, 2; 3, 4", ((1, 2), (3, 4))),
        ("[[1, 2.5],\n [3, -4]]", ((1, 2.5), (3, -4))),
        ("1,5\t2\n3\t−4", ((1.5, 2), (3, -4))),
        ("1 2 3\n\n4 5 6\n", ((1, 2, 3), (4, 5, 6))),
        ("1,2,3;4,5,6", ((1, 2, 3), (4, 5, 6))),
        ("100, 200\n1000.5, 2", ((100, 200), (1000.5, 2))),
        ("1.000 -0.500\n0.250 0.000", ((1, -0.5), (0.25, 0))),
        ("0.5,10,-0.25", ((0.5, 10, -0.25),)),
    ],
)
def test_a_pasted_table_is_read(text: str, wanted: tuple) -> None:
    assert matrix(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "1,000", "1,000 2,000", "12,345.5", "1.000,5", "1.000,5; 2.000,5", "1 000", "1 000 000", "2 050",
        "100,200,300", "1,5 2,5", "−1,000", "1\u00a0500", "1\u202f500, 2", "1,000\t2", "1'000",
    ],
)  # fmt: skip
def test_a_pasted_row_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(HandError, match=r"row 1.*no separator between thousands"):
        matrix(text)


@pytest.mark.parametrize(
    "text",
    [
        "1,000",
        "-12,345",
        "1,000.5",
        "1.000,5",
        "1,000,000",
        "1 000",
        "1\u00a0000",
        "1,000e3",
        "1’000",
    ],
)
def test_a_number_whose_thousands_are_separated_is_refused(text: str) -> None:
    with pytest.raises(HandError) as error:
        number(text, "Row 1, feature 2")
    said = str(error.value)
    assert said.startswith(f"Row 1, feature 2 is {text!r}")
    assert said.endswith(
        "write it with a decimal point and no separator between thousands, as in 1000.5"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,5", 1.5), ("0,125", 0.125), ("-0,001", -0.001), ("1,0000", 1), ("1000,5", 1000.5),
     ("1.000", 1), ("1000", 1000), ("−3", -3), ("1e-3", 1e-3)],
)  # fmt: skip
def test_a_number_is_read_as_it_was_typed(text: str, value: float) -> None:
    assert number(text, "Row 1, feature 2") == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty: write a number"), ("abc", "is 'abc': write a number"),
        ("inf", "is 'inf', allowed is a number"), ("nan", "is 'nan', allowed is"),
        ("1e7", "is '1e7', allowed is a number"), ("9" * 400, "…', allowed is a number"),
    ],
)  # fmt: skip
def test_what_is_no_number_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(HandError, match="Row 1, feature 2 is ") as error:
        number(text, "Row 1, feature 2")
    assert sentence in str(error.value)
