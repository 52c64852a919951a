"""A whole model of a scheme as plain PyTorch to paste; a test executes it.

It has no wires, slots or records, only the parts that the scheme uses. Its parameters are ours under
shorter names (`our_name` translates), so it computes the same as the product's model.
"""

from __future__ import annotations

import re

from ..catalog import SCHEMES
from ..catalog.scheme import Scheme, Slots
from ..config import RunConfig
from .code_block import block_class, has_progress, reads_embedding
from .code_constraint import CONSTRAINTS
from .code_norms import imports, norm_call, norm_source
from .code_parts import (
    HEAD,
    attention_class,
    dropout,
    dropped,
    feed_forward_class,
    learned,
    sizes,
)
from .code_streams import block_and_model
from .patterns import patterns

INSIDE = ("head_gain", "qk_gain", "hidden_gain")
"""Gains on a branch itself, not on the path around it."""


def code(config: RunConfig, vocabulary: int) -> str:
    """Source of a module whose `Model()` maps tokens [B, T] to logits [B, T, V]."""
    c = config.placed()
    head = HEAD.format(
        label=SCHEMES[c.scheme].label, imports=imports(c.norm), sizes=sizes(c, vocabulary)
    )
    return "\n\n".join([head, *classes(c)]) + "\n"


def classes(config: RunConfig, exact: bool = False) -> list[str]:
    """Sources of the model's classes, `Model` last.

    With `exact`, attention uses the product's own operations: the same numbers bit for bit.
    """
    c, scheme = config.placed(), SCHEMES[config.scheme]
    groups = patterns(c.scheme, c.depth)
    slots = [s for group in groups for s in (group.attention, group.ffn)]
    names = ["Block"] if len(groups) == 1 else [f"Block{i + 1}" for i in range(len(groups))]
    parts = [
        *([f"\n{source}"] if (source := norm_source(c.norm)) else []),
        *dropout(c),
        attention_class(c, [group.attention for group in groups], exact),
        feed_forward_class(c, [group.ffn for group in groups]),
    ]
    if scheme.streams != "one":
        assert scheme.logit_gain.is_one, "a gain of the logits is written for one stream alone"
        assert scheme.constraint == "none", "a constraint is written for one stream alone"
        return [*parts, block_and_model(c, scheme.streams, scheme.final_norm)]
    parts += (
        block_class(c, scheme, group, name) for group, name in zip(groups, names, strict=True)
    )
    ends = [(group.last, name) for group, name in zip(groups, names, strict=True)]
    return [*parts, _model(c, ends, slots)]


def _model(c: RunConfig, blocks: list[tuple[int, str]], slots: list[Slots]) -> str:
    scheme, progress, embedding = SCHEMES[c.scheme], has_progress(slots), reads_embedding(slots)
    values = any(s.first_value for s in slots)
    choice = blocks[-1][1]
    for last, name in reversed(blocks[:-1]):
        choice = f"({name} if b <= {last} else {choice})"
    more = (["x0"] if embedding else []) + (["progress"] if progress else [])
    embed = norm_call(c.norm, "D") if scheme.embed_norm and c.norm != "none" else ""
    final = norm_call(c.norm, "D") if scheme.final_norm and c.norm != "none" else ""
    logits = f"self.head({'self.final_norm(x)' if final else 'x'})"
    init, logits = _logit_gain(scheme, logits)
    keep, method = CONSTRAINTS[scheme.constraint]
    lines = [
        "",
        "class Model(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.tokens = nn.Embedding(V, D)",
        "        self.positions = nn.Embedding(T, D)",
        *([f"        self.embed_norm = {embed}"] if embed else []),
        f"        self.blocks = nn.ModuleList({choice}(b) for b in range(1, L + 1))",
        *([f"        self.final_norm = {final}"] if final else []),
        "        self.head = nn.Linear(D, V, bias=False)",
        *init,
        *keep,
        "",
        *method,
        f"    def forward(self, tokens{', progress=1.0' if progress else ''}):",
        "        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]",
        *(["        x = self.embed_norm(x)"] if embed else []),
        *([f"        x = {dropped(c, 'x')}"] if c.dropout else []),
        *(["        x0 = x"] if embedding else []),
        *(["        first = None"] if values else []),
        "        for block in self.blocks:",
        *(["            block.attention.first = first"] if values else []),
        f"            x = block({', '.join(['x', *more])})",
        *(["            first = block.attention.values if first is None else first"] * values),
        f"        return {logits}",
    ]
    return "\n".join(lines)


def _logit_gain(scheme: Scheme, logits: str) -> tuple[list[str], str]:
    """The line that creates the gain of the logits, if there is one, and the scaled logits."""
    gain = scheme.logit_gain
    if gain.is_one:
        return [], logits
    line, factor = learned(gain, "logit_gain", "V", gain.value)
    return [f"        {line}"], f"{factor} * {logits}"


def our_name(name: str) -> str:
    """Name in the pasted model of a parameter of the product's model."""
    name = re.sub(r"\.(attention|ffn)\.branch\.", r".\1.", name)
    name = re.sub(r"\.(attention|ffn)\.((?:norm_(?:fork|in|out|skip|main|x|y)|\w+_gain|gain_\w+))\b",
                  _flat, name)  # fmt: skip
    name = re.sub(
        r"\.qk_norm\.(q|k)\.", lambda m: f".norm_{'query' if m[1] == 'q' else 'key'}.", name
    )
    name = re.sub(r"^streams\.", "", name)
    name = name.replace(".qk_norm.log_scale", ".log_scale")
    name = re.sub(r"\.shared\.(branch_gain|gate)\.weight$", r".\1", name)
    return re.sub(r"(_gain)\.weight$", r"\1", name)


def _flat(match: re.Match[str]) -> str:
    branch, part = match.groups()
    return f".{branch}.{part}" if part in INSIDE else f".{branch}_{part}"
