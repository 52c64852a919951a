"""Placements by the flow of data: our own code as a stranger's, and models of transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from crossing_kit import case
from own_model_kit import exported, hugging
from torch import nn

from normviz.catalog import NORMS, SCHEMES
from normviz.own_model import doctor
from normviz.own_model.anatomy import inspect, trace_model
from normviz.own_model.source import inputs_of
from normviz.own_model.stack import StackNotFound, find_stacks

ONE_STREAM = [s.key for s in SCHEMES if s.streams == "one"]


@pytest.mark.slow
def test_our_own_code_is_named_right() -> None:
    """All placements of one stream; the others are not one of ours, and no other name is given."""
    for scheme in SCHEMES:
        with case(scheme.key):
            it = exported(scheme.key)
            (stack,) = inspect(it.model, it.tokens).stacks
            told = {stack.placement, *stack.alike}
            assert told >= {scheme.key} if scheme.key in ONE_STREAM else told == {None}
            assert bool(stack.why) == (stack.placement is None)
            if scheme.key in ONE_STREAM:
                assert stack.exact
                assert bool(stack.final_norm) == scheme.final_norm


@pytest.mark.slow
def test_our_own_norms_are_named_right() -> None:
    for norm in NORMS:
        with case(norm.key):
            it = exported("pre", depth=2, norm=norm.key)
            (stack,) = inspect(it.model, it.tokens).stacks
            told = {"none": None, "tapernorm": "rmsnorm"}.get(norm.key, norm.key)
            assert stack.norm_key == told


def test_qk_norm_is_told_from_the_path_to_the_logits() -> None:
    for qk_norm, told in (("off", "none"), ("head", "head"), ("full", "full")):
        with case(qk_norm):
            it = exported("pre", depth=2, qk_norm=qk_norm)
            (stack,) = inspect(it.model, it.tokens).stacks
            assert stack.qk_norm == told


class Block(nn.Module):
    """A block with names that lie."""

    def __init__(self) -> None:
        super().__init__()
        self.post_norm, self.layernorm_after = nn.LayerNorm(8), nn.LayerNorm(8)
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(0, 1)  # as in OPT
        x = x + self.a(self.post_norm(x))
        y = self.b(self.layernorm_after(x))
        y += x
        return y.view(2, -1, 8)


class Model(nn.Module):
    def __init__(self, kind: Callable[[], nn.Module] = Block) -> None:
        super().__init__()
        self.tokens = nn.Embedding(5, 8)
        self.things = nn.ModuleList(kind() for _ in range(3))
        self.end = nn.LayerNorm(8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for thing in self.things:
            x = thing(x)
        return self.end(x)


def test_names_are_not_trusted_and_the_model_stays_as_it_is() -> None:
    model = Model().train()
    before, random = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    (stack,) = inspect(model).stacks
    assert (stack.placement, stack.path, stack.final_norm) == ("pre", "things", "end")
    assert model.training and torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[k]) for k, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert not any("forward" in vars(m) for m in model.modules())


def test_a_hint_that_names_no_list_is_a_sentence() -> None:
    with pytest.raises(StackNotFound, match="its lists are things"):
        find_stacks(Model(), "layers")
    with pytest.raises(
        StackNotFound, match=r"has no list of blocks .* and is no block with a norm"
    ):
        find_stacks(nn.Linear(2, 2))


@pytest.mark.slow
def test_lint_says_what_the_trace_shows() -> None:
    model = hugging("gpt2")
    assert inspect(model).lint == ()
    model.transformer.ln_f = nn.Identity()
    model.transformer.h[0].ln_1.weight.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    said = "\n".join(inspect(model, optimizer=optimizer).lint)
    assert "without a final norm" in said and "is frozen while matrices train" in said
    assert "weight decay" not in said  # a matrix follows each
    class_of = type(model.transformer.h[0].ln_1)
    model.transformer.ln_f = nn.Sequential(class_of(32), class_of(32))
    for block in model.transformer.h:
        block.ln_1 = nn.Sequential(nn.RMSNorm(32, 1e-12), nn.RMSNorm(32, 0.0))
    said = "\n".join(inspect(model).lint)
    assert "two norms in a row" in said and "a token of zeros gives NaN" in said


class Staged(Model):
    """Two stages; between them neighbours are merged, and after them stands what `end` is."""

    def __init__(self, end: nn.Module) -> None:
        super().__init__()
        self.more, self.end = nn.ModuleList(Block() for _ in range(2)), end
        self.merge, self.head = nn.Linear(16, 8), nn.Linear(8, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for thing in self.things:
            x = thing(x)
        x = self.merge(torch.cat([x[:, ::2], x[:, 1::2]], -1))
        for thing in self.more:
            x = thing(x)
        return self.head(self.end(x.mean(1)))


def test_a_final_norm_is_missed_only_where_nothing_further_on_normalises_the_stream() -> None:
    """Not at the end of a stage that other blocks follow, nor before a norm of the pooled stream."""
    pooled, bare = (inspect(Staged(end)) for end in (nn.LayerNorm(8), nn.Identity()))
    assert [it.path for it in pooled.stacks] == ["things", "more"] and pooled.lint == ()
    (said,) = bare.lint
    assert said.startswith("more: Pre-LN without a final norm: the stream leaves the last block")


@pytest.mark.slow
def test_lint_knows_how_deep_post_ln_was_measured() -> None:
    """The shipped maps end at 64 blocks, and Post-LN trains at some rate up to 32."""
    it = exported("post", 2, width=8, heads=1, seq_len=4)
    traced = trace_model(it.model, inputs_of(it.model, it.tokens))
    found = inspect(it.model, it.tokens)
    for blocks, words in (
        (32, None),
        (
            33,
            "Post-LN with 33 blocks in the map measured here trained at no learning rate above 32",
        ),
        (65, "Post-LN with 65 blocks is outside of the map measured here, which ends at 64"),
    ):
        deep = replace(found, stacks=(replace(found.stacks[0], blocks=blocks),))
        said = doctor.findings(it.model, traced, deep.stacks)
        assert len(said) == (words is not None) and (words or "") in "".join(map(str, said))


def test_lint_knows_branches_that_are_made_smaller_twice() -> None:
    it = exported("resid_const")
    block = next(m for m in it.model.modules() if isinstance(m, nn.ModuleList))[0]
    matrices = {name: p for name, p in block.named_parameters() if p.ndim == 2}
    with torch.no_grad():
        for p in matrices.values():
            p.normal_(0, 0.02)
        assert inspect(it.model, it.tokens).lint == ()
        last = [*matrices][-1]
        matrices[last].mul_((2 * 4) ** -0.5)
    (said,) = inspect(it.model, it.tokens).lint
    assert f"{last} also starts at 1/sqrt(2L)" in said and "made smaller twice" in said


class Biased(Block):
    """A bias takes the shape of the stream, as in GPT-NeoX-Japanese: it has no value of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(self.post_norm(x)) + self.b.bias.expand_as(x) + x
        return x + self.b(self.layernorm_after(x))


class Doubled(Block):
    """The stream is added twice, and parentheses hide which sum is the residual one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.a(self.post_norm(x)) + x) + x


def test_a_shape_is_no_value_and_a_sum_of_two_streams_has_no_name() -> None:
    (biased,), (doubled,) = (inspect(Model(kind)).stacks for kind in (Biased, Doubled))
    assert biased.placement == "pre" and biased.formulas == ("FFN: x + F(N(x))",)
    assert doubled.placement is None and "added to a sum that has it already" in doubled.why


class Parallel(nn.Module):
    """Attention and FFN read one norm, and their results are added before the stream is."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), nn.Linear(8, 24)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.attention(x).chunk(3, -1)
        return torch.softmax(q @ k.mT, -1) @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        read = self.norm(x)
        return x + (self.down(torch.relu(self.up(read))) + self.mix(read))


class Linear(Parallel):
    """Attention without a softmax."""

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.attention(x).chunk(3, -1)
        return (q @ k.mT).tril() @ v


class StateSpace(Parallel):
    """Its products pass a decay that is summed along the tokens, as Mamba 2's do."""

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.attention(x).chunk(3, -1)
        decay = torch.cumsum(v.mean(-1), -1)
        return ((q @ k.mT) * (decay[:, :, None] - decay[:, None, :]).exp().tril()) @ v


class Scan(Parallel):
    """A recurrence, token by token."""

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c = self.attention(x).chunk(3, -1)
        state, out = torch.zeros_like(c[:, 0]), []
        for at in range(x.shape[1]):
            state = torch.sigmoid(a[:, at]) * state + b[:, at]
            out.append(state * c[:, at])
        return torch.stack(out, 1)


class Convolved(Parallel):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Conv1d(8, 8, 3, padding=1)

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x.mT).mT


class Halved(Parallel):
    """A gated FFN that takes the halves of its hidden layer by their places, as Moshi's does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.up(self.norm(x)).unflatten(-1, (2, -1))
        gated = torch.sigmoid(hidden[..., 0, :]) * hidden[..., 1, :]
        return x + self.down(gated.repeat(1, 1, 2))


class Uninstalled(Parallel):
    """A kernel that is not there gives zeros, as MRA's does: what the branch is was not seen."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.down(torch.zeros_like(self.up(self.norm(x))))
        return x + self.mix(self.norm(x))


class Forked(Parallel):
    """The norm is before the fork, as in MiniMax."""

    def __init__(self) -> None:
        super().__init__()
        self.second = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        x = self.second(x + self.mix(x))
        return x + self.down(torch.relu(self.up(x)))


@pytest.mark.parametrize(
    ("kind", "formulas"),
    [
        (Parallel, ("attention and FFN: x + A(N(x)) + F(N(x))",)),
        (Linear, ("attention and FFN: x + A(N(x)) + F(N(x))",)),
        (Halved, ("FFN: x + F(N(x))",)),
        (Uninstalled, ("branch: x + B(N(x))", "attention: x + A(N(x))")),
        (Forked, ("attention: N(x) + A(N(x))", "FFN: N(x) + F(N(x))")),
    ],
)
def test_each_branch_is_named_by_what_it_computes(
    kind: type[nn.Module], formulas: tuple[str, ...]
) -> None:
    (stack,) = inspect(Model(kind)).stacks
    assert stack.formulas == formulas


@pytest.mark.parametrize("kind", [StateSpace, Scan, Convolved])
def test_what_mixes_tokens_without_attention_is_neither_attention_nor_an_ffn(
    kind: type[Parallel],
) -> None:
    class Alone(kind):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.mix(self.norm(x))
            return x + self.down(torch.relu(self.up(self.norm(x))))

    (stack,) = inspect(Model(Alone)).stacks
    assert stack.formulas == ("mixer: x + M(N(x))", "FFN: x + F(N(x))")
    assert (stack.placement, stack.exact) == ("pre", True)


class AddNorm(nn.LayerNorm):
    """A norm that adds and gives more than its output, as the quantised ones of I-BERT do."""

    def forward(self, x: torch.Tensor, *, also: torch.Tensor | None = None) -> Any:
        return super().forward(x if also is None else x + also), None


class Second(nn.LayerNorm):
    """A LayerNorm of channels that come second."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.mT).mT


class Turned(nn.Module):
    """Post-LN with channels second, [B, C, T]."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(8, 8, 1), nn.Conv1d(8, 8, 1)
        self.one, self.two = Second(8), Second(8)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.one(x + self.a(x))
        return {"x": self.two(x + self.b(x))}


class Tupled(Block):
    """Post-LN whose norms return tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.post_norm, self.layernorm_after = AddNorm(8), AddNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, _ = self.post_norm(x + self.a(x))
        return self.layernorm_after(x + self.b(x))[0]


class Summed(Tupled):
    """A sum that a module hides is no norm of the stream alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, _ = self.post_norm(x, also=self.a(x))
        return self.layernorm_after(x, also=self.b(x))[0]


class Direct(Model):
    """It calls `forward` of its blocks, which passes their hooks by, as SqueezeBERT does."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens).mT
        for thing in self.things:
            x = thing.forward(x)["x"]
        return self.end(x.mT)


def test_blocks_that_are_called_past_their_hooks_are_followed_and_channels_may_come_second() -> (
    None
):
    model = Direct(Turned)
    (stack,) = inspect(model).stacks
    assert (stack.placement, stack.width, stack.norm_key) == ("post", 8, "layernorm")
    assert stack.norms[0].gain == "gamma" and stack.norms[0].start == 1
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert not any("forward" in vars(m) for m in model.modules())


def test_a_norm_may_give_a_tuple_and_hides_no_sum() -> None:
    (tupled,), (summed,) = (inspect(Model(kind)).stacks for kind in (Tupled, Summed))
    assert (tupled.placement, tupled.norm_key) == ("post", "layernorm")
    assert (summed.placement, summed.norm_key) == ("post", "layernorm")


Run = Callable[["Body", torch.Tensor], torch.Tensor]


class Body(nn.Module):
    """A block with the forward pass that is given, and a learned number, or a vector, `s`."""

    def __init__(self, run: Run, scale: int) -> None:
        super().__init__()
        self.a, self.b = nn.LayerNorm(8), nn.LayerNorm(8)
        self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 8)
        self.s = nn.Parameter(torch.ones(scale))
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self, x)


def both(first: Run, second: Run) -> Run:
    return lambda m, x: second(m, first(m, x))


PRE: Run = lambda m, x: x + m.g(m.b(x))  # noqa: E731


@pytest.mark.parametrize(
    ("placement", "run"),
    [
        ("pre", both(lambda m, x: x + m.f(m.a(x)), PRE)),
        ("post", both(lambda m, x: m.a(x + m.f(x)), lambda m, x: m.b(m.g(x) + x))),
        ("resp", both(lambda m, x: x + m.a(m.f(x)), lambda m, x: x + m.b(m.g(x)))),
        ("parallel_two", lambda m, x: x + m.f(m.a(x)) + m.g(m.b(x))),
        ("parallel", lambda m, x: x + m.f(h := m.a(x)) + m.g(h)),
        ("pre", both(lambda m, x: x + m.f(h := m.a(x)) + m.g(h), PRE)),  # two parts of one sublayer
        ("none", both(lambda m, x: x + m.f(x), lambda m, x: x + m.g(x))),
        ("pre", both(lambda m, x: x + ((h := m.f(m.a(x))) + m.f(h)), PRE)),
        ("skip_norm", both(lambda m, x: (h := m.a(x)) + m.f(h), lambda m, x: (h := m.b(x)) + m.g(h))),
        (None, both(lambda m, x: x + m.f(m.a(x)), lambda m, x: m.b(x + m.g(x)))),
        (None, both(PRE, lambda m, x: x + m.f(x))),
        (None, lambda m, x: m.f(m.a(x))),
        (None, lambda m, x: x + m.f(m.a(x) + x)),
        ("pre", both(lambda m, x: 0.5 * x + m.f(m.a(x)), PRE)),
        (None, both(lambda m, x: 0.5 * x + m.f(x), lambda m, x: 0.5 * x + m.g(x))),
    ],
)  # fmt: skip
def test_where_the_norm_stands_decides(placement: str | None, run: Run) -> None:
    (stack,) = inspect(Model(lambda: Body(run, 1))).stacks
    assert stack.placement == placement and bool(stack.why) == (placement is None)


@pytest.mark.parametrize(
    ("scale", "placement", "run"),
    [
        (1, "pre", both(lambda m, x: x * m.s + m.f(m.a(x)), PRE)),
        (1, "pre", both(PRE, lambda m, x: (x + m.f(m.a(x))) * m.s)),
        (8, None, both(lambda m, x: x * m.s + m.f(m.a(x)), PRE)),
        (8, None, both(PRE, lambda m, x: (x + m.f(m.a(x))) * m.s)),
        (1, None, both(lambda m, x: m.a(x * m.s + m.f(x)), lambda m, x: m.b(x * m.s + m.g(x)))),
        (1, None, both(lambda m, x: x + m.f(x), lambda m, x: (x + m.g(x)) * m.s)),
    ],
)
def test_a_number_on_a_stream_that_is_read_through_norms_changes_no_placement(
    scale: int, placement: str | None, run: Run
) -> None:
    """A vector does, and so does a number where the stream is read as it is."""
    (stack,) = inspect(Model(lambda: Body(run, scale))).stacks
    assert stack.placement == placement
