"""The state that passes from sublayer to sublayer: one residual stream, two, several, or all earlier values.

Every kind has the same interface: `enter` makes the state from the embedding, each sublayer maps a
state to a state, `show` passes the state after a block to a tap, and `leave` makes the input of the
final norm from the last state. All states are [B, T, k D]. The classes of this folder are found by their
names; records in `normviz.catalog.streams` name them.
"""

from __future__ import annotations

from torch import nn

from ...catalog import STREAMS
from ...catalog.scheme import Place, Scheme
from ...config import RunConfig
from ..branches import Dropout
from ..discovery import classes
from ..gains import Clock
from ..wire import SharedGains, Wire
from .one import OneStream

NAMES = classes(__name__, __path__)


def make_streams(config: RunConfig, scheme: Scheme) -> OneStream:
    """A fresh module of the scheme's kind of state. Raises KeyError for a kind without a class."""
    return NAMES[STREAMS[scheme.streams].state](config)


def make_wire(
    config: RunConfig,
    scheme: Scheme,
    place: Place,
    branch: nn.Module,
    shared: SharedGains,
    dropout: Dropout,
    clock: Clock,
) -> nn.Module:
    """A fresh sublayer, [B, T, k D] to [B, T, k D], for the scheme's kind of state."""
    if wire := STREAMS[scheme.streams].wire:
        return NAMES[wire](config, place, branch, dropout)
    return Wire(config, scheme, place, branch, shared, dropout, clock)
