"""One residual stream, and the base class of every other kind of state."""

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
        """Give the sublayers of a new model access to the values that they share; here to none."""

    def enter(self, x: Tensor) -> Tensor:
        """The first state [B, T, k D] from the embedding [B, T, D]; one stream has k = 1."""
        return x

    def show(self, state: Tensor, block: int, tap: Tap) -> Tensor:
        """The state after a block (0: the embedding) as the tap returns it, [B, T, k D] to [B, T, k D]."""
        return tap("stream", block, state)

    def leave(self, state: Tensor) -> Tensor:
        """The input [B, T, D] of the final norm from the last state [B, T, k D]."""
        return state
