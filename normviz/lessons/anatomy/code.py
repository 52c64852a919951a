"""A model of any scheme as plain PyTorch code to paste.

`code` writes the whole model. Below it are the parts: the block with its wiring, blocks with several
streams, attention and FFN, norms, and weight constraints. The code has no
wires, slots or records, only the parts that the scheme uses. Its parameters are ours under shorter names
(`our_name` translates), so it computes the same as the product's model; a test executes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ...catalog import CELLS, FAMILIES, NORMS, PLACEMENTS, SCHEMES, STREAMS, TASKS
from ...catalog.choices import GATED, Choice
from ...catalog.patterns import Blocks, patterns
from ...catalog.scheme import BRANCHES, Branch, Gain, Scheme, Slots
from ...catalog.setting import Spot
from ...catalog.streams import Code
from ...config import DEFAULTS, SETTINGS, RunConfig
from . import family_code
from .quote import PACKAGE, Quotation

INSIDE = ("head_gain", "qk_gain", "hidden_gain")
"""Gains on a branch itself, not on the path around it."""


def code(config: RunConfig, vocabulary: int) -> str:
    """Source of a module whose `Model()` maps tokens [B, T] to logits [B, T, V]."""
    c = config.placed()
    head = HEAD.format(
        kind=FAMILIES[c.family].kind,
        label=PLACEMENTS.label(c.scheme),
        imports=imports(c.norm),
        sizes=sizes(c, vocabulary),
    )
    return "\n\n".join([head, *classes(c)]) + "\n"


def classes(config: RunConfig, exact: bool = False) -> list[str]:
    """Sources of the model's classes, `Model` last.

    With `exact`, attention uses the product's own operations: the same numbers bit for bit.
    """
    c = config.placed()
    if c.scheme in CELLS:
        return recurrent_classes(c)
    scheme = SCHEMES[c.scheme]
    groups = [
        replace(group, attention=c.divided(group.attention), ffn=c.divided(group.ffn))
        for group in patterns(c.scheme, c.depth)
    ]
    slots = [s for group in groups for s in (group.attention, group.ffn)]
    names = ["Block"] if len(groups) == 1 else [f"Block{i + 1}" for i in range(len(groups))]
    parts = [
        *([f"\n{source}"] if (source := norm_source(c.norm)) else []),
        *dropout(c),
        *[SPECTRAL] * slots[0].spectral,
        *first_branch(c, [group.attention for group in groups], exact),
        feed_forward_class(c, [group.ffn for group in groups]),
    ]
    if streams := STREAMS[scheme.streams].code:
        assert scheme.logit_gain.is_one, "a gain of the logits is written for one stream alone"
        assert scheme.constraint == "none", "a constraint is written for one stream alone"
        return [*parts, block_and_model(c, streams, scheme.final_norm)]
    parts += (
        family_code.renamed(c, block_class(c, scheme, group, name))
        for group, name in zip(groups, names, strict=True)
    )
    ends = [(group.last, name) for group, name in zip(groups, names, strict=True)]
    return [*parts, _model(c, ends, slots)]


def first_branch(c: RunConfig, slots: list[Slots], exact: bool) -> list[str]:
    """Source of the branch before the FFN; none where that is an FFN too."""
    if c.family == "mlp":
        return []
    if c.family == "gnn":
        inner = norm_call(c, "D") if slots[0].norm_inner and c.norm != "none" else ""
        return [family_code.messages(inner, dropped(c, "{}"))]
    return [attention_class(c, slots, exact)]


def recurrent_classes(c: RunConfig) -> list[str]:
    """Sources of a recurrent net's classes, `Model` last."""
    has_norm = c.norm != "none"
    wide = norm_call(c, "D" if c.family == "rnn" else "4 * D") if has_norm else ""
    norm = norm_call(c, "D") if has_norm else ""
    logits = returned(c, f"self.head({'x[:, -1:]' if TASKS[c.task].features else 'x'})")
    return [
        *([f"\n{source}"] if (source := norm_source(c.norm)) else []),
        *dropout(c),
        family_code.layer(c, wide, norm, dropped(c, "{}")),
        family_code.recurrent_model(c, dropped(c, "{}"), logits),
    ]


def _model(c: RunConfig, blocks: list[tuple[int, str]], slots: list[Slots]) -> str:
    scheme, progress, embedding = SCHEMES[c.scheme], has_progress(slots), reads_embedding(slots)
    values = any(s.first_value for s in slots)
    choice = blocks[-1][1]
    for last, name in reversed(blocks[:-1]):
        choice = f"({name} if b <= {last} else {choice})"
    more = (["x0"] if embedding else []) + (["progress"] if progress else [])
    embed = norm_call(c, "D") if scheme.embed_norm and c.norm != "none" else ""
    final = norm_call(c, "D", c.last_norm) if scheme.final_norm and c.norm != "none" else ""
    last = "self.final_norm(x)" if final else "x"
    last += "[:, :1]" if c.family == "vit" else ""
    init, logits = _logit_gain(scheme, f"self.head({last})")
    (create, add), back = position_lines(c), setting_lines(c, "stream")
    tokens = ["        self.tokens = nn.Embedding(V, D)"]
    if c.family != "decoder":
        norm = norm_call(c, "D") if c.norm != "none" else ""
        patch = norm_call(c, str(TASKS[c.task].features // c.seq_len)) if norm else ""
        tokens, add = family_code.inputs(c, norm, patch)
        create = create if c.family == "vit" else []
    keep, method = CONSTRAINTS[scheme.constraint]
    read = "tokens" if c.family == "decoder" else "inputs"
    lines = [
        "",
        "class Model(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        *tokens,
        *create,
        *([f"        self.embed_norm = {embed}"] if embed else []),
        f"        self.blocks = nn.ModuleList({choice}(b) for b in range(1, L + 1))",
        *(SHARED.format(own=c.depth // c.loops).splitlines() if c.loops > 1 else []),
        *([f"        self.final_norm = {final}"] if final else []),
        "        self.head = nn.Linear(D, V, bias=False)",
        *(f"        {line}" for line in setting_lines(c, "head")),
        *init,
        *keep,
        "",
        *method,
        f"    def forward(self, {read}{', progress=1.0' if progress else ''}):",
        *add,
        *(["        x = self.embed_norm(x)"] if embed else []),
        *([f"        x = {dropped(c, 'x')}"] if c.dropout else []),
        *(f"        {line}" for line in back),
        *(["        x0 = x"] if embedding else []),
        *(["        first = None"] if values else []),
        "        for block in self.blocks:",
        *(["            block.attention.first = first"] if values else []),
        f"            x = block({', '.join(['x', *more])})",
        *(f"            {line}" for line in back),
        *(["            first = block.attention.values if first is None else first"] * values),
        *returned(c, logits),
    ]
    return "\n".join(lines)


SHARED = """\
        for b in range({own}, L):  # each pass over {own} blocks has the parameters of the one before
            for later, before in zip(self.blocks[b].modules(), self.blocks[b - {own}].modules()):
                later._parameters = before._parameters"""


def position_lines(c: RunConfig) -> tuple[list[str], list[str]]:
    """The lines that create positions, and those that embed tokens [B, T] as x [B, T, D]."""
    create: dict[str, list[str]] = {
        "learned": ["        self.positions = nn.Embedding(T, D)"],
        "sinusoidal": [
            f"        angle = {ANGLE.format(channels='D')}",
            "        waves = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, :D].float()",
            '        self.register_buffer("waves", waves, persistent=False)',
        ],
    }
    added = {
        "learned": " + self.positions.weight[: tokens.shape[1]]",
        "sinusoidal": " + self.waves[: tokens.shape[1]]",
    }
    add = f"        x = self.tokens(tokens){added.get(c.positions, '')}"
    return create.get(c.positions, []), [add]


ANGLE = (
    "torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** "
    "(-torch.arange(0, {channels}, 2, dtype=torch.float64) / ({channels}))"
)
"""Position times the rate of each pair of channels, [T, channels / 2]."""


def setting_lines(c: RunConfig, spot: Spot) -> list[str]:
    """The lines at a spot, of all settings that have some there, in the order of the settings."""
    lines: list[str] = []
    for name, setting in SETTINGS.items():
        value = getattr(c, name)
        record = setting.choices[value] if setting.choices is not None else None
        if isinstance(record, Choice):
            lines += record.code.get(spot, "").splitlines()
        elif value != DEFAULTS[name]:
            lines += setting.code.get(spot, "").format(value=value).splitlines()
    return lines


def returned(c: RunConfig, logits: str) -> list[str]:
    """The lines that return the logits, scaled and bounded by the settings."""
    scaled = [f"logits = logits * {c.logit_scale!r}"] if c.logit_scale != 1.0 else []
    if not (then := [*scaled, *setting_lines(c, "logits")]):
        return [f"        return {logits}"]
    return [f"        {line}" for line in (f"logits = {logits}", *then, "return logits")]


def _logit_gain(scheme: Scheme, logits: str) -> tuple[list[str], str]:
    """The line that creates the gain of the logits, if there is one, and the scaled logits."""
    gain = scheme.logit_gain
    if gain.is_one:
        return [], logits
    line, factor = learned(gain, "logit_gain", "V", gain.value)
    return [f"        {line}"], f"{factor} * {logits}"


def our_name(name: str) -> str:
    """Name in the pasted model of a parameter of the product's model."""
    name = re.sub(r"\.(attention|ffn|first|messages)\.branch\.", r".\1.", name)
    own = r"norm_(?:fork|in|out|skip|main|x|y)|\w+_gain|gain_\w+|gate_\w+|\w+_shift"
    name = re.sub(rf"\.(attention|ffn|first|messages)\.({own})\b", _flat, name)
    name = re.sub(
        r"\.qk_norm\.(q|k)\.", lambda m: f".norm_{'query' if m[1] == 'q' else 'key'}.", name
    )
    name = re.sub(r"^streams\.", "", name)
    name = re.sub(r"\.qk_norm\.(log_scale|scale_[qk])", r".\1", name)
    name = re.sub(r"\.shared\.(branch_gain|gate)\.weight$", r".\1", name)
    return re.sub(r"(_gain|_shift)\.weight$", r"\1", name)


def _flat(match: re.Match[str]) -> str:
    branch, part = match.groups()
    return f".{branch}.{part}" if part in INSIDE else f".{branch}_{part}"


# The block: two sublayers with the wiring of their slots.


def reads_embedding(slots: Iterable[Slots]) -> bool:
    """Whether a sublayer adds the embedding to its input."""
    return any(not s.embed_gain.is_zero for s in slots)


def has_progress(slots: Iterable[Slots]) -> bool:
    """Whether a gain depends on the progress of training."""
    return any(s.branch_gain.ramp > 0 for s in slots)


@dataclass
class BlockLines:
    """The lines of a block's two methods, as they are collected."""

    config: RunConfig
    scheme: Scheme
    init: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def norm(self, there: bool, branch: Branch, slot: str, x: str, start: float = 1.0) -> str:
        """`x` after the norm of a slot, if there is one."""
        if not there:
            return x
        if self.config.norm == "none":
            gamma = self.constant(f"gamma_{slot}", start, branch) if start != 1.0 else ""
            return f"{gamma} * {x}" if gamma else x
        name = f"{branch}_norm_{slot}"
        self.init.append(f"self.{name} = {norm_call(self.config, 'D')}")
        return (self.start(name, slot, start, branch) if start != 1.0 else "") + f"self.{name}({x})"

    def start(self, name: str, slot: str, value: float, branch: Branch) -> str:
        """Set the initial scale of a norm; for a norm without a learned scale, returns a factor."""
        learned = {p.name for p in NORMS[self.config.norm].learns}
        factor = self.number(f"gamma_{slot}", value, branch)
        if not learned & {"weight", "scale", "offset"}:
            return f"{self.constant(f'gamma_{slot}', value, branch)} * "
        for p in sorted(learned & {"weight", "scale", "bias"}, reverse=True):
            self.init.append(f"self.{name}.{p}.data.mul_({factor})")
        if "offset" in learned:
            self.init.append(f"self.{name}.offset.data.add_({factor} - 1)")
        return ""

    def number(self, slot: str, value: float, branch: Branch) -> str:
        """A constant as its formula in Python if it has one, else as a number."""
        formula = next((c.code for c in self.scheme.constants if c.gain == slot), "")
        k = "2 * b - 1" if branch == "attention" else "2 * b"
        formula = formula.replace("k", f"({k})") if formula else repr(value)
        return f"({formula})" if " " in formula or "**" in formula else formula

    def gain(self, gain: Gain, branch: Branch, slot: str) -> str:
        """The factor of a gain, as `... * `; empty for 1."""
        if gain.is_one:
            return ""
        if gain.learned:
            name = f"{branch}_{slot}" if gain.learned != "block" else slot
            line, factor = learned(gain, name, "D", self.number(slot, gain.value, branch))
            if line not in self.init:
                self.init.append(line)
            return f"{factor} * "
        if gain.ramp:
            share = next(c.code for c in self.scheme.constants if c.gain == slot)
            self.init.append(f"self.{branch}_ramp = {share}")
            over = "" if gain.over == 1.0 else f"{1.0 / gain.over!r} * "
            return f"{over}min(1, progress / self.{branch}_ramp) * "
        if gain.over != 1.0:
            return f"{1.0 / gain.over!r} * " + self.gain(replace(gain, over=1.0), branch, slot)
        return f"{self.constant(slot, gain.value, branch)} * "

    def constant(self, slot: str, value: float, branch: Branch) -> str:
        """A constant: stored as an attribute if it depends on the block, else written in place."""
        number = self.number(slot, value, branch)
        if "b" not in number:
            return number
        self.init.append(f"self.{branch}_{slot} = {number.removeprefix('(').removesuffix(')')}")
        return f"self.{branch}_{slot}"


def block_class(config: RunConfig, scheme: Scheme, group: Blocks, name: str) -> str:
    """Source of the block class for a group of blocks with the same wiring."""
    lines = BlockLines(config, scheme)
    lines.init += ["self.attention = Attention()", "self.ffn = FeedForward()"]
    both = (group.attention, group.ffn)
    uses_block = any(s.branch_reads == "block" or not s.block_gain.is_zero for s in both)
    if uses_block:
        lines.body.append("entered = x")
    _sublayer(lines, group.attention, "attention")
    _sublayer(lines, group.ffn, "ffn")
    lines.body.append("return x")
    more = ["x0"] * reads_embedding(both) + ["progress"] * has_progress(both)
    return module(name, "b", lines.init, ", ".join(["x", *more]), lines.body)


def _sublayer(lines: BlockLines, s: Slots, branch: Branch) -> None:
    stream = lines.gain(s.stream_gain, branch, "stream_gain") + "x"
    if not s.embed_gain.is_zero:
        stream += f" + {lines.gain(s.embed_gain, branch, 'embed_gain')}x0"
    fork = lines.norm(s.norm_fork, branch, "fork", stream)
    if fork != "x":
        lines.body.append(f"x = {fork}")
    source = "entered" if s.branch_reads == "block" else "x"
    if s.shares_norm:
        read = source if lines.config.norm == "none" else f"self.attention_norm_in({source})"
    else:
        read = lines.norm(s.norm_in, branch, "in", source, s.gamma_in)
    read = lines.gain(s.input_gain, branch, "input_gain") + read
    f = lines.norm(s.norm_out, branch, "out", f"self.{branch}({read})", s.gamma_out)
    skip, f = _weighted(lines, s, branch, f)
    terms = ([] if s.skip_gain.is_zero else [skip]) + (
        [] if s.block_gain.is_zero else [lines.gain(s.block_gain, branch, "block_gain") + "entered"]
    )
    total = lines.norm(s.norm_main, branch, "main", " + ".join([*terms, f]))
    if main := lines.gain(s.main_gain, branch, "main_gain"):
        total = f"{main}({total})"
    lines.body.append(f"x = {total}")
    if s.gate:
        line = "self.gate = nn.Parameter(torch.zeros(()))"
        if line not in lines.init:
            lines.init.append(line)
        lines.body.append("x = x - F.silu(self.gate) * x.detach()")


def _weighted(lines: BlockLines, s: Slots, branch: Branch, f: str) -> tuple[str, str]:
    """Skip path and branch with their gains."""
    skip = lines.norm(s.norm_skip, branch, "skip", "x")
    if s.shifts:
        for slot in ("skip", "branch"):
            lines.init.append(f"self.{branch}_{slot}_shift = nn.Parameter(torch.zeros(D))")
        skip, f = f"({skip} + self.{branch}_skip_shift)", f"({f} + self.{branch}_branch_shift)"
    if s.mix == "sum":
        a = lines.gain(s.skip_gain, branch, "skip_gain") if not s.skip_gain.is_zero else ""
        return a + skip, lines.gain(s.branch_gain, branch, "branch_gain") + f
    weight = lines.gain(s.branch_gain, branch, "branch_gain").removesuffix(" * ")
    if s.mix == "lerp":
        lines.body.append(f"s = ({weight}).abs()" if " " in weight else f"s = {weight}.abs()")
        return f"(1 - s) * {skip}", f"s * {f}"
    lines.body.append(f"s = torch.sigmoid({weight} / 0.3)")
    return f"(1 - s**2).sqrt() * {skip}", f"s * {f}"


# Blocks and models with several streams.


def block_and_model(config: RunConfig, streams: Code, final_norm: bool) -> str:
    """Source of Block and Model for a kind of state; attention and FFN come before it."""
    t, norm = streams, norm_call(config, "D")
    create, add = position_lines(config)
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
        *create,
    ]
    lines += ["        self.blocks = nn.ModuleList(Block(b) for b in range(1, L + 1))"]
    lines += [f"        self.{name} = {norm}" for name in t.model_norms]
    lines += _indented(t.model_init)
    final = norm_call(config, "D", config.last_norm)
    lines += [f"        self.final_norm = {final}"] if final_norm else []
    lines += [
        "        self.head = nn.Linear(D, V, bias=False)",
        *(f"        {line}" for line in setting_lines(config, "head")),
        "",
        "    def forward(self, tokens):",
        *add,
    ]
    lines += [f"        x = {dropped(config, 'x')}"] if config.dropout else []
    lines += _indented(t.enter)
    lines += ["        for block in self.blocks:", f"            {t.state} = block({t.state})"]
    lines += _indented(t.after_block, 12)
    lines += _indented(t.leave)
    lines += returned(config, f"self.head({'self.final_norm(x)' if final_norm else 'x'})")
    return "\n".join(lines)


def _indented(text: str, by: int = 8) -> list[str]:
    return [" " * by + line for line in text.splitlines()]


# Attention and FFN, which do not depend on the wiring.

HEAD = '''"""{label}: a small {kind} in plain PyTorch."""

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

LINEAR = ("nn.Linear", "SpectralLinear")
SPECTRAL = """
class SpectralLinear(nn.Linear):  # by gamma W / sigma, sigma the largest singular value of W
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.gamma = nn.Parameter(torch.ones(()))
        self.register_buffer("u", None, persistent=False)

    def forward(self, x):
        W = self.weight
        with torch.no_grad():  # one power iteration; the first starts at the singular vector
            u = torch.linalg.svd(W, full_matrices=False)[2][0] if self.u is None else self.u
            v = F.normalize(W @ u, dim=0)
            u = F.normalize(W.T @ v, dim=0)
            if self.training:
                self.u = u
        return F.linear(x, self.gamma / (v @ W @ u) * W, self.bias)"""

FUSED = ["x = F.scaled_dot_product_attention(q, k, v, is_causal={is_causal}{scale})"]
WRITTEN_OUT = [
    "{mask}",
    "q, k, v = (x.reshape(B * H, T, D // H) for x in (q, k, v))",
    "logits = torch.baddbmm(mask, q, k.transpose(1, 2), alpha={alpha})  # mask + alpha qk",
    "x = torch.bmm(torch.softmax(logits, -1), v).view(B, H, T, D // H)",
]
SHOWN = [
    "{mask}",
    "logits = {alpha} * q @ k.transpose(-2, -1) + mask",
    "x = torch.softmax(logits, -1) @ v",
]
"""Attention by PyTorch's kernel, and in the product's own operations, equal bit for bit."""


def _uniform(slots: list[Slots]) -> Slots:
    """The slots inside a branch, which are the same in all blocks."""
    first = slots[0]
    assert all(
        (s.norm_inner, s.norm_qkv, s.unit_qk, s.qk_gain, s.hidden_gain, s.head_gain, s.spectral)
        == (
            first.norm_inner,
            first.norm_qkv,
            first.unit_qk,
            first.qk_gain,
            first.hidden_gain,
            first.head_gain,
            first.spectral,
        )
        for s in slots
    )
    return first


def sizes(c: RunConfig, vocabulary: int | None) -> str:
    """The constants that the classes read; without V if it is defined elsewhere."""
    positions = FAMILIES[c.family].positions(c.seq_len)
    numbers = {"T": positions, "D": c.width, "H": c.heads, "L": c.depth}
    words = "positions, width, heads, blocks"
    if "heads" in FAMILIES[c.family].lacks:
        is_recurrent = FAMILIES[c.family].is_recurrent
        numbers = {"T": c.seq_len} if is_recurrent else {}
        numbers |= {"D": c.width, "L": c.depth}
        words = "time steps, width, layers" if is_recurrent else "width, blocks"
    if vocabulary is not None:
        numbers, words = {"V": vocabulary, **numbers}, f"vocabulary, {words}"
    names = f"{', '.join(numbers)} = {', '.join(map(str, numbers.values()))}"
    if FAMILIES[c.family].is_recurrent:
        return f"{names}  # {words}"
    return SIZES.format(names=names, words=words, hidden=c.hidden)


def dropout(c: RunConfig) -> list[str]:
    """Source of dropout, if there is any; it follows every branch."""
    return [DROPOUT.format(seed=c.init_seed, p=c.dropout)] if c.dropout else []


def dropped(c: RunConfig, x: str) -> str:
    """`x` after dropout."""
    return f"dropout({x}, self.training)" if c.dropout else x


def _before_logits(c: RunConfig, s: Slots) -> tuple[list[str], list[str]]:
    """What happens to queries, keys and values before the logits: the lines that create it, and those that
    compute it."""
    init: list[str] = []
    body: list[str] = []
    if s.norm_qkv and c.norm != "none":
        init += [f"self.norm_{x} = {norm_call(c, 'D // H')}" for x in "qkv"]
        body.append("q, k, v = self.norm_q(q), self.norm_k(k), self.norm_v(v)")
    if s.unit_qk:
        body += [
            "# With the softmax's 1 / sqrt(D / H): sqrt(D / H) times their cosine.",
            "q, k = ((D // H) ** 0.5 * F.normalize(x, dim=-1) for x in (q, k))",
        ]
    if not s.qk_gain.is_one:
        line, factor = learned(s.qk_gain, "qk_gain", "D", s.qk_gain.value)
        init.append(line)
        body += [f"s = ({factor}).view(H, 1, D // H)", "q, k = s * q, s * k"]
    init += setting_lines(c, "queries init")
    body += setting_lines(c, "queries")
    if c.positions == "rope":
        init += [
            f"angle = {ANGLE.format(channels='D // H')}",
            'self.register_buffer("cos", angle.cos().float(), persistent=False)',
            'self.register_buffer("sin", angle.sin().float(), persistent=False)',
        ]
        body += [
            "cos, sin = self.cos[: q.shape[-2]], self.sin[: q.shape[-2]]",
            "def rotated(a, b): return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)",
            "q, k = rotated(*q.chunk(2, -1)), rotated(*k.chunk(2, -1))",
        ]
    return init, body


def attention_class(c: RunConfig, slots: list[Slots], exact: bool = False) -> str:
    """Causal self-attention with the scheme's norms inside.

    With `exact` it uses the operations of the product's model, in their order.
    """
    s = _uniform(slots)
    kind = LINEAR[s.spectral]
    more, before = _before_logits(c, s)
    more = [line.replace(LINEAR[0], kind) for line in more]
    init = [f"self.qkv = {kind}(D, 3 * D)", f"self.out = {kind}(D, D)", *more]
    init += setting_lines(c, "weights init")
    weights = setting_lines(c, "weights")
    after = [*weights, *setting_lines(c, "heads")]
    if s.head_gain:
        init.append("self.head_gain = nn.Parameter(torch.ones(H))")
        after.append("x = self.head_gain[:, None, None] * x")
    out = "x.transpose(1, 2).reshape(B, -1, D)"
    if s.norm_inner and c.norm != "none":
        init.append(f"self.norm_inner = {norm_call(c, 'D')}")
        out = f"self.norm_inner({out})"
    if s.first_value:
        init.append("self.first = None  # the values of the first block, or None in it")
        before.append(
            f"v = v if self.first is None else {1 - s.first_value} * v + {s.first_value} * self.first"
        )
        before.append("self.values = v")
    alpha = "(D // H) ** -0.5" if c.parametrisation == "standard" else "1.0 / (D // H)"
    alpha = "1.0" if c.qk_norm == "cosine" else alpha
    (mask,) = setting_lines(c, "mask")
    words = {
        "scale": f", scale={alpha}" * (alpha != "(D // H) ** -0.5"), "alpha": alpha,
        "is_causal": c.mask == "causal", "mask": mask,
    }  # fmt: skip
    kernel = SHOWN if weights else FUSED  # PyTorch's kernel gives no weights
    body = [
        "B = x.shape[0]",
        "q, k, v = self.qkv(x).view(B, -1, 3, H, D // H).permute(2, 0, 3, 1, 4)",
        *before,
        *(line.format(**words) for line in (WRITTEN_OUT if exact else kernel)),
        *after,
        f"return {dropped(c, f'self.out({out})')}",
    ]
    return module("Attention", "", init, "x", body)


def feed_forward_class(c: RunConfig, slots: list[Slots]) -> str:
    """The FFN with the scheme's norm inside, if it has one."""
    s = _uniform(slots)
    is_gated = c.activation in GATED
    wide = "2 * HIDDEN" if is_gated else "HIDDEN"
    kind = LINEAR[s.spectral]
    init = [f"self.up = {kind}(D, {wide})", f"self.down = {kind}(HIDDEN, D)"]
    up, body = "self.up(x)", []
    if not s.hidden_gain.is_one:
        line, factor = learned(s.hidden_gain, "hidden_gain", wide, s.hidden_gain.value)
        init.append(line)
        up = f"{factor} * {up}"
    if is_gated:
        body.append(
            f"gate, x = ({up}).chunk(2, -1)" if " " in up else f"gate, x = {up}.chunk(2, -1)"
        )
        up = "gate"
    inner = up
    for line in setting_lines(c, "hidden"):
        inner = line.format(inner)
    if s.norm_inner and c.norm != "none":
        init.append(f"self.norm_inner = {norm_call(c, 'HIDDEN')}")
        inner = f"self.norm_inner({inner})"
    body.append(f"return {dropped(c, f'self.down({inner})')}")
    return module("FeedForward", "", init, "x", body)


def learned(gain: Gain, name: str, channels: str, start: object) -> tuple[str, str]:
    """The line that creates a learned gain, and the factor that uses it (`model.gains.scaled`)."""
    shape = f"({channels},)" if gain.learned == "channel" else "()"
    factors = [f"self.{name}"]
    if gain.stored == "1/sqrt(d)":
        factors = [*([] if gain.value == 1.0 else [str(start)]), "D**0.5", *factors]
        start = "D**-0.5"
    if gain.unit == "sqrt(d)":
        factors.insert(0, "D**0.5")
    if gain.over != 1.0:
        factors.insert(0, repr(1.0 / gain.over))
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


# Norms: PyTorch's where it has one, else the source of the product's own module.

FOLDER = PACKAGE / "catalog" / "norms"


def norm_call(config: RunConfig, width: str, key: str = "") -> str:
    """The expression that makes a norm over `width` channels: the config's, or that of a key."""
    return NORMS[key or config.norm].call(width, config.steps)


def imports(key: str) -> str:
    """The import lines of a module that holds `norm_source`."""
    own = ["import torch", "import torch.nn.functional as F", "from torch import nn"]
    used = sorted(_norm(key)[1] - set(own))
    python = [line for line in used if "torch" not in line]
    return "\n".join([*python, *([""] if python else []), *own, *(x for x in used if "torch" in x)])


def norm_source(key: str) -> str:
    """Source of the classes that `norm_call` needs; empty for PyTorch's own."""
    return _norm(key)[0]


@lru_cache
def _norm(key: str) -> tuple[str, set[str]]:
    """Source of a norm's classes, and the lines that import what they use."""
    name = NORMS[key].code.split("(")[0]
    if name.startswith("nn."):
        return "", set()
    file = next(p.name for p in FOLDER.glob("*_torch.py") if f"class {name}(" in p.read_text())
    quotation = Quotation()
    return quotation.quote(f"catalog/norms/{file}", name), quotation.imports


# Weight constraints, at initialisation and after every optimizer step.

CONSTRAINTS: dict[str, tuple[list[str], list[str]]] = {
    "none": ([], []),
    "unit_vectors": (
        ["        self.constrain()"],
        [
            "    @torch.no_grad()",
            "    def constrain(self):",
            '        """Call this after every step of the optimizer."""',
            "        for name, p in self.named_parameters():",
            "            if p.ndim == 2:  # vectors in the stream's space get the length 1",
            '                axis = 0 if name.endswith(("out.weight", "down.weight")) else 1',
            "                p.div_(p.norm(dim=axis, keepdim=True))",
            "",
        ],
    ),
}
"""For each constraint (`catalog.constraints`): lines of the model's __init__, and its method."""
