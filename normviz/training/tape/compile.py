"""A model, compiled to the operations of its forward pass.

It walks the model's own modules and reads their slots, as their `forward` does. Nothing of a placement
is written here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ...catalog import FAMILIES, SCHEMES, STREAMS
from ...catalog.choices import GATED
from ...catalog.norms.layer_torch import GroupNorm, LayerNorm1p
from ...catalog.norms.length_torch import ScaleNorm, UnitLength
from ...catalog.norms.pointwise_torch import BHyT, Derf, DyT
from ...catalog.norms.rms_torch import CRMSNorm, PartialRMSNorm, PreAffineRMSNorm, RMSNorm1p
from ...config import SETTINGS, RunConfig
from ...model import qk_norm
from ...model.branches import Attention, Dropout, FeedForward, SpectralLinear
from ...model.gains import Multiplier, OutputGate, Shift
from ...model.transformer import Block, Transformer
from ...model.wire import GATE_SCALE, Wire
from ..engine import Unsupported
from .operations import (
    NOTHING,
    Activation,
    Divisor,
    Flag,
    Function,
    Kind,
    Mask,
    Number,
    Operation,
    Place,
    Positions,
    Program,
)

UNIT_EPS = 1e-12
"""The eps of F.normalize."""


def compiled(config: RunConfig, model: Transformer) -> Program:
    """The program of a model. Raises Unsupported."""
    config = config.placed()
    if not FAMILIES[config.family].tape:
        raise Unsupported(f"the tape trains decoders alone, and the family is {config.family}")
    for name, setting in SETTINGS.items():
        if setting.tape and getattr(config, name) not in setting.tape:
            values = " or ".join(f"{name}={value or 'off'}" for value in setting.tape)
            raise Unsupported(f"the tape trains with {values} alone")
    streams = STREAMS[SCHEMES[config.scheme].streams]
    if streams.wire and not streams.beside:
        raise Unsupported(
            f"the tape has no placement that does not add branches to the stream, such as {config.scheme}"
        )
    if streams.key != "one":
        raise Unsupported(
            f"the tape has no placement with several streams, such as {config.scheme}"
        )
    return Compiler(config, model).program


class Compiler:
    """Adds the operations of each part of a model to `program`."""

    def __init__(self, config: RunConfig, model: Transformer) -> None:
        self.config = config
        self.program = Program()
        self.first_values: Place | None = None
        self.model(model)

    def model(self, m: Transformer) -> None:
        """The operations of a whole model, from tokens to the loss."""
        c, rows = self.config, self.config.batch * self.config.seq_len
        vocabulary = m.tokens.num_embeddings
        learned = None if m.positions is None else m.positions.weight
        mode = (
            Positions.LEARNED if m.positions else (Positions.ABSENT, Positions.FIXED)[m.has_waves]
        )
        embed = Operation(
            Kind.EMBED, None, Place(rows, c.width), rows, c.width, k=vocabulary, mode=mode,
            weight=m.tokens.weight, bias=learned, saved=c.seq_len * c.width * m.has_waves,
        )  # fmt: skip
        x = self.program.add(embed)
        if m.has_waves:
            self.program.tables.append((embed, m.waves.numpy()))
        x = embedding = self.show(self.dropped(self.norm(x, m.embed_norm), m.dropout))
        for block in m.blocks:
            assert isinstance(block, Block)
            x = self.show(self.block(block, x, embedding))
        logits = self.gain(self.linear(self.norm(x, m.final_norm), m.head), m.logit_gain)
        cap = m.softcap or 1.0
        if m.logit_scale / cap != 1.0:
            logits = self.scaled(logits, None, logits.width, c0=m.logit_scale / cap)
        if m.softcap is not None:
            logits = self.scaled(
                self.activation(logits, Activation.TANH), None, logits.width, c0=cap
            )
        size = rows * vocabulary
        loss = Operation(Kind.LOSS, logits, None, rows, vocabulary, saved=size, c0=m.zloss)
        self.program.add(loss)

    def show(self, x: Place) -> Place:
        """The stream after the embedding or a block: probes read it and its gradient."""
        x.pinned = True
        self.program.stream.append(x)
        return x

    def block(self, block: Block, x: Place, embedding: Place) -> Place:
        """The output of a block."""
        entered, normed = x, None
        for wire in (block.attention, block.ffn):
            if type(wire) is not Wire:
                raise Unsupported(f"the tape has no sublayer of the kind {type(wire).__name__}")
            x, normed = self.sublayer(wire, x, entered, embedding, normed)
        return x

    def sublayer(
        self, w: Wire, x: Place, entered: Place, embedding: Place, normed: Place | None
    ) -> tuple[Place, Place]:
        """The output of a sublayer and of its first norm; `entered` is the input of the block."""
        s = w.slots
        u = self.gain(x, w.stream_gain)
        if w.adds_embedding:
            u = self.sum(u, 1.0, *self.factored(embedding, w.embed_gain))
        u = self.norm(u, w.norm_fork)
        if normed is None or not s.shares_norm:
            source = entered if s.branch_reads == "block" else u
            normed = self.gain(self.norm(source, w.norm_in), w.input_gain)
        f = self.norm(self.dropped(self.branch(w.branch, normed), w.dropout), w.norm_out)
        (skip, a), (f, g) = self.mixed(w, u, f)
        if w.adds_block:
            skip, a = self.sum(skip, a, *self.factored(entered, w.block_gain)), 1.0
        self.program.skip.append((skip, a))
        self.program.branch.append((f, g))
        self.program.reads.append(normed)
        y = self.gain(self.norm(self.sum(skip, a, f, g), w.norm_main), w.main_gain)
        if isinstance(w.gate, OutputGate):
            y = self.scaled(y, w.gate.weight, y.width, mode=Function.GATE)
        return y, normed

    def mixed(
        self, w: Wire, u: Place, f: Place
    ) -> tuple[tuple[Place, Number], tuple[Place, Number]]:
        """Skip path and branch with their norms and gains, each over a constant factor."""
        u = self.norm(u, w.norm_skip)
        if w.slots.mix == "sum":
            u, f = self.shifted(u, w.skip_shift), self.shifted(f, w.branch_shift)
            return self.factored(u, w.skip_gain), self.factored(f, w.branch_gain)
        gain = w.branch_gain
        if not gain.gain.learned or gain.gain.ramp:
            raise Unsupported("the tape mixes skip path and branch by learned gains only")
        span = 1 if gain.weight.ndim else u.width
        if w.slots.mix == "lerp":
            (of_skip, of_branch), factor = (Function.REST, Function.SIZE), gain.factor
        else:
            (of_skip, of_branch), factor = (
                (Function.ROOT, Function.SIGMOID),
                gain.factor / GATE_SCALE,
            )
        skip = self.scaled(u, gain.weight, span, mode=of_skip, c0=factor)
        return (skip, 1.0), (self.scaled(f, gain.weight, span, mode=of_branch, c0=factor), 1.0)

    def branch(self, m: nn.Module, x: Place) -> Place:
        """The output of attention or of the FFN."""
        if isinstance(m, Attention):
            return self.attention(m, x)
        assert isinstance(m, FeedForward)
        hidden = self.gain(self.linear(x, m.up), m.hidden_gain)
        hidden = self.activated(hidden)
        return self.linear(self.norm(hidden, m.norm_inner), m.down)

    def activated(self, x: Place) -> Place:
        """The hidden layer of an FFN after its activation, or its values times the activation of its gate."""
        name = self.config.activation
        if name not in GATED:
            return self.activation(x, Activation[name.upper()])
        half, mode = x.width // 2, {"swiglu": Activation.SILU, "geglu": Activation.GELU}[name]
        gate, values = x.part(0, half), x.part(half, half)
        return self.program.add(
            Operation(Kind.GATED, gate, Place(x.rows, half), x.rows, half, mode=mode, b=values)
        )

    def rotated(self, m: Attention, x: Place) -> Place:
        """Queries or keys, rotated by their positions."""
        head = x.width // m.heads
        turn = Operation(
            Kind.ROTATE, x, Place(x.rows, x.width), x.rows, head, m.heads, head // 2,
            saved=self.config.seq_len * head,
        )  # fmt: skip
        self.program.tables.append((turn, m.turn.transpose(0, 1).flatten(1).numpy()))
        return self.program.add(turn)

    def attention(self, m: Attention, x: Place) -> Place:
        """The output of attention."""
        c, heads = self.config, m.heads
        width, head = c.width, c.width // m.heads
        qkv = self.linear(x, m.qkv)
        q, k, v = (qkv.part(i * width, width) for i in range(3))
        q, k = self.norm(q, m.norm_q, heads), self.norm(k, m.norm_k, heads)
        v = self.norm(v, m.norm_v, heads)
        if m.sizes_qk:
            q, k = (self.sized(m, x) for x in (q, k))
        q, k = self.qk_norm(m.qk_norm, q, k)
        if m.rotates:
            q, k = self.rotated(m, q), self.rotated(m, k)
        if isinstance(m.v_norm, qk_norm.VNorm):
            v = self.normed(v, Divisor.RMS, qk_norm.EPS, groups=heads)
        v = self.mixed_values(m, v)
        mixed = self.program.add(
            Operation(
                Kind.ATTENTION, q, Place(x.rows, width), x.rows, width, b=k, c=v,
                mode=Mask[c.mask.upper()], c0=m.qk_norm.alpha, saved=c.batch * heads * c.seq_len**2,
            )
        )  # fmt: skip
        if m.head_gain is not None:
            mixed = self.scaled(mixed, m.head_gain, head)
        return self.linear(self.norm(mixed, m.norm_inner), m.out)

    def sized(self, m: Attention, x: Place) -> Place:
        """Queries or keys with the length and the gain of the scheme."""
        root = 1.0
        if m.unit_qk:
            x = self.normed(x, Divisor.UNIT, UNIT_EPS, groups=m.heads)
            root = (x.width / m.heads) ** 0.5
        return self.gain(x, m.qk_gain, root)

    def qk_norm(self, m: qk_norm.QKNorm, q: Place, k: Place) -> tuple[Place, Place]:
        """Queries and keys after their norm."""
        match m:
            case qk_norm.Plain():
                q, k = (self.normed(x, Divisor.RMS, qk_norm.EPS, groups=m.heads) for x in (q, k))
            case qk_norm.PerHead():
                q, k = self.norm(q, m.q, m.heads), self.norm(k, m.k, m.heads)
            case qk_norm.PerHeadLayerNorm():
                q, k = (
                    self.normed(
                        x,
                        Divisor.LAYER,
                        qk_norm.LAYER_EPS,
                        scale,
                        None,
                        m.heads,
                        Flag.PER_GROUP,
                        m.heads,
                    )
                    for x, scale in ((q, m.scale_q), (k, m.scale_k))
                )
            case qk_norm.FullWidth():
                q, k = self.norm(q, m.q), self.norm(k, m.k)
            case qk_norm.Cosine():
                q, k = (self.normed(x, Divisor.UNIT, UNIT_EPS, groups=m.heads) for x in (q, k))
                q = self.scaled(q, m.log_scale, m.head, mode=Function.EXP, c1=qk_norm.LARGEST)
            case _ if type(m) is not qk_norm.QKNorm:
                raise Unsupported(f"the tape has no QK-norm of the kind {type(m).__name__}")
            case _:
                pass
        return q, k

    def mixed_values(self, m: Attention, v: Place) -> Place:
        """Values, mixed with the first block's where the scheme does so."""
        if m.first_value == 0.0:
            return v
        if not m.first:
            self.first_values = v
            return v
        assert self.first_values is not None
        return self.sum(v, 1.0 - m.first_value, self.first_values, m.first_value)

    # Norms.

    def norm(self, x: Place, m: nn.Module, groups: int = 1) -> Place:
        """A norm over each of the `groups` of neighbouring channels."""
        if isinstance(m, nn.Identity):
            return x
        if isinstance(m, nn.Sequential):  # a norm that learns nothing, and its constant gain
            inner, gain = m
            assert isinstance(gain, Multiplier)
            return self.gain(self.norm(x, inner, groups), gain)
        if type(m) not in NORMS:
            raise Unsupported(f"the tape has no norm of the kind {type(m).__name__}")
        return NORMS[type(m)](self, x, m, groups)

    def normed(
        self,
        x: Place,
        norm: Divisor,
        eps: float,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        groups: int = 1,
        flags: Flag = NOTHING,
        k: int = 0,
    ) -> Place:
        """x over a norm of each group, times a weight, plus a bias."""
        out = Place(x.rows, x.width)
        return self.program.add(
            Operation(
                Kind.NORM, x, out, x.rows, x.width // groups, groups, k, norm, weight=weight,
                bias=bias, flags=flags, saved=2 * x.rows * groups, c0=eps,
            )
        )  # fmt: skip

    def group_norm(self, x: Place, m: GroupNorm, groups: int) -> Place:
        """GroupNorm: groups with weights of their own."""
        own = m.num_groups
        return self.normed(
            x, Divisor.LAYER, m.eps, m.weight, m.bias, own * groups, Flag.PER_GROUP, own
        )

    def scale_norm(self, x: Place, m: ScaleNorm, groups: int) -> Place:
        """ScaleNorm: unit length, then a learned gain."""
        x = self.normed(x, Divisor.UNIT, m.eps, groups=groups)
        return self.scaled(x, m.scale, x.width // groups, groups=groups)

    def dyt(self, x: Place, m: DyT, groups: int) -> Place:
        """DyT: a gain, tanh, and a gain with a bias."""
        x = self.scaled(x, m.alpha, x.width // groups, groups=groups)
        x = self.activation(x, Activation.TANH)
        return self.scaled(x, m.weight, 1, m.bias, groups=groups)

    def derf(self, x: Place, m: Derf, groups: int) -> Place:
        """Derf: a gain with a bias, erf, and another one."""
        x = self.scaled(x, m.alpha, x.width // groups, m.shift, groups=groups)
        x = self.activation(x, Activation.ERF)
        return self.scaled(x, m.weight, 1, m.bias, groups=groups)

    def bhyt(self, x: Place, m: BHyT, groups: int) -> Place:
        """BHyT: RMS, a constant gain, tanh, and a learned gain."""
        x = self.normed(x, Divisor.RMS, m.eps, groups=groups)
        x = self.activation(self.scaled(x, None, x.width, c0=m.SLOPE), Activation.TANH)
        return self.scaled(x, m.weight, 1, groups=groups)

    # Linear maps, activations, gains and sums.

    def linear(self, x: Place, m: nn.Linear) -> Place:
        """A linear map."""
        if isinstance(m, SpectralLinear):
            raise Unsupported("the tape has no matrices divided by their largest singular value")
        out = Place(x.rows, m.out_features)
        return self.program.add(
            Operation(
                Kind.LINEAR, x, out, x.rows, m.out_features, k=m.in_features, weight=m.weight,
                bias=m.bias,
            )
        )  # fmt: skip

    def activation(self, x: Place, which: Activation) -> Place:
        """A function of each number."""
        assert x.whole is None
        out = Place(x.rows, x.width)
        return self.program.add(
            Operation(Kind.ACTIVATION, x, out, x.rows, x.width, mode=which),
        )

    def dropped(self, x: Place, m: Dropout) -> Place:
        """x after dropout."""
        if m.p == 0.0:
            return x
        assert x.whole is None
        size, out = x.rows * x.width, Place(x.rows, x.width)
        operation = Operation(Kind.MASK, x, out, x.rows, x.width, saved=size)
        self.program.masks.append((operation, m))
        return self.program.add(operation)

    def scaled(
        self,
        x: Place,
        weight: Tensor | None,
        span: int,
        bias: Tensor | None = None,
        *,
        mode: Function = Function.VALUE,
        groups: int = 1,
        c0: Number = 1.0,
        c1: float = 0.0,
    ) -> Place:
        """x times the function `mode` of c0 weight (of c0 without a weight), plus bias. `span`
        neighbouring channels share an entry of both, and the `groups` share all entries."""
        out = Place(x.rows, x.width)
        return self.program.add(
            Operation(
                Kind.GAIN, x, out, x.rows, x.width // groups, groups, span, mode, weight=weight,
                bias=bias, c0=c0, c1=c1,
            )
        )  # fmt: skip

    def gain(self, x: Place, m: Multiplier, times: float = 1.0) -> Place:
        """x times a gain, and a number besides."""
        if not m.gain.learned:
            factor = constant(m, times)
            return x if factor == 1.0 else self.scaled(x, None, x.width, c0=factor)
        if m.gain.ramp:
            raise Unsupported("the tape has no learned gain that rises during the first steps")
        span = 1 if m.weight.ndim else x.width
        return self.scaled(x, m.weight, span, c0=m.factor * times)

    def shifted(self, x: Place, m: nn.Module) -> Place:
        """x plus a learned number a channel, where there is one."""
        return self.scaled(x, None, 1, m.weight) if isinstance(m, Shift) else x

    def factored(self, x: Place, m: Multiplier) -> tuple[Place, Number]:
        """x times a gain, as a tensor over a constant factor."""
        return (self.gain(x, m), 1.0) if m.gain.learned else (x, constant(m))

    def sum(self, a: Place, c0: Number, b: Place, c1: Number) -> Place:
        """c0 a + c1 b."""
        out = Place(a.rows, a.width)
        return self.program.add(Operation(Kind.MIX, a, out, a.rows, a.width, b=b, c0=c0, c1=c1))


def constant(m: Multiplier, times: float = 1.0) -> Number:
    """A gain that is not learned, times a number: a number, or a function of the present step where it
    rises."""

    def present() -> float:
        amount = m.amount()
        assert isinstance(amount, float)
        return amount * times

    return present if m.gain.ramp else present()


NORMS: dict[type[nn.Module], Callable[[Compiler, Place, Any, int], Place]] = {
    nn.LayerNorm: lambda c, x, m, g: c.normed(x, Divisor.LAYER, m.eps, m.weight, m.bias, g),
    nn.RMSNorm: lambda c, x, m, g: c.normed(x, Divisor.RMS, m.eps, m.weight, None, g),
    RMSNorm1p: lambda c, x, m, g: c.normed(x, Divisor.RMS, m.eps, m.offset, None, g, Flag.ONE_PLUS),
    LayerNorm1p: lambda c, x, m, g: c.normed(
        x, Divisor.LAYER, m.eps, m.offset, m.bias, g, Flag.ONE_PLUS
    ),
    CRMSNorm: lambda c, x, m, g: c.normed(x, Divisor.COMPLETED, m.eps, groups=g),
    PartialRMSNorm: lambda c, x, m, g: c.normed(
        x, Divisor.PARTIAL, m.eps, m.weight, groups=g, k=m.part
    ),
    PreAffineRMSNorm: lambda c, x, m, g: c.normed(
        c.scaled(x, m.before, 1, groups=g), Divisor.RMS, m.eps, m.weight, groups=g
    ),
    UnitLength: lambda c, x, m, g: c.normed(x, Divisor.UNIT, m.eps, groups=g),
    GroupNorm: Compiler.group_norm,
    ScaleNorm: Compiler.scale_norm,
    DyT: Compiler.dyt,
    Derf: Compiler.derf,
    BHyT: Compiler.bhyt,
}
"""How each norm is compiled; a subclass of one is another norm."""
