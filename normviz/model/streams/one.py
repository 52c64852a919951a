"""One residual stream, and the parent of every other kind of state."""

from __future__ import annotations

from torch import Tensor, nn

from ...config import RunConfig
from ..sites import Tap


class OneStream(nn.Module):
    """The state is the stream."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.width = config.width

    def connect(self, blocks: nn.ModuleList) -> None:
        """Tell the sublayers of a new model what they share."""

    def enter(self, x: Tensor) -> Tensor:
        return x

    def show(self, state: Tensor, block: int, tap: Tap) -> Tensor:
        """The state after a block (0: the embedding), seen by the tap."""
        return tap("stream", block, state)

    def leave(self, state: Tensor) -> Tensor:
        return state
