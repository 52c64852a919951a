"""Blocks and models of the schemes with several streams, as plain PyTorch for readers to paste."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import RunConfig
from .code_norms import norm_call
from .code_parts import dropped

BRANCHES = ("attention", "ffn")


@dataclass(frozen=True)
class Template:
    """What a kind of state needs: names of norms and lines of one sublayer ({F} is its name), what
    block and model pass on, and the model's own lines."""

    norms: tuple[str, ...]
    sublayer: str
    state: str
    enter: str
    leave: str
    init: str = ""
    model_init: str = ""
    model_norms: tuple[str, ...] = ()
    after_block: str = ""


TEMPLATES = {
    "dual": Template(
        norms=("main",),
        sublayer="""f = self.{F}(x)
x, r = self.{F}_norm_main(x + f), r + f""",
        state="x, r",
        enter="x, r = x, x",
        leave="x = x + self.norm_dual(r)",
        model_norms=("norm_dual",),
    ),
    "siamese": Template(
        norms=("in", "x", "y"),
        sublayer="""f = self.{F}(self.{F}_norm_in(x + self.{F}_norm_y(y)))
x, y = self.{F}_norm_x(x + f / (2 * self.b) ** 0.5), y + f""",
        state="x, y",
        enter="x, y = x, x",
        leave="x = self.norm_x(x) + self.norm_y(y)",
        init="self.b = b",
        model_norms=("norm_x", "norm_y"),
    ),
    "hyper": Template(
        norms=("in",),
        init="""for name, k in (("attention", 2 * b - 1), ("ffn", 2 * b)):
    start = torch.cat((F.one_hot(torch.tensor([(k - 1) % 4]), 4).float().T, torch.eye(4)), 1)
    setattr(self, name + "_gain_start", nn.Parameter(start))
    setattr(self, name + "_gain_write", nn.Parameter(torch.ones(4)))
    setattr(self, name + "_gain_of_token", nn.Parameter(torch.zeros(D, 5)))
    setattr(self, name + "_gain_write_of_token", nn.Parameter(torch.zeros(D)))
    setattr(self, name + "_gain_scale", nn.Parameter(torch.full((2,), 0.01)))""",
        sublayer="""unit, s = F.rms_norm(h, (D,), eps=1e-6), self.{F}_gain_scale
mix = self.{F}_gain_start + s[0] * torch.tanh(unit @ self.{F}_gain_of_token)
write = self.{F}_gain_write + s[1] * torch.tanh(unit @ self.{F}_gain_write_of_token)
read = mix.transpose(-1, -2) @ h  # what the branch reads, and the four copies
f = self.{F}(self.{F}_norm_in(read[..., 0, :]))
h = read[..., 1:, :] + write[..., None] * f[..., None, :]""",
        state="h",
        enter="h = x[..., None, :].repeat(1, 1, 4, 1)  # [B, T, 4, D]",
        leave="x = h.sum(-2)",
    ),
    "manifold": Template(
        norms=("in",),
        init="""for name in ("attention", "ffn"):
    setattr(self, name + "_gain_of_state", nn.Parameter(torch.zeros(4 * D, 24)))
    setattr(self, name + "_gain_start", nn.Parameter(torch.zeros(24)))
    setattr(self, name + "_gain_scale", nn.Parameter(torch.full((3,), 0.01)))""",
        sublayer="""z = F.rms_norm(h.flatten(-2), (4 * D,), eps=1e-6) @ self.{F}_gain_of_state
pre, post, res = (
    s * part + start
    for s, part, start in zip(
        self.{F}_gain_scale, z.split((4, 4, 16), -1), self.{F}_gain_start.split((4, 4, 16))
    )
)
res = res.unflatten(-1, (4, 4)).exp()
for _ in range(20):  # Sinkhorn: rows and columns add up to 1
    res = res / res.sum(-1, keepdim=True)
    res = res / res.sum(-2, keepdim=True)
x = (pre.sigmoid()[..., None] * h).sum(-2)
f = self.{F}(self.{F}_norm_in(x))
h = res.transpose(-1, -2) @ h + 2 * post.sigmoid()[..., None] * f[..., None, :]""",
        state="h",
        enter="h = x[..., None, :].repeat(1, 1, 4, 1)  # [B, T, 4, D]",
        leave="x = h.mean(-2)",
    ),
    "dense": Template(
        norms=("in",),
        sublayer="x = x + self.{F}(self.{F}_norm_in(x))",
        state="x",
        enter="outputs = [x]",
        after_block="""outputs.append(x)
x = sum(a * y for a, y in zip(self.gains[len(outputs) - 2], outputs))""",
        leave="",
        model_init="""self.gains = nn.ParameterList(
    F.one_hot(torch.tensor(b), b + 1).float() for b in range(1, L + 1)
)""",
    ),
    "attention": Template(
        norms=("in",),
        init="""self.attention_query_gain = nn.Parameter(torch.zeros(D))
self.ffn_query_gain = nn.Parameter(torch.zeros(D))""",
        sublayer="""values.append(self.{F}(self.{F}_norm_in(x)))
stacked = torch.stack(values)  # [i, B, T, D]
keys = F.rms_norm(stacked, (D,), eps=1e-6)
x = ((keys @ self.{F}_query_gain).softmax(0)[..., None] * stacked).sum(0)""",
        state="x, values",
        enter="values = [x]",
        leave="",
    ),
}


def block_and_model(config: RunConfig, streams: str, final_norm: bool) -> str:
    """Source of Block and Model for a kind of state; attention and FFN come before it."""
    t, norm = TEMPLATES[streams], norm_call(config.norm, "D")
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
