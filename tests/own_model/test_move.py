"""A model with its norms elsewhere: exact where nothing changes, else what the catalogue says."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from crossing_kit import case
from own_model_kit import exported, hugging
from test_doctor import Model, T, named

import normviz
from normviz.catalog.norms.length_torch import ScaleNorm
from normviz.own_model import MoveError, duel, inspect, movable
from normviz.runs.store import Store

TOKENS = torch.arange(32).view(2, 16) % 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "here", "there"),
    [
        ("gpt2", "pre", ("pre_post_main",)),
        ("llama", "pre", ("resp",)),
        ("bert", "post", ("pre", "peri")),
    ],
)
def test_there_and_back_gives_the_same_logits_bit_for_bit(
    kind: str, here: str, there: tuple[str, ...]
) -> None:
    model = hugging(kind, **({"num_hidden_layers": 2} if kind != "gpt2" else {"n_layer": 2}))
    before = model(input_ids=TOKENS).logits
    assert torch.equal(before, normviz.move(model, here)(input_ids=TOKENS).logits)
    for to in there:
        with case(to):
            moved = normviz.move(model, to)
            assert not torch.equal(before, moved(input_ids=TOKENS).logits)
            stack = inspect(moved).main
            assert to in (stack.placement, *stack.alike)
            assert torch.equal(before, normviz.move(moved, here)(input_ids=TOKENS).logits)
    assert torch.equal(before, model(input_ids=TOKENS).logits)


@pytest.mark.slow
def test_our_own_code_can_be_moved_to_every_placement_that_move_knows() -> None:
    """From Pre-LN; what comes out is named as what was asked for, and every parameter gets a gradient."""
    it = exported("pre", depth=2)
    for to in movable():
        with case(to):
            moved = normviz.move(it.model, to, inputs=it.tokens)
            (stack,) = inspect(moved, it.tokens).stacks
            assert to in (stack.placement, *stack.alike)
            moved(it.tokens).square().sum().backward()
            assert all(p.grad is not None for p in moved.blocks.parameters())


SIX = ("pre", "post", "sandwich", "peri", "resp", "deepnorm")


@pytest.mark.slow
@pytest.mark.parametrize("here", SIX[1:])
def test_from_each_of_six_placements_to_another_and_back(here: str) -> None:
    """To the one before it."""
    it = exported(here, depth=2)
    before = it.model(it.tokens)
    there = SIX[SIX.index(here) - 1]
    moved = normviz.move(it.model, there, inputs=it.tokens)
    (stack,) = inspect(moved, it.tokens).stacks
    assert there in (stack.placement, *stack.alike)
    back = normviz.move(moved, here, inputs=it.tokens)
    assert torch.equal(before, back(it.tokens))


def test_blocks_with_names_of_their_own_are_moved() -> None:
    """A Sequential of an OrderedDict, as the encoder of torchvision's ViT."""
    model, tokens = Model(), torch.arange(T)[None] % 50
    before = model(tokens)
    moved = normviz.move(named(model), "post", inputs=tokens)
    assert inspect(moved, tokens).main.placement == "post"
    assert torch.equal(before, normviz.move(moved, "pre", inputs=tokens)(tokens))


class Encoder(torch.nn.Module):
    def __init__(self, first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(
            16, 2, 32, batch_first=True, norm_first=first, dropout=0.0
        )
        self.tokens = torch.nn.Embedding(50, 16)
        self.encoder = torch.nn.TransformerEncoder(layer, 3, norm=torch.nn.LayerNorm(16))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.tokens(tokens))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("first", "to"), [(True, "post"), (False, "pre"), (False, "peri")])
def test_an_encoder_of_torch_is_moved(first: bool, to: str) -> None:
    """Also in evaluation, where torch takes a way past its modules; what comes out is torch's own layer."""
    model, here = Encoder(first), "pre" if first else "post"
    moved = normviz.move(model, to)
    assert inspect(moved).main.placement == to
    if to != "peri":
        other = Encoder(not first)
        other.load_state_dict(model.state_dict())
        for mode in (True, False):
            with torch.no_grad():
                gap = moved.train(mode)(TOKENS) - other.train(mode)(TOKENS)
            assert gap.abs().max() < 1e-5
    back = normviz.move(moved, here)
    assert torch.equal(model.train()(TOKENS), back.train()(TOKENS))


@pytest.mark.slow
def test_what_can_not_be_moved_is_a_sentence() -> None:
    model = hugging("gpt2")
    for to, said in (
        ("nowhere", "is no placement"),
        ("ngpt", "a norm of its own"),
        ("hyper", "stream"),
    ):
        with case(to), pytest.raises(MoveError, match=said):
            normviz.move(model, to)
    it = exported("parallel")
    with pytest.raises(MoveError, match="only attention and then FFN"):
        normviz.move(it.model, "pre", inputs=it.tokens)


@pytest.mark.slow
def test_lanes_of_a_duel_start_alike_and_see_the_same_batches() -> None:
    batches = [{"input_ids": TOKENS, "labels": TOKENS}]
    random = torch.get_rng_state()
    make = lambda: hugging("gpt2", n_layer=2)  # noqa: E731
    found = duel(make, batches, ("lns_learned", "post"), steps=3)
    (again,) = duel(make, batches, ("post",), steps=3, to=None).results
    assert found.results[-1].losses.tolist() == again.losses.tolist()
    assert [len(it.losses) for it in found.results] == [3] * 2
    assert [it.config.scheme for it in found.results] == ["lns_learned", "post"]
    assert "Post-LN" in repr(found)
    assert "no interval" in (page := found.html()) and "different tasks" not in page
    kept = [Store().latest(it.config.key) for it in found.results]
    assert [run is not None and run.config.scheme for run in kept] == [
        it.config.scheme for it in found.results
    ]
    assert torch.equal(torch.get_rng_state(), random)
    with pytest.raises(ValueError, match="give at least one batch"):
        duel(make, [], ("pre",))
    with pytest.raises(ValueError, match="allowed are 1 to 4"):
        duel(make, batches, ("pre",) * 5)


def test_a_lane_of_a_duel_ends_with_the_first_loss_that_is_no_number() -> None:
    batches = [{"input_ids": TOKENS, "labels": TOKENS}]
    rate = {"lr": 1e30}
    (it,) = duel(
        lambda: hugging("gpt2", n_layer=2), batches, ("pre",), steps=9, to=None,
        optimizer=lambda p: torch.optim.SGD(p, **rate),
    ).results  # fmt: skip
    assert len(it.losses) < 9 and it.status == "diverged"


class Block(torch.nn.Module):
    """Pre-LN with the norm that is given."""

    def __init__(self, norm: Callable[[], torch.nn.Module]) -> None:
        super().__init__()
        self.first, self.second = norm(), norm()
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.ffn = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.first(x)
        x = x + self.attention(u, u, u, need_weights=False)[0]
        return x + self.ffn(self.second(x))


class Small(torch.nn.Module):
    def __init__(self, norm: Callable[[], torch.nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = torch.nn.Embedding(50, 16)
        self.blocks = torch.nn.ModuleList(Block(norm) for _ in range(3))
        self.norm = norm()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


LAYERNORM = functools.partial(torch.nn.LayerNorm, 16)


@pytest.mark.parametrize("to", ["layerscale", "admin", "rezero"])
def test_what_is_new_has_the_dtype_of_the_model(to: str) -> None:
    """Also of a placement without norms, and of norms that somebody gives."""
    model = Small(LAYERNORM).bfloat16()
    moved = normviz.move(model, to)
    assert {p.dtype for p in moved.parameters()} == {torch.bfloat16}
    assert moved(TOKENS).dtype == torch.bfloat16
    given = normviz.move(moved, "sandwich", norm=torch.nn.LayerNorm)
    assert given(TOKENS).dtype == torch.bfloat16


def test_norms_without_a_place_go_where_the_model_goes() -> None:
    moved = normviz.move(normviz.move(Small(LAYERNORM), "rezero").bfloat16(), "pre")
    assert {p.dtype for p in moved.parameters()} == {torch.bfloat16}


def test_a_final_norm_that_calls_a_function_is_not_doubled() -> None:
    """A ScaleNorm calls `normalize`; what is named is the module."""
    model = Small(functools.partial(ScaleNorm, 16, 1e-5))
    assert inspect(model).main.final_norm == "norm"
    assert "final_norm" not in normviz.move(model, "sandwich").blocks[-1].rewired.norms


class OnePlus(torch.nn.Module):
    """A ScaleNorm whose number starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (1 + self.scale) * x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


@pytest.mark.parametrize(
    ("norm", "start"), [(functools.partial(ScaleNorm, 16, 1e-5), 4.0), (OnePlus, 0.0)]
)
def test_a_new_norm_with_one_number_starts_with_a_root_mean_square_of_1(
    norm: Callable[[], torch.nn.Module], start: float
) -> None:
    moved = normviz.move(Small(norm), "sandwich")
    every = [module for module in moved.modules() if type(module) in (ScaleNorm, OnePlus)]
    assert len(every) == 13
    for module in every:
        assert module.scale.item() == pytest.approx(start, abs=1e-3)
