"""A vision transformer: patches of an image and a class token as positions; arXiv:2010.11929."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..catalog import SCHEMES
from ..config import RunConfig
from .branches import Linear
from .images import PIXELS, SIDE
from .marks import drawn
from .norms import make_norm
from .transformer import Transformer


def patches(images: Tensor, count: int) -> Tensor:
    """Images [B, 64] as [B, count, 64 / count]: square patches from the top left, row by row, and so the
    pixels of each."""
    side = round(count**0.5)
    pixels = SIDE // side
    grid = images.view(-1, side, pixels, side, pixels)
    return grid.transpose(2, 3).reshape(-1, count, pixels * pixels)


class ViT(Transformer):
    """Images [B, 64] float32 to logits [B, 1, V] of the class token, which is position 0."""

    def make_inputs(self, c: RunConfig, vocabulary: int) -> None:
        """A linear map of each patch, with norms around it where `patch_norm` asks, and a class token."""
        del vocabulary
        self.count, size = c.seq_len, PIXELS // c.seq_len
        before = c.norm if c.patch_norm == "dual" else "none"
        after = c.norm if c.patch_norm != "off" else "none"
        self.patch_norm_in = make_norm(before, size)
        self.inputs = drawn(Linear(size, c.width), "inputs")
        self.patch_norm_out = make_norm(after, c.width)
        self.class_token = drawn(nn.Embedding(1, c.width), "tokens")
        self.make_positions(c, c.seq_len + 1)
        self.embed_norm = make_norm(c.norm if SCHEMES[c.scheme].embed_norm else "none", c.width)

    def embedded(self, tokens: Tensor) -> Tensor:
        """Images [B, 64] as a stream [B, 1 + count, D]."""
        cut = self.patch_norm_in(patches(tokens, self.count))
        x = self.patch_norm_out(self.inputs(cut))
        x = torch.cat((self.class_token.weight.expand(len(x), 1, -1), x), 1)
        if self.positions is not None:
            return x + self.positions.weight
        return x + self.waves if self.has_waves else x

    def read_out(self, final: Tensor) -> Tensor:
        """The class token's output [B, 1, D]."""
        return final[:, :1]
