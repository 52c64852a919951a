"""The doctor: seeded bugs are found at their line, and sound models are left alone."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from own_model_kit import exported
from torch import Tensor, nn

from normviz import inspect, watch

D, H, T, L = 32, 4, 24, 4


class Attention(nn.Module):
    causal = True

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, H, D // H).transpose(1, 2) for w in (self.q, self.k, self.v))
        z = q @ k.transpose(-1, -2) / math.sqrt(D // H)
        z = z + torch.full((t, t), -1e9).triu(1).to(z) if self.causal else z
        return self.o((z.softmax(-1) @ v).transpose(1, 2).reshape(b, t, D))


class Both(Attention):
    causal = False


class FFN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.relu(self.a(x)))


class Pre(nn.Module):
    make: Callable[[], nn.Module] = staticmethod(lambda: nn.LayerNorm(D))
    attention: type[Attention] = Attention

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2, self.att, self.ff = self.make(), self.make(), self.attention(), FFN()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(x))


class Model(nn.Module):
    def __init__(self, block: Callable[[], nn.Module] = Pre, final: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.blocks = nn.Embedding(50, D), nn.ModuleList(block() for _ in range(L))
        self.final, self.head = nn.LayerNorm(D) if final else nn.Identity(), nn.Linear(D, 50)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final(x))


def having(norm: Callable[[], nn.Module], attention: type[Attention] = Attention) -> type[Pre]:
    return type("Having", (Pre,), {"make": staticmethod(norm), "attention": attention})


def named(model: Model) -> Model:
    """With names of their own for the blocks, as torchvision's ViT has them."""
    blocks = OrderedDict((f"layer_{n}", block) for n, block in enumerate(model.blocks))
    model.blocks = nn.Sequential(blocks)  # pyrefly: ignore[bad-assignment]
    return model


# Norms in the wrong place.


class Never(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(x)
        return x + self.ff(x)


class Half(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        return x + self.ff(x)


class Dropped(Pre):
    def forward(self, x: Tensor) -> Tensor:
        self.n1(x)  # BUG dropped
        x = x + self.att(x)
        return x + self.ff(self.n2(x))


class NoFinal(Model):
    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class FinalIgnored(Model):
    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        self.final(x)  # BUG final ignored
        return self.head(x)


class Turned(Pre):
    """A norm over time: its input is turned."""

    make = staticmethod(lambda: nn.LayerNorm(T))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x.mT).mT)  # BUG turned
        return x + self.ff(self.n2(x.mT).mT)


class Twice(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))  # BUG twice
        return x + self.ff(self.n1(x))


class Overwritten(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = self.n1(x)  # BUG overwritten
        x = x + self.att(x)
        x = self.n2(x)
        return x + self.ff(x)


class OverwrittenAttention(Pre):
    def forward(self, x: Tensor) -> Tensor:
        residual = self.n1(x)  # BUG overwritten attention
        x = residual + self.att(residual)
        return x + self.ff(self.n2(x))


class OverwrittenFFN(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        x = self.n2(x)  # BUG overwritten ffn
        return self.ff(x) + x


class Row(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(self.n1b(x)))  # BUG row

    def __init__(self) -> None:
        super().__init__()
        self.n1b = nn.LayerNorm(D)


# Norms that compute something else.


class Scaled(nn.Module):
    def __init__(self, size: int = D, value: float = 1.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.full((size,), value))


class InPlace(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        x -= x.mean(-1, keepdim=True)
        x /= x.std(-1, keepdim=True) + 1e-6
        return x.mul_(self.w)  # BUG in place


class L2(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * self.w  # BUG l2


class Zeta(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * D**-0.5 * self.w  # BUG zeta


class DivRsqrt(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return x / torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w  # BUG rsqrt


class NoRoot(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w  # BUG no root


class Variance(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        z = x - x.mean(-1, keepdim=True)
        return z / (x.var(-1, keepdim=True) + 1e-6) * self.w  # BUG variance


class One(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return self.w * x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)  # BUG one


class All(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean() + 1e-6) * self.w


class Tokens(nn.Module):
    """BatchNorm of channels that come last."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(D)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class Squares(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w  # BUG squares


class Sum(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        size = x.pow(2).sum(-1, keepdim=True) / D
        return x * torch.rsqrt(size + 1e-5) * self.w  # BUG sum


class Outside(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-6) * self.w  # BUG outside


class Groups(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(D))

    def forward(self, x: Tensor) -> Tensor:
        z = x.unflatten(-1, (-1, 2))
        z = z - z.mean(-1, keepdim=True)
        z = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-6)
        return z.flatten(-2) * self.w


class Picky(nn.Module):
    """As timm's and einops' modules, it takes one number of dimensions alone."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def forward(self, x: Tensor) -> Tensor:
        return {4: self.norm}[x.ndim](x)


class Maps(Pre):
    """Tokens in rows and columns, in the first norm."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x.unflatten(1, (-1, 4))).flatten(1, 2))
        return x + self.ff(self.n2(x.unflatten(1, (-1, 4))).flatten(1, 2))


class Embedded(Model):
    """A module that is read as a whole: its embedding has a norm, which the skip path reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.LayerNorm(D)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.start(self.tokens(tokens))
        for block in self.blocks:
            x = x + block.att(block.n1(x))
            x = x + block.ff(block.n2(x))
        return self.head(self.final(x))


ALPHA, BETA = (2 * L) ** 0.25, (8 * L) ** -0.25


def deepnorm(skip: float = ALPHA, branch: float = 1.0, beta: float = BETA) -> type[Pre]:
    class Deep(Pre):
        def __init__(self) -> None:
            super().__init__()
            for w in (self.att.v, self.att.o, self.ff.a, self.ff.b):
                nn.init.xavier_normal_(w.weight, gain=beta)

        def forward(self, x: Tensor) -> Tensor:
            x = self.n1(skip * x + branch * self.att(x))  # BUG deepnorm
            return self.n2(skip * x + branch * self.ff(x))

    return Deep


class OneAlpha(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = self.n1(ALPHA * x + self.att(x))
        return self.n2(x + self.ff(x))  # BUG one alpha


class Post(Pre):
    def forward(self, x: Tensor) -> Tensor:
        x = self.n1(x + self.att(x))
        return self.n2(x + self.ff(x))


def shared() -> Model:
    norm = nn.LayerNorm(D)
    model = Model()
    for block in model.blocks:
        block.n2 = norm
    return model


def tied() -> Model:
    model = Model()
    for block in model.blocks[1:]:
        block.n1.weight = model.blocks[0].n1.weight
    return model


def half(norm: Callable[[], nn.Module]) -> Model:
    return Model(having(norm)).half()


def frozen() -> Model:
    model = Model()
    for block in model.blocks:
        block.n1.weight.requires_grad_(False)
    return model


BUGS: dict[str, tuple[Callable[[], nn.Module], str, str, str]] = {
    "never": (lambda: Model(Never), "norm unused", "blocks.0.n1", "changes the output by 0"),
    "half": (lambda: Model(Half), "norm unused", "blocks.0.n2", "at 3 more places"),
    "dropped": (lambda: Model(Dropped), "norm unused", "dropped", "result nothing reads.* by 0"),
    "final unused": (NoFinal, "norm unused", "final", "no forward pass calls"),
    "final ignored": (FinalIgnored, "norm unused", "final ignored", "result nothing reads.* by 0"),
    "shared": (shared, "norm shared", "blocks.0.n2", "one norm for all 4 blocks"),
    "tied": (tied, "norm shared", "blocks.0.n1", "blocks.1.n1.weight is the same parameter"),
    "twice": (lambda: Model(Twice), "norm called twice", "twice", "called twice a block and n2 never"),
    "overwritten": (lambda: Model(Overwritten), "stream overwritten", "overwritten", "was x"),
    "overwritten attention": (
        lambda: Model(OverwrittenAttention), "stream overwritten", "overwritten attention", r"A\(N\(x\)\)",
    ),
    "overwritten ffn": (
        lambda: Model(OverwrittenFFN), "stream overwritten", "overwritten ffn", r"F\(N\(x\)\)",
    ),
    "in place": (lambda: Model(having(InPlace)), "stream overwritten", "in place", "it writes"),
    "row": (lambda: Model(Row), "two norms in a row", "row", "blocks.0.n2 on the output of"),
    "l2": (lambda: Model(having(L2)), "norm of another size", "l2", "RMS 0.177, not 1"),
    "zeta": (lambda: Model(having(Zeta)), "norm of another size", "zeta", "RMS 0.0312, not 1"),
    "one": (lambda: Model(having(lambda: One(1))), "norm of another size", "one", "RMS 0.177"),
    "rsqrt": (lambda: Model(having(DivRsqrt)), "no norm", "rsqrt", r"grows as \|x\|\^2"),
    "no root": (lambda: Model(having(NoRoot)), "no norm", "no root", r"falls as 1/\|x\|"),
    "variance": (lambda: Model(having(Variance)), "no norm", "variance", r"falls as 1/\|x\|"),
    "positions": (
        lambda: Model(having(lambda: nn.LayerNorm((T, D)))), "norm over positions", "blocks.0.n1", "by 0",
    ),
    "turned": (lambda: Model(Turned), "norm over positions", "turned", "over the positions"),
    "all": (lambda: Model(having(All)), "norm over positions", "blocks.0.n1", "over the batch"),
    "batch": (lambda: Model(having(Tokens)), "norm over positions", "blocks.0.n1", "over the batch"),
    "beta": (
        lambda: Model(deepnorm(beta=1 / BETA), False), "DeepNorm's beta", "blocks.0.", "times larger",
    ),
    "alpha of 32": (
        lambda: Model(deepnorm(64**0.25), False), "DeepNorm's alpha", "deepnorm",
        "2.828 is that of 32 blocks, 4 blocks have 1.682",
    ),
    "alpha inverted": (
        lambda: Model(deepnorm(1 / ALPHA), False), "DeepNorm's alpha", "deepnorm", "inverted",
    ),
    "one alpha": (lambda: Model(OneAlpha, False), "DeepNorm's alpha", "one alpha", "is not multiplied"),
    "alpha on the branch": (
        lambda: Model(deepnorm(1.0, ALPHA), False), "DeepNorm's alpha", "deepnorm", "on the branch",
    ),
    "no final": (lambda: Model(final=False), "final norm missing", "blocks", "RMS 4 leaves it"),
    "squares": (lambda: half(Squares), "squares overflow", "squares", "= 256: such a token becomes 0"),
    "sum": (lambda: half(Sum), "squares overflow", "sum", "above .x. = 64"),
    "no eps": (
        lambda: Model(having(lambda: nn.RMSNorm(D, 0.0))), "eps too small", "blocks.0.n1", "zeros gives NaN",
    ),
    "outside": (lambda: Model(having(Outside)), "eps too small", "outside", "gradient at a token of zeros"),
    "two channels": (lambda: Model(having(Groups)), "two channels", "blocks.0.n1", "over 2 channels"),
    "frozen": (frozen, "frozen scale", "blocks.0.n1.weight", "4 norms is frozen"),
}  # fmt: skip
"""Each seeded bug: the model, the finding's name, its module or the mark of its line, and what is said."""
LINES = {
    line.rpartition("# BUG ")[2]: number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if re.search(r"# BUG [a-z0-9 ]+$", line)
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_found_at_its_line(bug: str) -> None:
    make, name, where, said = BUGS[bug]
    model = make()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    found = [finding for finding in inspect(model).findings if finding.name == name]
    assert len(found) == 1, inspect(model).lint
    place = f"test_doctor.py:{LINES[where]}" if where in LINES else where
    assert place in found[0].where and re.search(said, found[0].measured), found[0]
    assert found[0].mend
    assert all(torch.equal(value, before[k]) for k, value in model.state_dict().items())


class Widened(Scaled):
    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.w


class Unbiased(Scaled):
    """The Annotated Transformer's LayerNorm."""

    def forward(self, x: Tensor) -> Tensor:
        z = x - x.mean(-1, keepdim=True)
        return self.w * z / (x.std(-1, keepdim=True) + 1e-6)


class Lora(nn.Module):
    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.a, self.b = nn.Linear(base.in_features, 4), nn.Linear(4, base.out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.b(self.a(x))


def lora() -> Model:
    model = Model().requires_grad_(False)
    for block in model.blocks:
        block.att.q, block.ff.a = Lora(block.att.q), Lora(block.ff.a)
    return model


class ByDepth(nn.Module):
    """LayerNorm scaling in the norm: each block has a constant of its own."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        ByDepth.count += 1
        self.norm, self.factor = nn.LayerNorm(D), (1 + (ByDepth.count - 1) // 2 % L) ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) * self.factor


def upper_blocks_train() -> Model:
    model = Model().requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    return model


def one_block() -> Model:
    """As in ALBERT."""
    block = Pre()
    return Model(lambda: block)


SOUND: dict[str, Callable[[], nn.Module]] = {
    "pre": Model,
    "post": lambda: Model(Post, False),
    "deepnorm": lambda: Model(deepnorm(), False),
    "lora": lora,
    "upper blocks train": upper_blocks_train,
    "one block": one_block,
    "picky": lambda: Model(type("Own", (Maps,), {"make": staticmethod(Picky)})),
    "norm of the embedding": Embedded,
    "turned in both directions": lambda: Model(type("Own", (Turned,), {"attention": Both})),
    "by depth": lambda: Model(having(ByDepth)),
    "unbiased": lambda: Model(having(Unbiased)),
    "sqrt(d)": lambda: Model(having(lambda: One(1, D**0.5))),
    "both directions": lambda: Model(having(lambda: nn.LayerNorm((T, D)), Both)),
    "float16, widened": lambda: half(Widened),
    "float16, torch": lambda: half(lambda: nn.LayerNorm(D)),
    "bfloat16": lambda: Model(having(Squares)).bfloat16(),
}


def test_blocks_with_names_of_their_own_have_the_findings_of_numbered_ones() -> None:
    said, numbered = (inspect(make).lint for make in (named(Model(Dropped)), Model(Dropped)))
    assert len(said) == 1 and said == tuple(
        s.replace("blocks.0", "blocks.layer_0") for s in numbered
    )


class Looped(Model):
    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for block in [*self.blocks, *self.blocks]:
            x = block(x)
        return self.head(self.final(x))


@pytest.mark.parametrize("bug", [Dropped, Twice])
def test_a_bug_of_blocks_that_run_twice_is_counted_once_a_block(bug: type[nn.Module]) -> None:
    assert inspect(Looped(bug)).lint == inspect(Model(bug)).lint


@pytest.mark.parametrize("sound", SOUND)
def test_a_sound_model_is_left_alone(sound: str) -> None:
    assert inspect(SOUND[sound]()).lint == ()


def test_decay_of_a_scale_is_named_only_where_no_matrix_makes_up_for_it() -> None:
    for block, final, said in ((Pre, True, ""), (Post, False, "pulls the scale of 8 norms to 0")):
        model = Model(block, final)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)
        lint = inspect(model, optimizer=optimizer).lint
        assert (said in lint[0] and "half in 6,931 steps" in lint[0]) if said else not lint
        groups: list[dict[str, Any]] = [
            {
                "params": [p for p in model.parameters() if (p.ndim > 1) == matrix],
                "weight_decay": decay,
            }
            for matrix, decay in ((True, 0.1), (False, 0.0))
        ]
        assert inspect(model, optimizer=torch.optim.AdamW(groups)).lint == ()


def test_the_scale_of_one_norm_is_singular() -> None:
    model = Model(Post, False)
    model.blocks[0].n1.weight.requires_grad = False
    groups = [
        {"params": [p], "weight_decay": 0.1 * (p is model.blocks[0].n2.weight)}
        for p in model.parameters()
    ]
    decayed, frozen = inspect(model, optimizer=torch.optim.AdamW(groups)).lint
    assert "the scale of 1 norm to 0" in decayed
    assert "the scale of 1 norm is frozen" in frozen


class Merges(nn.Module):
    """A block without a skip path: a matrix reads its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.ff = nn.LayerNorm(D), FFN()

    def forward(self, x: Tensor) -> Tensor:
        return self.ff(self.norm(x))


def test_decay_of_a_scale_is_left_alone_where_the_placement_is_not_told() -> None:
    model = Model(Merges)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    it = inspect(model, optimizer=optimizer)
    assert it.main.placement is None and it.lint == ()


def test_a_watch_has_the_findings_with_those_of_its_optimizers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = Model(Post, False)
    model.blocks[0].spare = nn.LayerNorm(D)
    halves = [
        [p for name, p in model.named_parameters() if (".n1" in name) == is_first]
        for is_first in (True, False)
    ]
    optimizers = [torch.optim.AdamW(half, weight_decay=0.1) for half in halves]
    it = watch(model, optimizers, to=None)
    it.close()
    assert {found.name for found in it.findings} == {"norm unused", "scale decayed"}
    assert "of 8 norms" in str(it.findings[1])
    said = [f"normviz doctor: {found.name} at {found}" for found in it.findings]
    assert said == caplog.messages
    with watch(lora(), to=None) as it:
        assert it.findings == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme", ["pre", "skip_norm", "deepnorm", "peri", "ngpt", "keel", "siamese"]
)
def test_exported_code_is_left_alone(scheme: str) -> None:
    it: SimpleNamespace = exported(scheme)
    assert inspect(it.model, it.tokens).lint == ()
