"""Code shown of models that are not decoders: what they read, their first branch, and recurrent layers."""

from __future__ import annotations

import re

from ...catalog import CELLS, FAMILIES, TASKS
from ...config import RunConfig

MESSAGES = """
class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(D, D)
        self.out = nn.Linear(D, D){norm}

    def forward(self, x):  # A [N, N]: 1 / sqrt(degree degree') of neighbours, and of a node and itself
        x = A.to(x.device) @ self.value(x)
        return {out}"""


def messages(inner: str, out: str) -> str:
    """Source of the messages of a graph network, with the call of a norm inside, or ""."""
    norm = f"\n        self.norm_inner = {inner}" if inner else ""
    return MESSAGES.format(
        norm=norm, out=out.format("self.out(self.norm_inner(x))" if inner else "self.out(x)")
    )


def renamed(c: RunConfig, block: str) -> str:
    """The source of a decoder's block, with the first branch of the family."""
    first = FAMILIES[c.family].first
    made = {"first": "FeedForward", "messages": "Messages"}.get(first or "", "Attention")
    return re.sub(r"\battention", first or "", block.replace("Attention()", f"{made}()"))


def inputs(c: RunConfig, norm: str, patch: str) -> tuple[list[str], list[str]]:
    """The lines that create what reads an example, and those that embed `inputs` as x [B, T, D]; `norm` and
    `patch` make a norm over the stream and over the pixels of a patch."""
    features = TASKS[c.task].features
    if c.family == "vit":
        side = round(c.seq_len**0.5)
        pixels = 8 // side
        cut = f"inputs.view(-1, {side}, {pixels}, {side}, {pixels}).transpose(2, 3)"
        before, after = (c.patch_norm == "dual") * bool(norm), (c.patch_norm != "off") * bool(norm)
        create = [
            *[f"        self.patch_norm_in = {patch}"] * before,
            f"        self.inputs = nn.Linear({pixels * pixels}, D)",
            *[f"        self.patch_norm_out = {norm}"] * after,
            "        self.class_token = nn.Embedding(1, D)",
        ]
        add = [
            f"        x = {cut}.reshape(-1, {c.seq_len}, {pixels * pixels})  # patches",
            *["        x = self.patch_norm_in(x)"] * before,
            "        x = self.inputs(x)",
            *["        x = self.patch_norm_out(x)"] * after,
            "        x = torch.cat((self.class_token.weight.expand(len(x), 1, -1), x), 1)",
        ]
        if c.positions in ("learned", "sinusoidal"):
            where = "positions.weight" if c.positions == "learned" else "waves"
            add.append(f"        x = x + self.{where}")
        return create, add
    return (
        [f"        self.inputs = nn.Linear({features}, D)"],
        ["        x = self.inputs(inputs)[None]  # each example is a position"],
    )


LAYER = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(D, {G}, bias=False)
        self.input = nn.Linear(D, {G}, bias=False)
        self.bias = nn.Parameter(torch.zeros({G})){norms}

    def forward(self, x):
        products = {of_x}
        h = torch.zeros_like(x[:, 0])
{start}        states = []
        for from_input in products.unbind(1):
            z = {of_h} + from_input
{step}
            states.append(h)
        return {out}"""
RNN_STEP = "            h = torch.tanh({z} + self.bias)"
LSTM_STEP = """            i, f, g, o = (z + self.bias).chunk(4, -1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh({cell})"""


def layer(c: RunConfig, wide: str, norm: str, dropped: str) -> str:
    """Source of a recurrent layer; `wide` and `norm` make norms over all gates and over the state, `dropped`
    is the output with its dropout."""
    place, is_lstm, gates = CELLS[c.scheme], c.family == "lstm", FAMILIES[c.family].gates
    inside, between = place.in_cell and bool(norm), place.between and bool(norm)
    lstm = inside and is_lstm
    norms = (
        [("norm", wide)] * (inside and not is_lstm)
        + [("norm_hidden", wide), ("norm_input", wide), ("norm_cell", norm)] * lstm
        + [("norm_out", norm)] * between
    )
    products, of_h = "self.input(x)", "self.hidden(h)"
    step = LSTM_STEP.format(cell="self.norm_cell(cell)" if inside else "cell")
    if not is_lstm:
        step = RNN_STEP.format(z="self.norm(z)" if inside else "z")
    out = "torch.stack(states, 1)"
    return LAYER.format(
        G="D" if gates == 1 else f"{gates} * D",
        norms="".join(f"\n        self.{name} = {made}" for name, made in norms),
        of_x=f"self.norm_input({products})" if lstm else products,
        of_h=f"self.norm_hidden({of_h})" if lstm else of_h,
        start="        cell = torch.zeros_like(h)\n" * is_lstm,
        step=step,
        out=dropped.format(f"self.norm_out({out})" if between else out),
    )


def recurrent_model(c: RunConfig, x: str, returned: list[str]) -> str:
    """Source of a recurrent net; `x` is its embedding, `returned` the lines of the logits."""
    features = TASKS[c.task].features
    made = (
        f"self.inputs = nn.Linear({features // c.seq_len}, D)"
        if features
        else "self.tokens = nn.Embedding(V, D)"
    )
    read = "self.inputs(inputs.view(len(inputs), T, -1))" if features else "self.tokens(inputs)"
    return "\n".join(
        [
            "",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            f"        {made}",
            "        self.blocks = nn.ModuleList(Layer() for _ in range(L))",
            "        self.head = nn.Linear(D, V, bias=False)",
            "",
            "    def forward(self, inputs):",
            f"        x = {x.format(read)}",
            "        for layer in self.blocks:",
            "            x = layer(x)",
            *returned,
        ]
    )
