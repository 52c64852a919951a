"""The probes of runs that train together, a run in each row of every tensor, by `torch.vmap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.flat import Flat
from .instruments import NormScales, StepTensors, probe_tensor, site_recorder
from .recorder import Recorder, StepBuffers


class AddingRecorder(Recorder):
    """A recorder inside of `torch.vmap`, where a tensor keeps no gradient: it adds zeros at the stream, whose
    gradients are those of the stream."""

    def __init__(self, config: RunConfig, zeros: Sequence[Tensor]) -> None:
        plain = site_recorder(config)
        super().__init__(plain.sites, (), plain.reductions)
        self.zeros = iter(zeros)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        return super().__call__(site, index, x + next(self.zeros) if site == "stream" else x)


class GivenGradients(StepBuffers):
    """Allocates what it stacks; the gradients at the stream are given."""

    def __init__(self, gradients: Sequence[Tensor]) -> None:
        super().__init__()
        self.given = list(gradients)

    def gradients(self, recorder: Recorder, site: str) -> Tensor:
        """Those that are given, [n, ...]."""
        return torch.stack(self.given)

    def _stack(self, name: str, tensors: list[Tensor]) -> Tensor:
        return torch.stack(tensors)


@torch.no_grad()
def probe_rows(
    config: RunConfig,
    flat: Flat,
    scales: NormScales,
    seen: Mapping[str, Any],
    grads: Tensor,
    at_stream: Sequence[Tensor],
) -> Tensor:
    """[n, 1 + probes x rows] the RMS of the logits and `probe_tensor` of n runs, from what their recorder has
    `seen`, the gradients [n, P] of their parameters and those at the stream. `flat` is that of one run."""

    def one(seen: dict[str, Any], grads: Tensor, at_stream: list[Tensor]) -> Tensor:
        own, tap = copy(flat), Recorder(())
        own.block_grads = grads[: flat.blocks.numel()].view(flat.blocks.shape)
        tap.seen.update(seen)
        probes = probe_tensor(StepTensors(config, own, tap, scales, GivenGradients(at_stream)))
        return torch.cat((tap.reduced("logits")[0].view(1).double(), probes.flatten()))

    return torch.vmap(one)(dict(seen), grads, list(at_stream))
