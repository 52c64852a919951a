"""The tap that records the tensors at chosen sites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor

Reduction = Callable[[Tensor], tuple[Tensor, ...]]


class Recorder:
    """Keeps the tensors of `sites` during one forward and backward pass.

    At the sites in `gradients` it returns a view and keeps the view's gradient. The model goes on with
    the view: in Post-LN one tensor enters both the skip path and the branch, and a hook on the tensor
    itself would get the sum of both gradients, in Post-LN alone.

    At the sites in `reductions` it applies the reduction at once and keeps its result instead of the
    tensor. The tensor is then still in the cache, and its memory is freed as early as without a probe.
    """

    def __init__(
        self,
        sites: Collection[str],
        gradients: Collection[str] = (),
        reductions: Mapping[str, Reduction] | None = None,
    ) -> None:
        self.sites, self.gradients = frozenset(sites), frozenset(gradients)
        self.reductions = reductions or {}
        self.seen: dict[str, list[Any]] = defaultdict(list)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index  # sites are passed in order
        if site in self.gradients and x.requires_grad:
            x = x.view_as(x)
            x.retain_grad()
        if site in self.reductions:
            with torch.no_grad():
                self.seen[site].append(self.reductions[site](x))
        elif site in self.sites:
            self.seen[site].append(x)
        return x

    def reduced(self, site: str) -> tuple[Tensor, ...]:
        """The results of a site's reduction, each part stacked over the layers [L, ...]."""
        return tuple(torch.stack(parts) for parts in zip(*self.seen[site], strict=True))


class StepBuffers:
    """Buffers that are kept from step to step.

    Megabytes allocated again in every step would be returned to the system and paged in again, which
    cost more than the arithmetic of the probes (measured on the preset `hero`).
    """

    def __init__(self) -> None:
        self.buffers: dict[str, Tensor] = {}

    def buffer(self, name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        """An uninitialised tensor of this shape, the same one every step."""
        if name not in self.buffers or self.buffers[name].shape != shape:
            self.buffers[name] = like.new_empty(shape)
        return self.buffers[name]

    def stack(self, recorder: Recorder, site: str) -> Tensor:
        """A copy of all tensors of a site, [n, ...]; the caller may write to it."""
        return self._stack(site, [x.detach() for x in recorder.seen[site]])

    def gradients(self, recorder: Recorder, site: str) -> Tensor:
        """A copy of the loss gradients at a site, [n, ...]."""
        return self._stack(f"gradient of {site}", [x.grad for x in recorder.seen[site]])

    def _stack(self, name: str, tensors: list[Tensor]) -> Tensor:
        out = self.buffer(name, tensors[0], (len(tensors), *tensors[0].shape))
        return torch.stack(tensors, out=out)

    def copy(self, name: str, x: Tensor) -> Tensor:
        """A copy of `x`, in the buffer `name`."""
        return self.buffer(name, x, tuple(x.shape)).copy_(x)
