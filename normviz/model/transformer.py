"""A decoder-only transformer whose blocks are wires of the chosen scheme, and the base of other families."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..catalog import FAMILIES, SCHEMES
from ..catalog.scheme import ONE, Branch, Place
from ..config import RunConfig
from .batches import IGNORED
from .branches import Attention, Dropout, FeedForward, Linear, angles
from .gains import Clock, Multiplier
from .marks import drawn
from .norms import make_norm
from .sites import Tap, untapped
from .streams import make_streams, make_wire
from .wire import SharedGains, SublayerContext


class Block(nn.Module):
    """Two sublayers, each in its wire: attention, or another `first` branch of the family, and an FFN.
    `block` counts from 1."""

    def __init__(
        self, config: RunConfig, block: int, clock: Clock, first: nn.Module | None = None
    ) -> None:
        super().__init__()
        c, scheme = config, SCHEMES[config.scheme]
        self.first_name = FAMILIES[c.family].first or ""
        at, ff = Place(block, c.depth, "attention"), Place(block, c.depth, "ffn")
        self.block = block
        self.shared = SharedGains(c.divided(scheme.slots(at)), c.width, clock)
        branch = first or Attention(c, scheme.slots(at), block, clock)
        ffn = FeedForward(c, scheme.slots(ff), clock)
        dropout, second = (
            Dropout(c.dropout, c.init_seed, site, clock) for site in (2 * block - 1, 2 * block)
        )
        wire = make_wire(c, scheme, at, branch, self.shared, dropout, clock)
        setattr(self, self.first_name, wire)
        self.ffn = make_wire(c, scheme, ff, ffn, self.shared, second, clock)

    def forward(self, state: Tensor, tap: Tap, embedding: Tensor) -> Tensor:
        """A state [B, T, k D] to the next; `embedding` is the first state, the output of `enter`."""
        first, around = 2 * (self.block - 1), SublayerContext(embedding, state)
        middle = getattr(self, self.first_name)(state, first, tap, around)
        return self.ffn(middle, first + 1, tap, around)

    def sublayers(self) -> tuple[tuple[Branch, nn.Module], ...]:
        """Both sublayers with the branch of their `Place`: the first one's is "attention" in every family."""
        return ("attention", getattr(self, self.first_name)), ("ffn", self.ffn)


def share_first_values(blocks: nn.ModuleList) -> None:
    """Give each attention a reference to the first block's, whose values it may mix with its own."""
    every = [module for module in blocks.modules() if isinstance(module, Attention)]
    for first, attention in zip(every[:1] * len(every), every[1:], strict=False):
        attention.first = (first,)  # in a tuple: not a submodule of this one


def sinusoids(seq_len: int, width: int) -> Tensor:
    """[T, D] of each position: sines in even channels, cosines in odd ones; arXiv:1706.03762, section 3.5."""
    angle = angles(seq_len, width)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, :width].float()


ROUNDED = {"bf16": torch.bfloat16, "fp16": torch.float16}


def rounded(x: Tensor, to: torch.dtype) -> Tensor:
    """x [...] with its numbers rounded to another format; the gradient passes as if they were not."""
    return x + (x.detach().to(to).to(x.dtype) - x.detach())


class Transformer(nn.Module):
    """Embedding, L blocks, output head. Tokens [B, T] to logits [B, T, V].

    `positions` is None without learned positions. Other families override what makes the inputs, the stack
    of blocks, and what the head reads.
    """

    waves: Tensor

    def __init__(self, config: RunConfig, vocabulary: int) -> None:
        super().__init__()
        c = config.placed()
        self.clock, self.loops = Clock(), c.loops
        self.make_inputs(c, vocabulary)
        self.dropout = Dropout(c.dropout, c.init_seed, 0, self.clock)
        self.make_stack(c)
        self.make_head(c, vocabulary)

    def make_inputs(self, c: RunConfig, vocabulary: int) -> None:
        """Make the modules that `embedded` uses."""
        scheme = SCHEMES[c.scheme]
        self.tokens = drawn(nn.Embedding(vocabulary, c.width), "tokens")
        self.make_positions(c, c.seq_len)
        self.embed_norm = make_norm(c.norm if scheme.embed_norm else "none", c.width, c.steps)

    def make_positions(self, c: RunConfig, positions: int) -> None:
        """Make the learned or sinusoidal vectors of so many positions, where the config has some."""
        learned = c.positions == "learned"
        self.positions = drawn(nn.Embedding(positions, c.width), "positions") if learned else None
        self.has_waves = c.positions == "sinusoidal"
        if self.has_waves:
            self.register_buffer("waves", sinusoids(positions, c.width), persistent=False)

    def make_stack(self, c: RunConfig) -> None:
        """Make the blocks and their streams."""
        scheme = SCHEMES[c.scheme]
        self.blocks = nn.ModuleList(self.make_block(c, b) for b in range(1, c.depth + 1))
        share_first_values(self.blocks)
        self.streams = make_streams(c, scheme)
        self.streams.connect(self.blocks)
        self.final_norm = make_norm(c.last_norm if scheme.final_norm else "none", c.width)

    def learned(self) -> int:
        """How many numbers it learns: those that several blocks share count once."""
        own = len(self.blocks) // self.loops
        again = sum(p.numel() for block in list(self.blocks)[own:] for p in block.parameters())
        return sum(p.numel() for p in self.parameters()) - again

    def make_block(self, c: RunConfig, block: int) -> Block:
        """A fresh block, counted from 1."""
        return Block(c, block, self.clock)

    def make_head(self, c: RunConfig, vocabulary: int) -> None:
        """Make what maps the last state to logits."""
        gain = SCHEMES[c.scheme].logit_gain if c.scheme in SCHEMES else ONE
        self.head = drawn(Linear(c.width, vocabulary, bias=False), "head")
        if c.tied == "on":
            self.head.weight = self.tokens.weight
        self.logit_gain = Multiplier(gain, c.width, self.clock, vocabulary)
        self.logit_scale = c.logit_scale
        self.softcap, self.zloss = c.softcap, c.zloss
        self.rounding = ROUNDED.get(c.rounding)

    def forward(self, tokens: Tensor, tap: Tap = untapped) -> Tensor:
        """Tokens [B, T] int64 to logits [B, T, V]; `tap` gets the tensor at each site."""
        x = self.dropout(self.embed_norm(self.embedded(tokens)))
        final = tap("final", 0, self.read_out(self.stacked(x, tap)))
        logits = self.logit_gain(self.head(final))
        if self.logit_scale != 1.0:
            logits = logits * self.logit_scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return tap("logits", 0, logits)

    def stacked(self, x: Tensor, tap: Tap) -> Tensor:
        """The last state [B, T, D] after all blocks and the final norm, from the embedding x [B, T, D]."""
        state = embedding = self.streams.show(self.rounded_state(self.streams.enter(x)), 0, tap)
        for b, block in enumerate(self.blocks, start=1):
            state = self.streams.show(self.rounded_state(block(state, tap, embedding)), b, tap)
        return self.final_norm(self.streams.leave(state))

    def read_out(self, final: Tensor) -> Tensor:
        """What the head reads of the last state [B, T, D]."""
        return final

    def embedded(self, tokens: Tensor) -> Tensor:
        """Tokens [B, T] with their positions, before the embedding norm, [B, T, D]."""
        x, T = self.tokens(tokens), tokens.shape[1]
        if self.positions is not None:
            return x + self.positions.weight[:T]
        return x + self.waves[:T] if self.has_waves else x

    def rounded_state(self, state: Tensor) -> Tensor:
        """A state in the number format that the stream has between blocks."""
        return state if self.rounding is None else rounded(state, self.rounding)

    def loss(self, tokens: Tensor, targets: Tensor, tap: Tap = untapped) -> Tensor:
        """Mean cross-entropy in nats of targets [B, T] over the counted positions, a scalar.

        With a z-loss its gradient is that of both, and its value that of the cross-entropy alone.
        """
        logits = self(tokens, tap)
        loss = cross_entropy(logits, targets)
        if self.zloss == 0.0:
            return loss
        z = self.zloss * torch.logsumexp(logits[targets != IGNORED], -1).square().mean()
        return loss + (z - z.detach())


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean in nats of targets [B, T] over the counted positions of logits [B, T, V], a scalar."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
