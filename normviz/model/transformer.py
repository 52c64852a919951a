"""A decoder-only transformer whose blocks are wires of the chosen scheme."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..catalog import SCHEMES
from ..catalog.scheme import Place
from ..config import RunConfig
from .branches import Attention, Dropout, FeedForward, Linear
from .data import IGNORED
from .gains import Clock, Multiplier
from .marks import drawn
from .norms import make_norm
from .sites import Tap, untapped
from .streams import make_streams, make_wire
from .wire import SharedGains, SublayerContext


class Block(nn.Module):
    """Attention and FFN, each in its wire. `block` counts from 1."""

    def __init__(self, config: RunConfig, block: int, clock: Clock) -> None:
        super().__init__()
        c, scheme = config, SCHEMES[config.scheme]
        at, ff = Place(block, c.depth, "attention"), Place(block, c.depth, "ffn")
        self.block = block
        self.shared = SharedGains(scheme.slots(at), c.width, clock)
        attention = Attention(c, scheme.slots(at), block, clock)
        ffn = FeedForward(c, scheme.slots(ff), clock)
        first, second = (
            Dropout(c.dropout, c.init_seed, site, clock) for site in (2 * block - 1, 2 * block)
        )
        self.attention = make_wire(c, scheme, at, attention, self.shared, first, clock)
        self.ffn = make_wire(c, scheme, ff, ffn, self.shared, second, clock)

    def forward(self, state: Tensor, tap: Tap, embedding: Tensor) -> Tensor:
        """A state [B, T, k D] to the next; `embedding` is the first state, the output of `enter`."""
        first, around = 2 * (self.block - 1), SublayerContext(embedding, state)
        return self.ffn(self.attention(state, first, tap, around), first + 1, tap, around)


def share_first_values(blocks: nn.ModuleList) -> None:
    """Give each attention a reference to the first block's, whose values it may mix with its own."""
    first, *others = (module for module in blocks.modules() if isinstance(module, Attention))
    for attention in others:
        attention.first = (first,)  # in a tuple: not a submodule of this one


class Transformer(nn.Module):
    """Learned positions, L blocks, untied output head. Tokens [B, T] to logits [B, T, V]."""

    def __init__(self, config: RunConfig, vocabulary: int) -> None:
        super().__init__()
        c, scheme = config.placed(), SCHEMES[config.scheme]
        self.tokens = drawn(nn.Embedding(vocabulary, c.width), "tokens")
        self.positions = drawn(nn.Embedding(c.seq_len, c.width), "positions")
        self.embed_norm = make_norm(c.norm if scheme.embed_norm else "none", c.width)
        self.clock = Clock()
        self.dropout = Dropout(c.dropout, c.init_seed, 0, self.clock)
        self.blocks = nn.ModuleList(Block(c, b, self.clock) for b in range(1, c.depth + 1))
        share_first_values(self.blocks)
        self.streams = make_streams(c, scheme)
        self.streams.connect(self.blocks)
        self.final_norm = make_norm(c.norm if scheme.final_norm else "none", c.width)
        self.head = drawn(Linear(c.width, vocabulary, bias=False), "head")
        self.logit_gain = Multiplier(scheme.logit_gain, c.width, self.clock, vocabulary)

    def forward(self, tokens: Tensor, tap: Tap = untapped) -> Tensor:
        """Tokens [B, T] int64 to logits [B, T, V]; `tap` gets the tensor at each site."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        x = self.dropout(self.embed_norm(x))
        state = embedding = self.streams.show(self.streams.enter(x), 0, tap)
        for b, block in enumerate(self.blocks, start=1):
            state = self.streams.show(block(state, tap, embedding), b, tap)
        final = tap("final", 0, self.final_norm(self.streams.leave(state)))
        return self.logit_gain(self.head(final))

    def loss(self, tokens: Tensor, targets: Tensor, tap: Tap = untapped) -> Tensor:
        """Mean cross-entropy in nats of targets [B, T] over the counted positions, a scalar."""
        logits = self(tokens, tap)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def build(config: RunConfig, vocabulary: int) -> Transformer:
    """An uninitialised model: `normviz.model.init` fills every parameter."""
    if torch.get_default_device().type == "cpu":  # naming a device costs a tenth of the time
        return Transformer(config, vocabulary)
    with torch.device("cpu"):
        return Transformer(config, vocabulary)
