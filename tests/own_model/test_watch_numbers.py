"""What a watch records of the exported code of our own schemes equals what `train` records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from crossing_kit import case

from normviz import RunConfig, train, watch
from normviz.export import ExportLane, script
from normviz.result import Result, collect

SCHEMES = ("pre", "post", "peri", "deepnorm", "sandwich", "resp")
SMALL = RunConfig(depth=3, width=16, heads=2, seq_len=12, batch=4, steps=6, optimizer="sgd", lr=0.1)
"""SGD: AdamW turns the gradient of the key bias, which is rounding, into steps of full size."""
EXACT = 1e-6


def watched(config: RunConfig) -> Result:
    """The exported script of a config, with two lines more in its loop."""
    head, _, loop = script(ExportLane("A", config)).partition("\noptimizer = ")
    first, rest = loop.split("\n", 1)
    source = f"{head}\noptimizer = {first}\nit = watch(model, optimizer, to=None, every=1)\n{rest}"
    source = source.replace("loss.backward()", "loss.backward()\n    it.step(loss)")
    names: dict[str, Any] = {"watch": watch, "__name__": "watched"}
    exec(source, names)
    names["it"].close()
    return names["it"].result


@pytest.mark.slow
def test_six_schemes_equal_the_table_of_train(capsys: pytest.CaptureFixture[str]) -> None:
    for scheme in SCHEMES:
        with case(scheme):
            config = SMALL.replace(scheme=scheme)
            ours, seen = collect(train(config, engine="eager", record=range(6))), watched(config)
            np.testing.assert_array_equal(seen.losses, ours.losses)
            np.testing.assert_allclose(seen.steps.grad_norm, ours.steps.grad_norm, rtol=EXACT)
            for probe in ours.probes:
                with case(f"{scheme} {probe}"):
                    a, b = seen.values(probe), ours.values(probe)
                    np.testing.assert_allclose(a, b, rtol=EXACT, atol=1e-12)
