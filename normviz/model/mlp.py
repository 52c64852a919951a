"""A residual stack without attention: two FFNs in each block, each in a wire of the chosen scheme."""

from __future__ import annotations

from torch import Tensor, nn

from ..catalog import SCHEMES
from ..catalog.scheme import Place
from ..config import RunConfig
from .branches import FeedForward, Linear
from .data import features_of
from .marks import drawn
from .norms import make_norm
from .transformer import Block, Transformer


class MLP(Transformer):
    """Examples [B, F] float32 to logits [1, B, V]: each example is a position of one sequence, so that norms
    and probes mean the same as in other families."""

    def make_inputs(self, c: RunConfig, vocabulary: int) -> None:
        """A linear map of the features to the stream."""
        del vocabulary
        self.inputs = drawn(Linear(features_of(c), c.width), "inputs")
        embed_norm = SCHEMES[c.scheme].embed_norm
        self.embed_norm = make_norm(c.norm if embed_norm else "none", c.width)

    def embedded(self, tokens: Tensor) -> Tensor:
        """Features [B, F] as a stream [1, B, D]."""
        return self.inputs(tokens)[None]

    def first_branch(self, c: RunConfig, place: Place) -> nn.Module:
        """The first branch of a block: an FFN like the second."""
        return FeedForward(c, SCHEMES[c.scheme].slots(place), self.clock)

    def make_block(self, c: RunConfig, block: int) -> Block:
        """A block with the family's first branch."""
        branch = self.first_branch(c, Place(block, c.depth, "attention"))
        return Block(c, block, self.clock, branch)
