"""What people give to inspect: one block, a bare Sequential, code with lists of sublayers; and two models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cli_kit
import pytest
import torch
from crossing_kit import case
from test_doctor import FFN, Attention, D, Model, Post, Pre, T
from torch import Tensor, nn

import normviz


class Linear(nn.Module):
    """A block whose sublayer is one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.sub = nn.LayerNorm(D), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.sub(x))


class Pairs(nn.Module):
    """As vit-pytorch: a list of pairs that are called one by one, and the last norm beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Sequential(nn.LayerNorm(D), sub()) for sub in (Attention, FFN))
            for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        for attention, ffn in self.layers:
            x = attention(x) + x
            x = ffn(x) + x
        return self.norm(x)


class Columns(nn.Module):
    """Lists side by side in a model that is given tokens, with positions and a head."""

    def __init__(self, post: bool) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, D), nn.Embedding(T, D)
        self.attentions = nn.ModuleList(Attention() for _ in range(3))
        self.ffns = nn.ModuleList(FFN() for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(6))
        self.last, self.head, self.post = nn.LayerNorm(D), nn.Linear(D, 50), post

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for n, (attention, ffn) in enumerate(zip(self.attentions, self.ffns, strict=True)):
            first, second = self.norms[2 * n], self.norms[2 * n + 1]
            x = first(x + attention(x)) if self.post else x + attention(first(x))
            x = second(x + ffn(x)) if self.post else x + ffn(second(x))
        return self.head(x if self.post else self.last(x))


def rms(x: Tensor, w: Tensor) -> Tensor:
    return w * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def divided(x: Tensor, w: Tensor) -> Tensor:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-6) * (1 + w)


def centred(x: Tensor, w: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return w * (x - mean) / (x.std(-1, keepdim=True) + 1e-6) + w


def together(x: Tensor, w: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, -1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * w


def length(x: Tensor, w: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True) * w


def rootless(x: Tensor, w: Tensor) -> Tensor:
    return w * x / (x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Written(nn.Module):
    """A block whose norms are written out, as code from other libraries has them."""

    def __init__(self, norm: Any, where: str) -> None:
        super().__init__()
        self.attention, self.ffn = Attention(), FFN()
        self.first, self.second = nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D))
        self.norm, self.where = norm, where

    def forward(self, x: Tensor) -> Tensor:
        for sub, w in ((self.attention, self.first), (self.ffn, self.second)):
            if self.where == "post":
                x = self.norm(x + sub(x), w)
            else:
                y = sub(self.norm(x, w))
                x = x + (self.norm(y, w) if self.where == "sandwich" else y)
        return x


def test_what_a_visitors_code_raises_is_said_in_one_line(tmp_path: Path) -> None:
    error = "raise ValueError('no width:\\n  give one')\n"
    outer = f"try:\n    {{}}['width']\nexcept KeyError as it:\n    {error.rstrip()} from it\n"
    for name, code in (
        ("file.py", error), ("factory.py", f"def build():\n    {error}"), ("outer.py", outer)
    ):  # fmt: skip
        (path := tmp_path / name).write_text(code)
        with pytest.raises(ValueError, match=r"raised ValueError: no width: give one$"):
            normviz.inspect(f"{path}:build")


def test_what_a_check_of_a_configuration_says_is_said(tmp_path: Path) -> None:
    (path := tmp_path / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 1000, "num_attention_heads": 16}'
    )
    with pytest.raises(
        ValueError, match=r"valid: ValueError: The hidden size \(1000\) is not a mul"
    ):
        normviz.inspect(str(path))


@pytest.mark.parametrize("where", ["pre", "post", "sandwich"])
@pytest.mark.parametrize(
    ("norm", "key"),
    [
        (rms, "rmsnorm"),
        (divided, "rmsnorm"),
        (centred, "layernorm"),
        (together, "layernorm"),
        (length, "l2"),
    ],
)
def test_norms_that_are_written_out_are_norms(norm: Any, key: str, where: str) -> None:
    found = normviz.inspect(Model(lambda: Written(norm, where), final=where != "post")).main
    assert found.placement == where
    assert [(each.key, each.label) for each in found.norms] == [(key, found.norms[0].label)]
    assert found.norms[0].label.endswith("by hand")


def test_a_branch_that_reads_the_stream_times_something_of_it_is_not_called_unnormed() -> None:
    found = normviz.inspect(Model(lambda: Written(rootless, "pre"))).main
    assert found.placement is None
    assert "numbers computed from it" in found.why


def test_decoders_are_given_a_second_stream_and_others_are_told_to_give_inputs() -> None:
    layer = nn.TransformerDecoderLayer(D, 2, D, batch_first=True, norm_first=True)
    found = normviz.inspect(nn.TransformerDecoder(layer, 2, nn.LayerNorm(D)))
    assert found.main.placement == "pre"

    class Three(nn.TransformerDecoder):
        def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:  # pyrefly: ignore[bad-override]
            return super().forward(a, b) + c

    with pytest.raises(ValueError, match="give an input that the model takes"):
        normviz.inspect(Three(layer, 2))


class Pooled(Pre):
    """As PoolFormer: a pooling of the tokens without the token itself."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.n1(x)
        x = x + self.att.o(torch.nn.functional.avg_pool1d(y.mT, 3, 1, 1).mT - y)
        return x + self.ff(self.n2(x))


class Mixed(Pre):
    """As hyper-connections: rows and columns of a matrix of weights are made to sum to 1 in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.weights(self.n1(x)).softmax(-2)
        for _ in range(2):
            weights = nn.functional.normalize(weights, p=1, dim=-1)
            weights = nn.functional.normalize(weights, p=1, dim=-2)
        x = x + self.att(weights)
        return x + self.ff(self.n2(x))


def test_what_is_divided_by_a_sum_is_no_norm_and_a_pooling_is_a_mixer() -> None:
    for kind, formula in ((Mixed, "attention: x + A(N(x))"), (Pooled, "mixer: x + M(N(x))")):
        with case(kind.__name__):
            it = normviz.inspect(Model(kind))
            assert it.main.formulas == (formula, "FFN: x + F(N(x))") and it.lint == ()
            assert [(norm.key, norm.count) for norm in it.main.norms] == [("layernorm", 8)]


class Lambdas(Model):
    """Gains of all sublayers in one vector, on the stream that branches read too."""

    def __init__(self) -> None:
        super().__init__()
        self.gains = nn.Parameter(torch.ones(8))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        for n, block in enumerate(self.blocks):
            x = x * self.gains[2 * n]
            x = x + block.att(block.n1(x))
            x = self.gains[2 * n + 1] * x
            x = x + block.ff(block.n2(x))
        return self.head(self.final(x))


TOKENS, X = torch.zeros(2, T, dtype=torch.long), torch.randn(2, T, D)


@pytest.mark.parametrize(
    ("model", "given", "placement", "blocks", "final"),
    [
        (Pre(), X, "pre", 1, "not told"),
        (Post(), None, "post", 1, "not told"),
        (nn.Sequential(*(Pre() for _ in range(3))), X, "pre", 3, "not told"),
        (nn.Sequential(*(Post() for _ in range(3))), None, "post", 3, "not told"),
        (nn.Sequential(nn.Sequential(*(Linear() for _ in range(3)))), X, "post", 3, "no"),
        (Linear(), X, "post", 1, "not told"),
        (Pairs(), X, "pre", 3, "norm"),
        (nn.ModuleDict({"inner": Pairs()})["inner"], X, "pre", 3, "norm"),
        (Columns(False), TOKENS, "pre", 3, "last"),
        (Columns(True), TOKENS, "post", 3, "not told"),
    ],
    ids=[
        "block", "post block", "sequential", "post sequential", "linear", "linear block", "pairs", "inner",
        "columns", "post columns",
    ],
)  # fmt: skip
def test_what_people_have_is_told(
    model: nn.Module, given: Any, placement: str, blocks: int, final: str
) -> None:
    it = normviz.inspect(model, given)
    (stack,) = it.stacks
    assert (stack.placement, stack.blocks, stack.final_words) == (placement, blocks, final), str(it)
    assert placement == "post" or it.lint == ()
    one = any(isinstance(module, Linear) for module in model.modules())
    assert sum(norm.count for norm in stack.norms) == blocks * (1 if one else 2)


@pytest.mark.slow
def test_x_transformers_is_told() -> None:
    library = pytest.importorskip("x_transformers")
    for settings, placement in (
        ({}, "pre"), ({"pre_norm": False}, "post"), ({"sandwich_norm": True}, "sandwich"),
    ):  # fmt: skip
        with case(placement):
            layers = library.Decoder(dim=64, depth=4, heads=4, **settings)
            model = library.TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers)
            (stack,) = normviz.inspect(model, TOKENS).stacks
            assert (stack.placement, stack.blocks) == (placement, 4)


def test_a_norm_of_a_scaled_stream_stands_in_the_formula() -> None:
    (stack,) = normviz.inspect(Lambdas()).stacks
    assert stack.formulas == ("attention: g x + A(N(x))", "FFN: g x + F(N(x))")
    assert stack.placement in (None, "pre") and (stack.blocks, stack.final_norm) == (4, "final")


def test_inspect_has_a_name_beside_that_of_pythons_own() -> None:
    assert normviz.inspect_model is normviz.inspect


def test_what_is_no_model_is_a_sentence() -> None:
    for given, said in (
        (nn.Linear(2, 2), "is no block with a norm"),
        (3, "give a torch.nn.Module"),
    ):
        with pytest.raises(ValueError, match=said):
            normviz.inspect(given)  # pyrefly: ignore[bad-argument-type]


CODE = """
import sys; sys.path.insert(0, {folder!r})
from test_doctor import D, Model, Post, Pre, having
import torch
from torch import nn
def pre(): return Model()
def post(): return Model(Post, False)
def eps(): return Model(having(lambda: nn.LayerNorm(D, 1e-2)))
def never():
    from test_doctor import Never
    return Model(Never)
"""


def test_the_terminal_compares_expects_and_finds(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CODE.format(folder=str(Path(__file__).parent)))
    file = tmp_path / "mine.py"
    for arguments, code, said in (
        (["inspect", f"{file}:pre", "--expect", "pre,layernorm"], 0, "as expected"),
        (["inspect", f"{file}:post", "--expect", "pre"], 1, "expected pre, found post [attention: N(x"),
        (["inspect", f"{file}:pre", "--expect", "pre,rmsnorm"], 1, "expected rmsnorm, found layernorm"),
        (["inspect", f"{file}:pre", "--expect", "prre"], 2, "no key of a placement or a norm: near"),
        (["doctor", f"{file}:pre"], 0, "No mistake"),
        (["doctor", f"{file}:never"], 1, "a norm that no forward pass calls"),
        (["doctor", f"{file}:never", "--json"], 1, '"name": "norm unused"'),
        (["diff", f"{file}:pre", f"{file}:pre"], 0, "same    gradient at block 3"),
        (["diff", f"{file}:pre", f"{file}:eps"], 1, "DIFFERS norms: A 8 LayerNorm (eps 1e-05"),
        (["diff", f"{file}:pre", f"{file}:post"], 1, "DIFFERS stream after block 0"),
        (["doctor"], 2, "name a model"),
    ):  # fmt: skip
        with case(str(arguments)):
            done = cli_kit.normviz(*arguments)
            assert (done.exit_code, said in " ".join(done.output.split(" "))) == (code, True), (
                done.output
            )


def test_a_difference_leaves_both_models_as_they_are() -> None:
    a, b = Model().train(), Model(Post, False)
    it = normviz.diff(a, b)
    assert not it.same and {row.what for row in it.rows if not row.same} >= {
        "placement",
        "final norm",
    }
    assert a.training and all(p.grad is None for p in (*a.parameters(), *b.parameters()))
    assert normviz.diff(a, a).same
