"""The classes of a pasted model that do not depend on the wiring: attention and FFN."""

from __future__ import annotations

from ..catalog.scheme import Gain, Slots
from ..config import RunConfig
from .code_norms import norm_call

HEAD = '''"""{label}: a small decoder-only transformer in plain PyTorch."""

{imports}

{sizes}'''

SIZES = """{names}  # {words}
HIDDEN = {hidden}"""

DROPOUT = """
CHANCE = torch.Generator().manual_seed({seed})  # dropout draws from a generator of its own


def dropout(x, training):
    if not training:
        return x
    kept = torch.rand(x.shape, generator=CHANCE) >= {p}
    return x * kept.to(x.device) / (1 - {p})"""

FUSED = ["x = F.scaled_dot_product_attention(q, k, v, is_causal=True{scale})"]
WRITTEN_OUT = [
    "mask = torch.full((T, T), -1e30, device=x.device).triu(1)  # no position sees a later one",
    "q, k, v = (x.reshape(B * H, T, D // H) for x in (q, k, v))",
    "logits = torch.baddbmm(mask, q, k.transpose(1, 2), alpha={alpha})  # mask + alpha qk",
    "x = torch.bmm(torch.softmax(logits, -1), v).view(B, H, T, D // H)",
]
"""Attention by PyTorch's kernel, and in the product's own operations, equal bit for bit."""

QK: dict[str, tuple[list[str], list[str]]] = {
    "off": ([], []),
    "on": ([], ["q, k = (F.rms_norm(x, (D // H,), eps=1e-6) for x in (q, k))"]),
    "head": (
        [f"self.norm_{x} = nn.RMSNorm(D // H, 1e-6)" for x in ("query", "key")],
        ["q, k = self.norm_query(q), self.norm_key(k)"],
    ),
    "full": (
        [f"self.norm_{x} = nn.RMSNorm(D, 1e-5)" for x in ("query", "key")],
        [
            "def joined(x): return x.transpose(1, 2).flatten(2)",
            "def split(x): return x.view(B, -1, H, D // H).transpose(1, 2)",
            "q, k = split(self.norm_query(joined(q))), split(self.norm_key(joined(k)))",
        ],
    ),
    "cosine": (
        ["self.log_scale = nn.Parameter(torch.full((H, 1, 1), 10.0).log())"],
        [
            "q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)",
            "q = self.log_scale.exp().clamp(max=100.0) * q",
        ],
    ),
}
"""For each QK-norm: attributes of attention, and its operations on queries and keys."""


def _uniform(slots: list[Slots]) -> Slots:
    """The slots inside a branch, which are the same in all blocks."""
    first = slots[0]
    assert all(
        (s.norm_inner, s.norm_qkv, s.unit_qk, s.qk_gain, s.hidden_gain, s.head_gain)
        == (
            first.norm_inner,
            first.norm_qkv,
            first.unit_qk,
            first.qk_gain,
            first.hidden_gain,
            first.head_gain,
        )
        for s in slots
    )
    return first


def sizes(c: RunConfig, vocabulary: int | None) -> str:
    """The constants that the classes read; without V if it is defined elsewhere."""
    numbers = {"T": c.seq_len, "D": c.width, "H": c.heads, "L": c.depth}
    words = "positions, width, heads, blocks"
    if vocabulary is not None:
        numbers, words = {"V": vocabulary, **numbers}, f"vocabulary, {words}"
    names = f"{', '.join(numbers)} = {', '.join(map(str, numbers.values()))}"
    return SIZES.format(names=names, words=words, hidden=c.ffn_ratio * c.width)


def dropout(c: RunConfig) -> list[str]:
    """Source of dropout, if there is any; it follows every branch."""
    return [DROPOUT.format(seed=c.init_seed, p=c.dropout)] if c.dropout else []


def dropped(c: RunConfig, x: str) -> str:
    """`x` after dropout."""
    return f"dropout({x}, self.training)" if c.dropout else x


def attention_class(c: RunConfig, slots: list[Slots], exact: bool = False) -> str:
    """Causal self-attention with the scheme's norms inside.

    With `exact` it uses the operations of the product's model, in their order.
    """
    s, norms = _uniform(slots), c.norm != "none"
    init = ["self.qkv = nn.Linear(D, 3 * D)", "self.out = nn.Linear(D, D)"]
    before, after = [], []
    if s.norm_qkv and norms:
        init += [f"self.norm_{x} = {norm_call(c.norm, 'D // H')}" for x in "qkv"]
        before.append("q, k, v = self.norm_q(q), self.norm_k(k), self.norm_v(v)")
    if s.unit_qk:
        before += [
            "# With the softmax's 1 / sqrt(D / H): sqrt(D / H) times their cosine.",
            "q, k = ((D // H) ** 0.5 * F.normalize(x, dim=-1) for x in (q, k))",
        ]
    if not s.qk_gain.is_one:
        line, factor = learned(s.qk_gain, "qk_gain", "D", s.qk_gain.value)
        init.append(line)
        before += [f"s = ({factor}).view(H, 1, D // H)", "q, k = s * q, s * k"]
    more, norm_q_k = QK[c.qk_norm]
    init += more
    before += norm_q_k
    if c.v_norm == "on":
        before.append("v = F.rms_norm(v, (D // H,), eps=1e-6)")
    if s.head_gain:
        init.append("self.head_gain = nn.Parameter(torch.ones(H))")
        after.append("x = self.head_gain[:, None, None] * x")
    out = "x.transpose(1, 2).reshape(B, -1, D)"
    if s.norm_inner and norms:
        init.append(f"self.norm_inner = {norm_call(c.norm, 'D')}")
        out = f"self.norm_inner({out})"
    if s.first_value:
        init.append("self.first = None  # the values of the first block, or None in it")
        before.append(
            f"v = v if self.first is None else {1 - s.first_value} * v + {s.first_value} * self.first"
        )
        before.append("self.values = v")
    cosine = c.qk_norm == "cosine"
    words = {"scale": ", scale=1.0" * cosine, "alpha": "1.0" if cosine else "(D // H) ** -0.5"}
    body = [
        "B = x.shape[0]",
        "q, k, v = self.qkv(x).view(B, -1, 3, H, D // H).permute(2, 0, 3, 1, 4)",
        *before,
        *(line.format(**words) for line in (WRITTEN_OUT if exact else FUSED)),
        *after,
        f"return {dropped(c, f'self.out({out})')}",
    ]
    return module("Attention", "", init, "x", body)


def feed_forward_class(c: RunConfig, slots: list[Slots]) -> str:
    """The FFN with the scheme's norm inside, if it has one."""
    s = _uniform(slots)
    init = ["self.up = nn.Linear(D, HIDDEN)", "self.down = nn.Linear(HIDDEN, D)"]
    up = "self.up(x)"
    if not s.hidden_gain.is_one:
        line, factor = learned(s.hidden_gain, "hidden_gain", "HIDDEN", s.hidden_gain.value)
        init.append(line)
        up = f"{factor} * {up}"
    inner = f"F.{c.activation}({up})"
    if s.norm_inner and c.norm != "none":
        init.append(f"self.norm_inner = {norm_call(c.norm, 'HIDDEN')}")
        inner = f"self.norm_inner({inner})"
    return module("FeedForward", "", init, "x", [f"return {dropped(c, f'self.down({inner})')}"])


def learned(gain: Gain, name: str, channels: str, start: object) -> tuple[str, str]:
    """The line that creates a learned gain, and the factor that uses it (`nn.gains.scaled`)."""
    shape = f"({channels},)" if gain.learned == "channel" else "()"
    factors = [f"self.{name}"]
    if gain.stored == "1/sqrt(d)":
        factors = [*([] if gain.value == 1.0 else [str(start)]), "D**0.5", *factors]
        start = "D**-0.5"
    if gain.unit == "sqrt(d)":
        factors.insert(0, "D**0.5")
    return f"self.{name} = nn.Parameter(torch.full({shape}, {start}))", " * ".join(factors)


def module(name: str, arguments: str, init: list[str], inputs: str, body: list[str]) -> str:
    """Source of an nn.Module from the lines of its two methods."""
    head = f"self, {arguments}" if arguments else "self"
    return "\n".join(
        (
            "",
            f"class {name}(nn.Module):",
            f"    def __init__({head}):",
            "        super().__init__()",
            *(f"        {line}" for line in init),
            "",
            f"    def forward(self, {inputs}):",
            *(f"        {line}" for line in body),
        )
    )
