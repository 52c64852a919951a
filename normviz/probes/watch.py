"""The tap that remembers what passes the sites that somebody asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import torch
from torch import Tensor


class Watch:
    """Keeps the tensors of `sites` during one forward and backward pass.

    Of the sites in `gradients` it hands on a view and keeps that view's gradient. A view, because in
    Post-LN the same tensor is what enters the skip path and the branch: a hook on the tensor itself
    would see both gradients added up there, and only there.
    """

    def __init__(self, sites: Collection[str], gradients: Collection[str] = ()) -> None:
        self.sites, self.gradients = frozenset(sites), frozenset(gradients)
        self.seen: dict[str, list[Tensor]] = defaultdict(list)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index  # sites are passed in order
        if site in self.gradients and x.requires_grad:
            x = x.view_as(x)
            x.retain_grad()
        if site in self.sites:
            self.seen[site].append(x)
        return x

    def stack(self, site: str) -> Tensor:
        """All tensors of a site, [n, ...] flattened to [n, rows, last axis]."""
        tensors = [x.detach() for x in self.seen[site]]
        return torch.stack(tensors).flatten(1, -2)

    def gradient_norms(self, site: str) -> Tensor:
        """[n] L2 norms of the loss gradients at a site."""
        grads = [x.grad for x in self.seen[site] if x.grad is not None]
        return torch.linalg.vector_norm(torch.stack(grads).flatten(1), dim=1)
