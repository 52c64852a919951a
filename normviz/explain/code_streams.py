"""Blocks and models of the schemes with several streams, as plain PyTorch for readers to paste."""

from __future__ import annotations

from ..catalog.streams import Code
from ..config import RunConfig
from .code_norms import norm_call
from .code_parts import dropped

BRANCHES = ("attention", "ffn")


def block_and_model(config: RunConfig, streams: Code, final_norm: bool) -> str:
    """Source of Block and Model for a kind of state; attention and FFN come before it."""
    t, norm = streams, norm_call(config.norm, "D")
    lines = ["", "class Block(nn.Module):", "    def __init__(self, b):"]
    lines += ["        super().__init__()"]
    lines += ["        self.attention, self.ffn = Attention(), FeedForward()"]
    lines += [f"        self.{F}_norm_{n} = {norm}" for F in BRANCHES for n in t.norms]
    lines += _indented(t.init)
    lines += ["", f"    def forward(self, {t.state}):"]
    for branch in BRANCHES:
        lines += _indented(t.sublayer.replace("{F}", branch))
    lines += [f"        return {t.state}", "", "", "class Model(nn.Module):"]
    lines += ["    def __init__(self):", "        super().__init__()"]
    lines += [
        "        self.tokens = nn.Embedding(V, D)",
        "        self.positions = nn.Embedding(T, D)",
    ]
    lines += ["        self.blocks = nn.ModuleList(Block(b) for b in range(1, L + 1))"]
    lines += [f"        self.{name} = {norm}" for name in t.model_norms]
    lines += _indented(t.model_init)
    lines += [f"        self.final_norm = {norm}"] if final_norm else []
    lines += [
        "        self.head = nn.Linear(D, V, bias=False)",
        "",
        "    def forward(self, tokens):",
    ]
    lines += ["        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]"]
    lines += [f"        x = {dropped(config, 'x')}"] if config.dropout else []
    lines += _indented(t.enter)
    lines += ["        for block in self.blocks:", f"            {t.state} = block({t.state})"]
    lines += _indented(t.after_block, 12)
    lines += _indented(t.leave)
    lines += [f"        return self.head({'self.final_norm(x)' if final_norm else 'x'})"]
    return "\n".join(lines)


def _indented(text: str, by: int = 8) -> list[str]:
    return [" " * by + line for line in text.splitlines()]
