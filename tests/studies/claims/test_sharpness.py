"""The sharpness lab against whole Hessians, and on functions whose edge is known."""

from __future__ import annotations

import pytest
import torch

from normviz import RunConfig
from normviz.studies.labs import sharpness
from normviz.studies.labs.model import batch, begun

TINY = RunConfig(depth=1, width=4, heads=1, ffn_ratio=1, seq_len=4, batch=2, steps=3, lr=0.01)


def hessian_of(config: RunConfig) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The Hessian [n, n] of the loss on the first batches, in one piece."""
    model, task = begun(config)
    parameters = list(model.parameters())
    loss = model.loss(*sharpness.batches(task, 0))
    gradient = sharpness.flat(torch.autograd.grad(loss, parameters, create_graph=True))
    unit = torch.eye(len(gradient), dtype=torch.float64)
    parts = torch.autograd.grad(gradient, parameters, unit, is_grads_batched=True)
    return torch.cat([part.reshape(len(unit), -1) for part in parts], 1), parameters


@pytest.mark.parametrize(("scheme", "optimizer"), [("pre", "sgd"), ("post", "adamw")])
def test_it_is_the_largest_eigenvalue_of_the_whole_hessian(scheme: str, optimizer: str) -> None:
    config = TINY.replace(scheme=scheme, optimizer=optimizer)
    matrix, _ = hessian_of(config)
    found = sharpness.measure(config)
    if optimizer == "sgd":
        largest = float(torch.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])
        assert found["at0"] == pytest.approx(largest * 0.01 / 2, rel=0.01)
        return
    model, task = begun(config)
    scale = sharpness.settled(model, task, list(model.parameters()), config)
    own = float(torch.linalg.eigvalsh(scale[:, None] * matrix * scale)[-1])
    assert found["at0"] == pytest.approx(own * 0.01 / 38, rel=0.02)


def test_the_lowest_eigenvalue_is_not_taken_for_the_largest() -> None:
    values = torch.tensor([-5.0, 1.0, 3.0], dtype=torch.float64)
    assert sharpness.sharpness(lambda v: values * v, 3) == pytest.approx(3.0, rel=1e-3)
    assert sharpness.sharpness(lambda v: -values.abs() * v, 3) == pytest.approx(-1.0, rel=1e-2)
    assert sharpness.sharpness(lambda v: 0 * v, 3) == 0.0


def test_its_training_is_that_of_a_run() -> None:
    from normviz.runs.recording import collect
    from normviz.training.loop import train

    for optimizer, lr in (("adamw", 0.01), ("sgd", 0.3)):
        config = TINY.replace(optimizer=optimizer, lr=lr, steps=8, warmup=3)
        model, task = begun(config)
        parameters = list(model.parameters())
        ((_, scale),) = sharpness.trained(model, task, parameters, config, (8,))
        assert (scale is None) == (optimizer == "sgd")
        losses = collect(train(config.replace(steps=9))).losses  # the rate of step 8 comes after it
        with torch.no_grad():
            assert float(model.loss(*batch(task, 8))) == pytest.approx(losses[8], rel=1e-4)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_what_it_measures_along_training_is_what_shorter_trainings_end_at(optimizer: str) -> None:
    config = TINY.replace(optimizer=optimizer, steps=20, warmup=20)
    whole = sharpness.measure(config)
    for percent, steps in ((10, 2), (30, 6)):
        part = sharpness.measure(config.replace(steps=steps))
        assert whole[f"at{percent}"] == pytest.approx(part["at100"], rel=1e-6)
    assert len({whole[f"at{percent}"] for percent in (0, 10, 30, 100)}) == 4


def test_it_refuses_what_has_another_edge() -> None:
    for change in ({"optimizer": "muon"}, {"clip": 1.0}, {"weight_decay": 0.1}):
        with pytest.raises(ValueError, match="the edges are those of SGD"):
            sharpness.measure(TINY.replace(**change))
