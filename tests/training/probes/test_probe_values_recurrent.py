"""The quantities of a recurrent net against plain autograd: a row is a time step."""

from __future__ import annotations

import pytest
import torch

from normviz import RunConfig
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.flat import Flat
from normviz.model.init import initialise
from normviz.runs.run import probes_of
from normviz.training.eager import backward
from normviz.training.probes import NormScales, StepTensors, probe_tensor, site_recorder


@pytest.mark.parametrize("family", ["rnn", "lstm"])
@pytest.mark.parametrize("task", ["digits", "markov"])
def test_each_row_is_a_time_step(family: str, task: str) -> None:
    config = RunConfig(family=family, task=task, seq_len=4, depth=2, width=8, batch=3)
    made = make_task(config)
    model = build(config, made.vocabulary)
    initialise(model, config)
    flat, batch = Flat(model, torch.device("cpu")), made.tensors(0, torch.device("cpu"))
    watch = site_recorder(config)
    backward(model, flat, batch, watch)
    rows = probe_tensor(StepTensors(config, flat, watch, NormScales(model, flat)))
    found = dict(zip(probes_of(config), rows, strict=True))
    assert all(row.shape == (5,) for row in found.values())

    states: list[torch.Tensor] = []  # layer by layer, from the initial one on

    def changed(at: int, by: torch.Tensor | None = None, keep: bool = False):
        count = iter(range(100))

        def tap(site: str, index: int, x: torch.Tensor) -> torch.Tensor:
            del index
            if site != "stream":
                return x
            i = next(count)
            if keep:
                states.append(x.detach())
            return x + by if by is not None and i == at else x

        return tap

    model.loss(*batch, changed(-1, keep=True))
    for t in range(5):
        both = torch.stack([states[t], states[5 + t]])
        assert found["stream_rms"][t] == pytest.approx(both.square().mean().sqrt().item(), abs=1e-6)
        assert found["stream_max"][t] == pytest.approx(both.abs().max().item(), abs=1e-6)
        square = 0.0
        for layer in range(2):
            by = torch.zeros_like(states[0], requires_grad=True)
            (grad,) = torch.autograd.grad(model.loss(*batch, changed(5 * layer + t, by)), by)
            square += grad.square().sum().item()
        assert found["grad_hidden"][t] == pytest.approx(square**0.5, rel=1e-4)
    if (
        task == "digits"
    ):  # the steps' terms sum to the gradient, so their lengths are at least as long
        whole = torch.cat([
            p.grad.flatten()
            for layer in model.blocks
            for p in (layer.hidden.weight, layer.input.weight)
        ]).norm()  # fmt: skip
        assert found["grad_block"][1:].sum() >= whole.item() > 0
