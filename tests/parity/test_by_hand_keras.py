"""Norms by hand against Keras on PyTorch: the lines that the page shows, and Keras' own defaults."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from hand_kit import CASES, EDITED, array, outputs, ran, same
from torch import nn

from normviz.lessons.by_hand import code, formulas, work
from normviz.lessons.by_hand.formulas import running

FLOAT32 = 1e-5
"""Keras computes its norms in float32, and a variance as mean(x²) - mean(x)²."""
MASKED = 1e-4
"""It also adds 1e-7 to the number of rows that a mask leaves, which a variance near 0 makes large."""


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Keras' layers, on PyTorch; Keras writes its settings where it is told, not into the home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "torch")
        patch.setenv("KERAS_HOME", str(tmp_path_factory.mktemp("keras")))
        import keras

        assert keras.config.backend() == "torch" and "tensorflow" not in sys.modules
        yield keras.layers


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_shown_keras_lines_give_the_numbers_of_the_page(layers: ModuleType, case: str) -> None:
    it = work(CASES[case])
    for key, y in outputs(code.keras(it)).items():
        same(y, it.now[key].y, FLOAT32 if it.after.counted.all() else MASKED)


@pytest.mark.slow
def test_without_the_lines_for_it_keras_has_the_biased_variance(layers: ModuleType) -> None:
    it = work(EDITED.replace(mode="eval", passes=4))
    text = code.keras(it)
    own = "\n".join(line for line in text.splitlines() if not line.startswith("variance.assign"))
    assert own != text.rstrip()
    same(array(ran(own)["batch_norm"].moving_variance.value), it.running.biased, FLOAT32)
    same(array(ran(text)["batch_norm"].moving_variance.value), it.running.variance, FLOAT32)


def test_keras_running_statistics_step_by_step(layers: ModuleType) -> None:
    x = np.array(EDITED.x)
    norm = layers.BatchNormalization(momentum=formulas.keras_momentum(0.3))
    norm.build(x.shape)
    for passes in range(4):
        stats = running(x, np.ones(3, bool), passes, 0.3)
        same(array(norm.moving_mean.value), stats.mean, FLOAT32)
        same(array(norm.moving_variance.value), stats.biased, FLOAT32)
        norm(x, training=True)


def test_the_defaults_in_the_table_are_those_of_the_frameworks(layers: ModuleType) -> None:
    def default(of: type, name: str) -> object:
        return inspect.signature(of.__init__).parameters[name].default

    kinds = {
        "layernorm": (nn.LayerNorm, layers.LayerNormalization),
        "rmsnorm": (nn.RMSNorm, layers.RMSNormalization),
        "batchnorm": (nn.BatchNorm1d, layers.BatchNormalization),
    }
    for key, (torch_kind, keras_kind) in kinds.items():
        assert default(torch_kind, "eps") == formulas.TORCH_EPS[key]
        assert default(keras_kind, "epsilon") == formulas.KERAS_EPS[key]
    assert default(nn.BatchNorm1d, "momentum") == formulas.TORCH_MOMENTUM
    assert default(layers.BatchNormalization, "momentum") == formulas.KERAS_MOMENTUM
