"""Speed of training: `train` with its default probes beside plain loops of other implementations."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu, scaled_dot_product_attention

from ..catalog import SCHEMES
from ..config import RunConfig, parameters_per_block
from ..training.events import Started
from ..training.loop import train

VOCABULARY = 32
SIZES = {
    "hero, 12 blocks": (RunConfig(depth=12, steps=120), ("post", "peri")),
    "hero, 16 blocks": (RunConfig(depth=16, steps=90), ("post", "peri")),
    "d 64": (RunConfig(depth=12, width=64, seq_len=64, batch=16, steps=24), ()),
    "d 128": (RunConfig(depth=12, width=128, seq_len=64, batch=16, steps=12), ()),
}
"""Each size as Pre-LN, and the placements that are measured beside it."""
REFERENCE = "torch.nn"
OURS = "NormViz"
PEER_SHARE = 3
"""A peer takes one step where `train` takes so many."""


class Encoder(nn.Module):
    """torch.nn.TransformerEncoder: Pre-LN, causal."""

    def __init__(self, c: RunConfig) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            c.width, c.heads, c.ffn_ratio * c.width, 0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(
            layer, c.depth, nn.LayerNorm(c.width), enable_nested_tensor=False
        )
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(c.seq_len))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(x, mask=self.mask, is_causal=True)


class LeanBlock(nn.Module):
    """A Pre-LN block in as few calls as eager PyTorch needs."""

    def __init__(self, c: RunConfig) -> None:
        super().__init__()
        d, self.heads = c.width, c.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, c.ffn_ratio * d), nn.Linear(c.ffn_ratio * d, d)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.down(relu(self.up(self.norm2(x))))


class Framed(nn.Module):
    """Blocks between embeddings and an output head; makes logits from tokens."""

    def __init__(self, c: RunConfig, blocks: nn.Module) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, c.width)
        self.positions = nn.Parameter(torch.randn(c.seq_len, c.width) * 0.5)
        self.blocks, self.head = blocks, nn.Linear(c.width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.tokens(tokens) + self.positions))


def encoder(c: RunConfig) -> nn.Module:
    """`torch.nn.TransformerEncoder` as a language model."""
    return Framed(c, Encoder(c))


def lean(c: RunConfig) -> nn.Module:
    """A Pre-LN decoder in as few calls of PyTorch as it needs."""
    return Framed(c, nn.Sequential(*(LeanBlock(c) for _ in range(c.depth)), nn.LayerNorm(c.width)))


def x_transformers(c: RunConfig) -> nn.Module:
    """The decoder of x-transformers at this size."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script`", DeprecationWarning)
        from x_transformers import Decoder, TransformerWrapper
    layers = Decoder(
        dim=c.width, depth=c.depth, heads=c.heads, attn_dim_head=c.width // c.heads, attn_flash=True
    )
    return TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=c.seq_len, attn_layers=layers)


def gpt2(c: RunConfig) -> nn.Module:
    """GPT-2 of transformers at this size."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    # By name: a type checker would read all models of transformers, a third of the time of its whole run.
    transformers = import_module("transformers")
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=c.seq_len, n_embd=c.width, n_layer=c.depth,
        n_head=c.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    model.register_forward_hook(lambda _module, _given, made: made.logits)
    return model


PEERS: dict[str, tuple[str, Callable[[RunConfig], nn.Module]]] = {
    REFERENCE: ("torch", encoder),
    "lean eager": ("torch", lean),
    "x-transformers": ("x_transformers", x_transformers),
    "GPT-2": ("transformers", gpt2),
}
"""Each peer's package and model."""


def measure(rounds: int) -> str:
    """For each size a table of ratios to torch.nn: medians, and the range over the rounds."""
    torch.set_num_threads(1)
    lines = [
        f"speed: {rounds} rounds of interleaved CPU time, one thread. NormViz is train() with its default "
        "probes and a new batch a step, Pre-LN where no placement is named; a peer is Pre-LN and reuses one "
        "batch"
    ]
    for what, (config, placements) in SIZES.items():
        lines += _size(what, config, placements, rounds)
    lines += [
        f"  {name} is not installed: install tests/requirements.txt to measure it"
        for name, (package, _) in PEERS.items()
        if not find_spec(package)
    ]
    return "\n".join(lines)


def _size(what: str, config: RunConfig, placements: Sequence[str], rounds: int) -> list[str]:
    steps = {
        name: peer_step(make(config), config)
        for name, (package, make) in PEERS.items()
        if find_spec(package)
    }
    n = max(4, config.steps // PEER_SHARE)
    timers: dict[str, Callable[[], float]] = {
        name: partial(_seconds, step, n) for name, step in steps.items()
    }
    ours = {OURS: config} | {
        f"{OURS} {SCHEMES.label(key)}": config.replace(scheme=key) for key in placements
    }
    timers |= {name: partial(_train_seconds, placed) for name, placed in ours.items()}
    timers[f"{OURS} no probes"] = partial(_train_seconds, config, ())
    timers["GEMM"] = _gemm_seconds
    seconds = np.array([_round(timers, i) for i in range(rounds + 1)])[1:]  # one warms up
    names = list(timers)
    ratio = seconds[:, [names.index(REFERENCE)]] / seconds
    started = next(train(config, device="cpu"))
    assert isinstance(started, Started)
    share = seconds[:, -1] * _operations(config) / seconds[:, names.index(OURS)]
    lines = [f"{what}: engine {started.engine}" + (f" ({started.why})" if started.why else "")]
    for i, name in enumerate(names[:-1]):
        lines.append(f"  {name:17} {_range(ratio[:, i])} times as fast as {REFERENCE}")
    return [*lines, f"  {OURS} reaches {_range(share)} of the measured GEMM peak"]


def _range(x: np.ndarray) -> str:
    low, middle, high = np.percentile(x, [0, 50, 100])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _round(timers: dict[str, Callable[[], float]], round_: int) -> list[float]:
    """Seconds of each; the order changes from round to round."""
    names = list(timers)
    k = round_ % len(names)
    seconds = {name: timers[name]() for name in names[k:] + names[:k]}
    return [seconds[name] for name in names]


def peer_step(model: nn.Module, c: RunConfig) -> Callable[[], None]:
    """A step of a plain loop on the model's device: forward, backward, PyTorch's fused AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    device = next(model.parameters()).device
    tokens = torch.randint(0, VOCABULARY, (c.batch, c.seq_len + 1), device=device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(model(inputs).flatten(0, 1), targets).backward()
        optimizer.step()

    return step


def _seconds(step: Callable[[], None], n: int) -> float:
    """CPU seconds a step."""
    began = time.process_time()
    for _ in range(n):
        step()
    return (time.process_time() - began) / n


def _train_seconds(config: RunConfig, record: Collection[int] | None = None) -> float:
    """CPU seconds a step of a whole run, without the building of its model. `record`: as of `train`."""
    events = train(config, record=record, device="cpu")
    next(events)
    began = time.process_time()
    for _ in events:
        pass
    return (time.process_time() - began) / config.steps


def _gemm_seconds(n: int = 512, times: int = 10) -> float:
    """CPU seconds a floating-point operation of PyTorch's product of two matrices."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return _seconds(partial(_product, a, b), times) / (2 * n**3)


def _product(a: Tensor, b: Tensor) -> None:
    torch.mm(a, b)


def _operations(c: RunConfig) -> float:
    """Floating-point operations of a step's matrix products, forward and backward."""
    block = 6 * parameters_per_block(c) + 12 * c.seq_len * c.width
    return c.batch * c.seq_len * (c.depth * block + 6 * c.width * VOCABULARY)
