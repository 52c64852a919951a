"""The block of a pasted model: two sublayers with the scheme's wiring, written out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..catalog import NORMS
from ..catalog.scheme import Branch, Gain, Scheme, Slots
from ..config import RunConfig
from .code_norms import norm_call
from .code_parts import learned, module
from .patterns import Blocks


def reads_embedding(slots: Iterable[Slots]) -> bool:
    """Whether a sublayer adds the embedding to its input."""
    return any(not s.embed_gain.is_zero for s in slots)


def has_progress(slots: Iterable[Slots]) -> bool:
    """Whether a gain depends on the progress of training."""
    return any(s.branch_gain.ramp > 0 for s in slots)


@dataclass
class Lines:
    """The lines of a block's two methods, as they are collected."""

    config: RunConfig
    scheme: Scheme
    last: int
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
        self.init.append(f"self.{name} = {norm_call(self.config.norm, 'D')}")
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
        found = next((c.code for c in self.scheme.constants if c.gain == slot), "")
        k = "2 * b - 1" if branch == "attention" else "2 * b"
        found = found.replace("k", f"({k})") if found else repr(value)
        return f"({found})" if " " in found or "**" in found else found

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
            self.init.append(
                f"self.{branch}_ramp = {gain.ramp * self.config.depth / self.last:g} * b / L"
            )
            return f"min(1, progress / self.{branch}_ramp) * "
        return f"{self.constant(slot, gain.value, branch)} * "

    def constant(self, slot: str, value: float, branch: Branch) -> str:
        """A constant: stored as an attribute if it depends on the block, else written in place."""
        found = self.number(slot, value, branch)
        if "b" not in found:
            return found
        self.init.append(f"self.{branch}_{slot} = {found.removeprefix('(').removesuffix(')')}")
        return f"self.{branch}_{slot}"


def block_class(config: RunConfig, scheme: Scheme, group: Blocks, name: str) -> str:
    """Source of the block class for a group of blocks with the same wiring."""
    lines = Lines(config, scheme, last=group.last)
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


def _sublayer(lines: Lines, s: Slots, branch: Branch) -> None:
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
    lines.body.append(f"x = {total}")
    if s.gate:
        line = "self.gate = nn.Parameter(torch.zeros(()))"
        if line not in lines.init:
            lines.init.append(line)
        lines.body.append("x = x - F.silu(self.gate) * x.detach()")


def _weighted(lines: Lines, s: Slots, branch: Branch, f: str) -> tuple[str, str]:
    """Skip path and branch with their gains."""
    skip = lines.norm(s.norm_skip, branch, "skip", "x")
    if s.mix == "sum":
        a = lines.gain(s.skip_gain, branch, "skip_gain") if not s.skip_gain.is_zero else ""
        return a + skip, lines.gain(s.branch_gain, branch, "branch_gain") + f
    weight = lines.gain(s.branch_gain, branch, "branch_gain").removesuffix(" * ")
    if s.mix == "lerp":
        lines.body.append(f"s = ({weight}).abs()" if " " in weight else f"s = {weight}.abs()")
        return f"(1 - s) * {skip}", f"s * {f}"
    lines.body.append(f"s = torch.sigmoid({weight} / 0.3)")
    return f"(1 - s**2).sqrt() * {skip}", f"s * {f}"
