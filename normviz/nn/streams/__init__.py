"""What travels from sublayer to sublayer: one residual stream, two, several, or all earlier values.

Every kind has the same interface: `enter` makes the state of the embedding, each sublayer maps a
state to a state, `show` lets a tap see the state after a block, and `leave` makes of the last state
what the final norm reads. All states are [B, T, k D].
"""

from __future__ import annotations

from torch import nn

from ...catalog.scheme import Place, Scheme
from ...config import RunConfig
from ..dropout import Dropout
from ..gains import Clock
from ..wire import Shared, Wire
from .depth import AttentionOverDepth, AverageOverDepth, DepthWire
from .dual import Dual, DualWire
from .hyper import Hyper, HyperWire
from .manifold import Manifold, ManifoldWire
from .one import OneStream
from .siamese import Siamese, SiameseWire

STREAMS: dict[str, type[OneStream]] = {
    "one": OneStream,
    "dual": Dual,
    "siamese": Siamese,
    "hyper": Hyper,
    "manifold": Manifold,
    "dense": AverageOverDepth,
    "attention": AttentionOverDepth,
}
WIRES = {
    "dual": DualWire,
    "siamese": SiameseWire,
    "hyper": HyperWire,
    "manifold": ManifoldWire,
    "attention": DepthWire,
}


def make_streams(config: RunConfig, scheme: Scheme) -> OneStream:
    """The state of a scheme's model."""
    return STREAMS[scheme.streams](config)


def make_wire(
    config: RunConfig,
    scheme: Scheme,
    place: Place,
    branch: nn.Module,
    shared: Shared,
    dropout: Dropout,
    clock: Clock,
) -> nn.Module:
    """A sublayer on such states."""
    if scheme.streams in WIRES:
        return WIRES[scheme.streams](config, place, branch, dropout)
    return Wire(config, scheme, place, branch, shared, dropout, clock)
