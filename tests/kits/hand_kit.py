"""Examples of the By hand page, and its shown code run as it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from normviz.lessons.by_hand import EXPERIMENTS, PRESETS, Example, Work

F64 = torch.float64
EDITED = Example(
    ((0.5, -2.25, 3.0, 7.5, 1.0), (4.0, 0.125, -6.0, 2.0, 2.0), (1.5, 9.0, 0.0, -3.5, 2.0)),
    gamma=(1.0, 0.5, -2.0, 3.0, 1.25),
    beta=(0.0, 1.0, -0.5, 0.25, 2.0),
    eps=1e-3,
    row=2,
    feature=3,
    momentum=0.3,
)
"""No number in it is a default."""

CASES: dict[str, Example] = {
    f"{name} {experiment.key} {mode}{' masked' if masked else ''}": example.trying(
        experiment.key
    ).replace(mode=mode, masked=masked, passes=7)
    for name, example in (("edited", EDITED), ("sample", PRESETS["sample"].example()))
    for experiment in EXPERIMENTS
    for mode in ("train", "eval")
    for masked in ((False, True) if experiment.key == "padding" else (False,))
}
CASES |= {f"{preset.label} none train": preset.example() for preset in PRESETS}
KEYS = {"layernorm": "y_layer", "rmsnorm": "y_rms", "batchnorm": "y_batch"}


def ran(text: str) -> dict[str, Any]:
    """The names that a module leaves behind."""
    names: dict[str, Any] = {}
    exec(compile(text, "<shown>", "exec"), names)
    return names


def array(tensor: Any) -> NDArray[np.float64]:
    return tensor.detach().cpu().numpy()


def outputs(text: str) -> dict[str, NDArray[np.float64]]:
    """What the shown module computes, by norm."""
    names = ran(text)
    return {key: array(names[name]) for key, name in KEYS.items()}


def rows_of(it: Work, key: str) -> NDArray[np.bool_]:
    """The rows that PyTorch's lines give: BatchNorm gets no masked padding."""
    return it.after.counted if key == "batchnorm" else np.ones(len(it.after.x), bool)


def same(found: NDArray[np.float64], wanted: NDArray[np.float64], share: float = 1e-9) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=share, atol=share * 10)


@st.composite
def examples(draw: Callable[..., Any]) -> Example:
    """Any example that is allowed."""
    rows, features = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    numbers = st.floats(-1e6, 1e6, allow_nan=False)
    line = st.tuples(*[numbers] * features)
    experiment = draw(st.sampled_from(EXPERIMENTS.keys()))
    takes = EXPERIMENTS[experiment].takes
    amount = draw(st.floats(takes.low, takes.high, exclude_min=takes.above)) if takes else 0.0
    return Example(
        x=draw(st.tuples(*[line] * rows)), gamma=draw(line), beta=draw(line),
        eps=draw(st.floats(0, 1, exclude_min=True)), row=draw(st.integers(1, rows)),
        feature=draw(st.integers(1, features)), experiment=experiment, amount=amount,
        padding=draw(st.integers(1, 4)), masked=draw(st.booleans()),
        mode=draw(st.sampled_from(("train", "eval"))), passes=draw(st.integers(0, 1000)),
        momentum=draw(st.floats(0, 1)),
    )  # fmt: skip


def modules(example: Example) -> dict[str, nn.Module]:
    """PyTorch's norms with an example's gamma, beta, eps and momentum."""
    d, eps = example.features, example.eps
    found: dict[str, nn.Module] = {
        "layernorm": nn.LayerNorm(d, eps, dtype=F64),
        "rmsnorm": nn.RMSNorm(d, eps, dtype=F64),
        "batchnorm": nn.BatchNorm1d(d, eps, example.momentum, dtype=F64),
    }
    for norm in found.values():
        start = {"weight": torch.tensor(example.gamma, dtype=F64)}
        if not isinstance(norm, nn.RMSNorm):
            start["bias"] = torch.tensor(example.beta, dtype=F64)
        norm.load_state_dict(start, strict=False)
    return found
