"""Recurrent nets, RNN and LSTM, with norms inside the cell or between layers; arXiv:1607.06450."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..catalog import CELLS, FAMILIES
from ..config import RunConfig
from .branches import Dropout, Linear
from .data import features_of
from .gains import Clock
from .marks import drawn
from .norms import NOTHING, make_norm
from .sites import Tap
from .transformer import Transformer


class Layer(nn.Module):
    """One recurrent layer, inputs x [B, T, D] to outputs [B, T, D]; `layer` counts from 1.

    Without a norm it is torch.nn.RNN or torch.nn.LSTM. An RNN norms W_h h + W_x x (equation 4); an
    LSTM norms the two products apart, and its cell (equations 20 to 22). The order of an LSTM's gates is that
    of torch: input, forget, cell, output.
    """

    def __init__(self, config: RunConfig, layer: int, clock: Clock) -> None:
        super().__init__()
        place, width, gates = CELLS[config.scheme], config.width, FAMILIES[config.family].gates
        self.is_lstm = config.family == "lstm"
        self.hidden = drawn(Linear(width, gates * width, bias=False), "cell")
        self.input = drawn(Linear(width, gates * width, bias=False), "cell")
        self.bias = nn.Parameter(torch.zeros(gates * width))
        drawn(self, "cell")
        inside = config.norm if place.in_cell else "none"
        self.norm = make_norm("none" if self.is_lstm else inside, gates * width)
        lstm = inside if self.is_lstm else "none"
        self.norm_hidden, self.norm_input = (make_norm(lstm, gates * width) for _ in range(2))
        self.norm_cell = make_norm(lstm, width)
        self.norm_out = make_norm(config.norm if place.between else "none", width)
        self.dropout = Dropout(config.dropout, config.init_seed, layer, clock)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        x = tap("branch_in", 0, x)
        products = self.norm_input(tap("product_x", 0, self.input(x)))
        h = tap("stream", 0, x.new_zeros(len(x), x.shape[-1]).requires_grad_(x.requires_grad))
        cell, states = torch.zeros_like(h), list[Tensor]()
        for t, from_input in enumerate(products.unbind(1), start=1):
            z = self.norm_hidden(tap("product_h", t, self.hidden(h))) + from_input
            h, cell = self.next_state(self.norm(z) + self.bias, cell)
            h = tap("stream", t, h)
            states.append(h)
        return self.dropout(self.norm_out(torch.stack(states, 1)))

    def next_state(self, z: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state and cell [B, D] of a time step, from the summed inputs z [B, D] or [B, 4 D]."""
        if not self.is_lstm:
            return torch.tanh(z), cell
        i, f, g, o = z.chunk(4, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(self.norm_cell(cell)), cell


class Recurrent(Transformer):
    """Tokens [B, T] to logits [B, T, V]; or images [B, 64], read as T equal parts, to logits [B, 1, V] of the
    last time step. The blocks are its layers."""

    def make_inputs(self, c: RunConfig, vocabulary: int) -> None:
        """A token embedding, or a linear map of the numbers that a time step reads."""
        self.seq_len, self.is_tokens = c.seq_len, not features_of(c)
        self.embed_norm = NOTHING
        if self.is_tokens:
            self.tokens = drawn(nn.Embedding(vocabulary, c.width), "tokens")
        else:
            self.inputs = drawn(Linear(features_of(c) // c.seq_len, c.width), "inputs")

    def make_stack(self, c: RunConfig) -> None:
        """The recurrent layers."""
        self.blocks = nn.ModuleList(Layer(c, i, self.clock) for i in range(1, c.depth + 1))

    def embedded(self, tokens: Tensor) -> Tensor:
        """What each time step reads, [B, T, D]."""
        if self.is_tokens:
            return F.embedding(tokens, self.tokens.weight)
        return self.inputs(tokens.view(len(tokens), self.seq_len, -1))

    def stacked(self, x: Tensor, tap: Tap) -> Tensor:
        """The outputs [B, T, D] of the last layer."""
        for layer in self.blocks:
            x = layer(x, tap)
        return x

    def read_out(self, final: Tensor) -> Tensor:
        """All outputs of a sequence of tokens; the last one [B, 1, D] of an image."""
        return final if self.is_tokens else final[:, -1:]
