"""The kinds of state that pass from sublayer to sublayer, a record each; `Scheme.streams` is a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .registry import Registry


@dataclass(frozen=True)
class Code:
    """What a kind of state needs in pasted code: names of norms and lines of one sublayer ({F} is its
    name), what block and model pass on, and the model's own lines."""

    norms: tuple[str, ...]
    sublayer: str
    state: str
    enter: str
    leave: str
    init: str = ""
    model_init: str = ""
    model_norms: tuple[str, ...] = ()
    after_block: str = ""


class Size(NamedTuple):
    """Stream width, number of blocks, and `norm`, the number of learned parameters of one norm."""

    width: int
    depth: int
    norm: int


Piece = tuple[str, int]
"""Plain words for a learned parameter, and how many numbers it holds."""


@dataclass(frozen=True)
class Streams:
    """A kind of state.

    sentence what the state is; stands below the signal walk where the pictures draw more than one line
    state    its class in `model/streams/`, with `enter`, `show` and `leave` (see `model.streams`)
    wire     the class of its sublayers, there too; None for that of one stream (`model.wire`)
    code     the same in pasted code; None where the code of one stream is right
    copies   streams side by side; `earlier` is how many lines the pictures draw for earlier values
    mixes    a sublayer mixes the state, and does not only add to it
    drawn    words beside the diagram
    matrices  names of the maps from D to D channels that each sublayer draws besides those of its branch
    learns   what it learns besides the norms of the scheme's slots, one piece for each parameter
    """

    key: str
    label: str
    sentence: str
    state: str
    wire: str | None = None
    code: Code | None = None
    copies: int = 1
    earlier: int = 0
    mixes: bool = False
    drawn: str | None = None
    matrices: tuple[str, ...] = ()
    learns: Callable[[Size], Sequence[Piece]] = lambda _: ()

    @property
    def beside(self) -> int:
        """Lines that the pictures draw beside the first one."""
        return self.copies - 1 + self.earlier


def constrained(logits: int, mixed: str, init: str = "") -> Code:
    """The code of four copies whose mixing matrix is made of so many logits by the lines `mixed`."""
    count, sizes = 8 + logits, f"(4, 4, {logits})" if logits else "(4, 4)"
    start = f"torch.cat((home, home, start{logits}))" if logits else "torch.cat((home, home))"
    first = {24: "[0.0] + [-8.0] * 23", 4: "[0.0, -8.0] * 2"}.get(logits, "")
    names = "pre, post, res" if logits else "pre, post"
    return Code(
        norms=("in",),
        init=(f"start{logits} = torch.tensor({first})\n" if logits else "")
        + init
        + f"""for name, k in (("attention", 2 * b - 1), ("ffn", 2 * b)):
    home = 2.0 * F.one_hot(torch.tensor((k - 1) % 4), 4) - 1.0
    setattr(self, name + "_gain_of_state", nn.Parameter(torch.zeros(4 * D, {count})))
    setattr(self, name + "_gain_start", nn.Parameter({start}))
    setattr(self, name + "_gain_scale", nn.Parameter(torch.full(({2 + bool(logits)},), 0.01)))""",
        sublayer=f"""z = F.rms_norm(h.flatten(-2), (4 * D,), eps=1e-6) @ self.{{F}}_gain_of_state
scale = self.{{F}}_gain_scale.repeat_interleave(torch.tensor({sizes}, device=z.device))
{names} = (scale * z + self.{{F}}_gain_start).split({sizes}, -1)
x = (pre.sigmoid()[..., None] * h).sum(-2)
f = self.{{F}}(self.{{F}}_norm_in(x))
{mixed}h = h + (2 * post.sigmoid())[..., None] * f[..., None, :]""",
        state="h",
        enter="h = x[..., None, :].repeat(1, 1, 4, 1)  # [B, T, 4, D]",
        leave="x = h.mean(-2)",
    )


def of_copies(logits: int) -> Callable[[Size], Sequence[Piece]]:
    """What the mixtures of four copies learn, with so many logits of the mixing matrix."""
    scales = 2 + bool(logits)
    return lambda m: (
        [("mixtures of copies", (4 * m.width + 1) * (8 + logits) + scales)] * 2 * m.depth
    )


GATES = tuple(f"gate_{part}_{of}" for part in ("reset", "update", "new") for of in "yx")
FOUR = "Four mixed copies of the stream; widths are of all together."

STREAMS: Registry[Streams] = Registry(
    "kind of stream",
    (
        Streams(
            key="one",
            label="One residual stream",
            sentence="One residual stream, to which each sublayer adds.",
            state="OneStream",
        ),
        Streams(
            key="dual",
            label="Two streams of ResiDual",
            state="Dual",
            wire="DualWire",
            copies=2,
            drawn="two streams: see the formula",
            sentence="Two streams side by side; widths are of both together.",
            learns=lambda m: [("norms at the end", m.norm)],
            code=Code(
                norms=("main",),
                sublayer="""f = self.{F}(x)
x, r = self.{F}_norm_main(x + f), r + f""",
                state="x, r",
                enter="x, r = x, x",
                leave="x = x + self.norm_dual(r)",
                model_norms=("norm_dual",),
            ),
        ),
        Streams(
            key="siamese",
            label="Two streams of SiameseNorm",
            state="Siamese",
            wire="SiameseWire",
            copies=2,
            drawn="two streams: see the formula",
            sentence="Two streams side by side; widths are of both together.",
            learns=lambda m: (
                [("norms of the two streams", 2 * m.norm)] * 2 * m.depth
                + [("norms at the end", m.norm)] * 2
            ),
            code=Code(
                norms=("in", "x", "y"),
                sublayer="""f = self.{F}(self.{F}_norm_in(x + self.{F}_norm_y(y)))
x, y = self.{F}_norm_x(x + f / (2 * self.b) ** 0.5), y + f""",
                state="x, y",
                enter="x, y = x, x",
                leave="x = self.norm_x(x) + self.norm_y(y)",
                init="self.b = b",
                model_norms=("norm_x", "norm_y"),
            ),
        ),
        Streams(
            key="hyper",
            label="Copies mixed by hyper-connections",
            state="Hyper",
            wire="HyperWire",
            copies=4,
            mixes=True,
            drawn="four mixed copies",
            sentence=FOUR,
            learns=lambda m: (
                [("mixtures of copies", 4 * 5 + 4 + m.width * 5 + m.width + 2)] * 2 * m.depth
            ),
            code=Code(
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
        ),
        Streams(
            key="manifold",
            label="Copies mixed by mHC",
            state="Manifold",
            wire="ManifoldWire",
            copies=4,
            mixes=True,
            drawn="four mixed copies",
            sentence=FOUR,
            learns=of_copies(16),
            code=Code(
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
        ),
        Streams(
            key="permuted",
            label="Copies mixed by an average of permutations",
            state="Manifold",
            wire="PermutedWire",
            copies=4,
            mixes=True,
            drawn="four mixed copies",
            sentence=FOUR,
            learns=of_copies(24),
            code=constrained(
                24,
                """matrix = torch.einsum("btr,rij->btij", res.softmax(-1), self.permutations.to(res))
h = matrix.transpose(-1, -2) @ h
""",
                """every = torch.cartesian_prod(*[torch.arange(4)] * 4).tolist()
every = [p for p in every if len({*p}) == 4]  # all orders of four copies
self.permutations = torch.eye(4)[torch.tensor(every)]
""",
            ),
        ),
        Streams(
            key="kronecker",
            label="Copies mixed by a Kronecker product",
            state="Manifold",
            wire="KroneckerWire",
            copies=4,
            mixes=True,
            drawn="four mixed copies",
            sentence=FOUR,
            learns=of_copies(4),
            code=constrained(
                4,
                """weights = res.unflatten(-1, (2, 2)).softmax(-1)
pair = torch.stack((weights, weights.flip(-1)), -2)  # two matrices p I + (1 - p) swap
matrix = torch.einsum("btij,btkl->btikjl", pair[:, :, 0], pair[:, :, 1])
h = matrix.flatten(2, 3).flatten(3).transpose(-1, -2) @ h
""",
            ),
        ),
        Streams(
            key="unmixed",
            label="Copies that are not mixed",
            state="Manifold",
            wire="UnmixedWire",
            copies=4,
            mixes=True,
            drawn="four copies",
            sentence="Four copies of the stream; widths are of all together.",
            learns=of_copies(0),
            code=constrained(0, ""),
        ),
        Streams(
            key="geodesic",
            label="A stream that turns on its sphere",
            state="OneStream",
            wire="GeodesicWire",
            mixes=True,
            drawn="turned, not added",
            sentence="One residual stream of constant length; a sublayer turns it and does not add to it.",
            learns=lambda m: [("gains and shifts of angles", 2)] * 2 * m.depth,
            code=Code(
                norms=(),
                init="""self.b = b
for name in ("attention", "ffn"):
    setattr(self, name + "_gain_angle", nn.Parameter(torch.ones(())))
    setattr(self, name + "_gain_shift", nn.Parameter(torch.zeros(())))""",
                sublayer="""f = self.{F}(x)
size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
v = f - (x * f).sum(-1, keepdim=True) / (size + 1e-8) ** 2 * x
length = torch.linalg.vector_norm(v, dim=-1, keepdim=True) + 1e-8
angle = (length / (size + 1e-8)).clamp(max=torch.pi / 4)
angle = ((self.{F}_gain_angle * angle + self.{F}_gain_shift) / self.b).clamp(max=torch.pi / 4)
x = x * angle.cos() + v / length * size * angle.sin()""",
                state="x",
                enter="",
                leave="",
            ),
        ),
        Streams(
            key="delta",
            label="A stream whose part along one direction is replaced",
            state="OneStream",
            wire="DeltaWire",
            mixes=True,
            drawn="one direction replaced",
            sentence="One residual stream; a sublayer replaces its part along one direction.",
            learns=lambda m: [("steps and values", 2 * (m.width + 1))] * 2 * m.depth,
            code=Code(
                norms=("in",),
                init="""for name in ("attention", "ffn"):
    for part in ("step", "value"):
        setattr(self, f"{name}_gain_{part}", nn.Parameter(torch.zeros(D)))
        setattr(self, f"{name}_gain_{part}_start", nn.Parameter(torch.zeros(())))""",
                sublayer="""z = self.{F}_norm_in(x)
k = F.rms_norm(self.{F}(z), (D,), eps=1e-5**2 / D)
step = 2 * torch.sigmoid(z @ self.{F}_gain_step + self.{F}_gain_step_start)
value = 4 * torch.sigmoid(x @ self.{F}_gain_value + self.{F}_gain_value_start)
along = (k * x).sum(-1) / D**0.5
x = x + (step * (value - along) / D**0.5)[..., None] * k""",
                state="x",
                enter="",
                leave="",
            ),
        ),
        Streams(
            key="gated",
            label="A stream that a gate updates",
            state="OneStream",
            wire="GatedWire",
            mixes=True,
            drawn="gated, not added",
            sentence="One residual stream; a gate of stream and branch decides how much a sublayer replaces.",
            matrices=GATES,
            learns=lambda m: [("gates", (len(GATES) * m.width + 1) * m.width)] * 2 * m.depth,
            code=Code(
                norms=("in",),
                init="""for name in ("attention", "ffn"):
    for part in ("reset", "update", "new"):
        setattr(self, f"{name}_gate_{part}_y", nn.Linear(D, D, bias=False))
        setattr(self, f"{name}_gate_{part}_x", nn.Linear(D, D, bias=False))
    setattr(self, name + "_gain_bias", nn.Parameter(torch.full((D,), 2.0)))""",
                sublayer="""y = F.relu(self.{F}(self.{F}_norm_in(x)))
r = torch.sigmoid(self.{F}_gate_reset_y(y) + self.{F}_gate_reset_x(x))
z = self.{F}_gate_update_y(y) + self.{F}_gate_update_x(x) - self.{F}_gain_bias
z = torch.sigmoid(z)
h = torch.tanh(self.{F}_gate_new_y(y) + self.{F}_gate_new_x(r * x))
x = (1 - z) * x + z * h""",
                state="x",
                enter="",
                leave="",
            ),
        ),
        Streams(
            key="delta_attention",
            label="A stream, and attention over all earlier branch outputs",
            state="AttentionOverDepth",
            wire="DeltaDepthWire",
            earlier=2,
            drawn="and all earlier outputs",
            sentence="Dotted: earlier outputs; each branch reads the stream and an average of them.",
            learns=lambda m: [("queries over depth", m.width)] * (2 * m.depth - 1),
            code=Code(
                norms=("in",),
                init="""self.ffn_query_gain = nn.Parameter(torch.zeros(D))
if b > 1:
    self.attention_query_gain = nn.Parameter(torch.zeros(D))""",
                sublayer="""h = x
if len(values) > 1:  # all but the first sublayer
    stacked = torch.stack(values)  # [i, B, T, D]
    keys = F.rms_norm(stacked, (D,), eps=1e-6)
    h = x + ((keys @ self.{F}_query_gain).softmax(0)[..., None] * stacked).sum(0)
f = self.{F}(self.{F}_norm_in(h))
values.append(f)
x = x + f""",
                state="x, values",
                enter="values = [x]",
                leave="",
            ),
        ),
        Streams(
            key="dense",
            label="Average over the outputs of all earlier blocks",
            state="AverageOverDepth",
            earlier=2,
            mixes=True,
            drawn="and all earlier outputs",
            sentence="Dotted: earlier outputs, which are mixed in again.",
            learns=lambda m: [("averages over depth", b + 1) for b in range(1, m.depth + 1)],
            code=Code(
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
        ),
        Streams(
            key="attention",
            label="Attention over all earlier branch outputs",
            state="AttentionOverDepth",
            wire="DepthWire",
            earlier=2,
            mixes=True,
            drawn="and all earlier outputs",
            sentence="Dotted: earlier outputs; each branch reads an average of them.",
            learns=lambda m: [("queries over depth", m.width)] * 2 * m.depth,
            code=Code(
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
        ),
    ),
)
