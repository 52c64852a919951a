"""A watch in the loops that people write: it changes nothing, leaves nothing, and its numbers are right."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from normviz import watch
from normviz.own_model.watch import Watch
from normviz.result import Result

B, T, D, H, V, L = 4, 8, 16, 2, 11, 3


class Block(nn.Module):
    """Pre-LN with PyTorch's attention kernel."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.qkv(self.one(x)).view(*x.shape[:2], 3, H, D // H).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(x.shape)))
        return x + self.dropout(self.down(F.gelu(self.up(self.two(x)))))


class Model(nn.Module):
    """Returns logits and loss, as nanoGPT does."""

    def __init__(self, dropout: float = 0.0, tied: bool = False, again: bool | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(V, D)
        self.layers = nn.ModuleList(Block(dropout) for _ in range(L))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        self.again = again  # None: no checkpointing, else whether it is the reentrant kind

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x) if self.again is None else checkpoint(layer, x, use_reentrant=self.again)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batch(step: int) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(step)
    return tuple(torch.randint(V, (B, T), generator=draws) for _ in range(2))


def made(**options: object) -> tuple[Model, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Model(**options)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def hooks(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The number of all hooks that are there."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    found = sum(len(getattr(module, kind)) for module in model.modules() for kind in kinds)
    found += sum(len(p._backward_hooks or ()) for p in model.parameters())
    return (
        found + len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)
    )


def rms(x: Tensor) -> float:
    return float(x.detach().double().square().mean().sqrt())


@pytest.mark.slow
def test_steps_with_dropout_and_accumulation_are_the_same_bit_for_bit() -> None:
    def trained(watches: bool) -> tuple[list[Tensor], list[float]]:
        model, optimizer = made(dropout=0.1)
        it = watch(model, optimizer, to=None) if watches else None
        losses = []
        for step in range(36):
            for micro in range(2):
                _, loss = model(*batch(2 * step + micro))
                (loss / 2).backward()
                losses.append(loss.item())
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
        if it is not None:
            it.close()
            assert len(it.result.steps) == 36 and len(it.result.steps.layer_steps) >= 32
            assert hooks(model, optimizer) == 0
        return [p.detach().clone() for p in model.parameters()], [*losses, torch.rand(()).item()]

    (plain, losses), (seen, same) = trained(False), trained(True)
    assert losses == same
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))


def test_accumulated_and_clipped_gradients_equal_a_reference() -> None:
    model, optimizer = made(tied=True)
    with watch(model, optimizer, to=None) as it:
        wanted, hidden, losses = [], [], []
        for step in range(3):
            streams: list[Tensor] = []
            for micro in range(2):
                x = model.tokens(batch(2 * step + micro)[0])
                streams.append(x)
                _, loss = model(*batch(2 * step + micro))
                losses.append(loss.item())
                (loss / 2).backward()
            norms = [
                math.sqrt(sum(float(p.grad.double().square().sum()) for p in layer.parameters()))
                for layer in model.layers
            ]
            wanted.append(norms)
            hidden.append(_hidden(model, step))
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()
            optimizer.zero_grad()
    seen = it.result
    np.testing.assert_allclose(seen.values("grad_block")[:, 1:], wanted, rtol=1e-5)
    np.testing.assert_allclose(seen.values("grad_hidden"), hidden, rtol=1e-5)
    np.testing.assert_allclose(seen.losses, np.array(losses).reshape(3, 2).mean(1), rtol=1e-6)


def _hidden(model: Model, step: int) -> list[float]:
    """The gradient norms of the stream of both micro-batches together, by plain autograd on a copy."""
    twin = copy.deepcopy(model)
    squares = np.zeros(L + 1)
    for micro in range(2):
        tokens, targets = batch(2 * step + micro)
        streams = [twin.tokens(tokens)]
        for layer in twin.layers:
            streams.append(layer(streams[-1]))
        logits = twin.head(twin.norm(streams[-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / 2
        squares += [float(g.double().square().sum()) for g in torch.autograd.grad(loss, streams)]
    return list(np.sqrt(squares))


@pytest.mark.parametrize("again", [False, True])
def test_checkpointing_gives_the_same_numbers(again: bool) -> None:
    def table(**options: object) -> np.ndarray:
        model, optimizer = made(**options)
        with watch(model, optimizer, to=None) as it:
            for step in range(3):
                model(*batch(step))[1].backward()
                optimizer.step()
                optimizer.zero_grad()
        return it.result.steps.layers

    np.testing.assert_allclose(table(again=again), table(), rtol=1e-5)


def test_a_skipped_step_is_counted_and_gradients_are_those_of_the_loss_without_its_scale() -> None:
    def table(scaler: torch.amp.GradScaler | None, told: bool) -> Watch:
        model, optimizer = made()
        with watch(model, optimizer, to=None, scaler=scaler if told else None) as it:
            for step in range(4):
                loss = model(*batch(step))[1]
                if scaler is None:
                    loss.backward()
                    if step != 1:
                        optimizer.step()
                else:
                    scaler.scale(loss * (math.inf if step == 1 else 1.0)).backward()
                    scaler.step(optimizer)
                    scaler.update()
                optimizer.zero_grad()
        return it

    plain = table(None, False)
    for told in (False, True):
        it = table(torch.amp.GradScaler("cpu", init_scale=1024.0), told)
        assert it.skipped == plain.skipped == 1 and it.bad is None
        np.testing.assert_allclose(it.result.steps.layers, plain.result.steps.layers, rtol=1e-4)


def test_frozen_blocks_are_gaps() -> None:
    model, optimizer = made()
    model.layers[1].requires_grad_(False)
    with watch(model, optimizer, to=None) as it:
        model(*batch(0))[1].backward()
        norm = math.sqrt(
            sum(
                float(p.grad.double().square().sum())
                for p in model.layers[2].parameters()
                if p.grad is not None
            )
        )
        optimizer.step()
    seen = it.result
    for probe in ("grad_block", "grad_w2", "grad_qk", "update_ratio"):
        assert math.isnan(seen.at(probe, 0, 2)), probe
        assert not math.isnan(seen.at(probe, 0, 1)), probe
    assert seen.at("grad_block", 0, 3) == pytest.approx(norm, rel=1e-6)
    assert not np.isnan(seen.values("grad_hidden")).any(), "the gradient passes a frozen block"


class Routed(nn.Module):
    """An FFN of experts in a list: each token goes to one of the first two, the third one is idle."""

    def __init__(self) -> None:
        super().__init__()
        kinds = (nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.experts = nn.ModuleList(nn.Sequential(*copy.deepcopy(kinds)) for _ in range(3))
        self.router = nn.Linear(D, 2)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, chosen = self.router(flat).softmax(-1).max(-1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                out.index_add_(0, rows, expert(flat[rows]) * weights[rows, None])
        return out.view_as(x)


def mixtral(experts: str) -> nn.Module:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=V, hidden_size=D, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=1,
    )  # fmt: skip
    config._experts_implementation = experts
    model = MixtralForCausalLM(config)
    for block in model.model.layers:
        gate = block.mlp.gate.weight.data
        gate[2] = (gate[0] + gate[1]) / 2  # its logit is between theirs, so it is never chosen
    return model


@pytest.mark.parametrize("kind", ["eager", "batched_mm", "list"])
def test_an_idle_expert_equals_a_reference(kind: str) -> None:
    """A Mixtral of transformers, whose experts are parts of two parameters, and experts in a list."""
    torch.manual_seed(0)
    if kind == "list":
        model = Model()
        for layer in model.layers:
            layer.up, layer.down = Routed(), nn.Identity()
        second, last = "two", "up.experts.{}.2.weight"
        given = dict(zip(("tokens", "targets"), batch(0), strict=True))
    else:
        model = mixtral(kind)
        second, last = "post_attention_layernorm", "mlp.experts.down_proj"
        given = dict(zip(("input_ids", "labels"), batch(0), strict=True))

    def blocks(of: nn.Module) -> nn.ModuleList:
        return of.layers if kind == "list" else of.model.layers

    def backward(it: nn.Module) -> None:
        out = it(**given)
        (out[1] if kind == "list" else out.loss).backward()

    twin, optimizer = copy.deepcopy(model), torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, to=None) as it:
        backward(model)
        optimizer.step()
    kept: list[Tensor] = []
    for block in blocks(twin):
        block.register_forward_pre_hook(lambda _, args: kept.append(args[0].detach().double()))
        block.get_submodule(second).register_forward_pre_hook(
            lambda _, args: kept.append(args[0].detach().double())
        )
    blocks(twin)[-1].register_forward_hook(lambda *args: kept.append(args[2].detach().double()))
    backward(twin)

    def size(gradients: list[Tensor | None]) -> float:
        return math.sqrt(sum(float(g.double().square().sum()) for g in gradients if g is not None))

    for at, block in enumerate(blocks(twin)):
        own = dict(block.named_parameters())
        lasts = [own[name].grad for name in dict.fromkeys(last.format(k) for k in range(3))]
        idle = lasts[-1] if kind == "list" else lasts[0][2]
        assert idle is None or not idle.any(), "no token goes to it"
        x, y, z = kept[2 * at : 2 * at + 3]
        wanted = {
            "grad_block": size([p.grad for p in own.values()]),
            "grad_w2": size(lasts),
            "branch_ratio": float(((y - x).norm() / x.norm() + (z - y).norm() / y.norm()) / 2),
            "sum_rms": (rms(y) + rms(z)) / 2,
        }
        for probe, value in wanted.items():
            assert it.result.at(probe, 0, at + 1) == pytest.approx(value, rel=1e-5), probe
    assert not it.missing


def test_what_goes_wrong_is_named_and_no_hook_stays() -> None:
    model, optimizer = made()
    it = watch(model, optimizer, to=None)

    def training() -> None:
        with it:
            for step in range(5):
                if step == 3:
                    model.layers[1].down.weight.data[0, 0] = math.nan
                model(*batch(step))[1].backward()
                optimizer.step()
                optimizer.zero_grad()
            raise RuntimeError("my bug")

    with pytest.raises(RuntimeError, match="my bug"):
        training()
    assert hooks(model, optimizer) == 0
    seen = it.result
    assert (seen.first_bad.step, seen.first_bad.layer) == (3, 2)
    assert seen.status == "diverged" and "step 3" in seen.verdict.sentence


def test_hooks_are_gone_after_an_exception_in_a_block() -> None:
    model, optimizer = made()
    it = watch(model, optimizer, to=None)
    with pytest.raises(IndexError):
        model(torch.full((B, T), V), torch.zeros(B, T))  # a token that does not exist
    model.layers[1].up = nn.Linear(D + 1, 4 * D)
    with pytest.raises(RuntimeError):
        model(*batch(0))
    it.close()
    assert hooks(model, optimizer) == 0
    x = torch.ones(2, 2)
    assert torch.add(x, x).sum() == 8, "no mode is left"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": 0}, "every is 0, allowed is 'auto' or a whole number from 1"),
        ({"probes": ["speed"]}, "probes names 'speed', allowed are grad_block, "),
        ({"to": "run.txt"}, "to is 'run.txt', allowed is 'store', a path"),
        ({"show": "tv"}, "show is 'tv', allowed is 'terminal' or None"),
        ({"blocks": "model.layers"}, "blocks='model.layers' is not in Model"),
        ({"optimizer": "adam"}, "optimizer is a str, allowed is a torch.optim.Optimizer"),
    ],
)
def test_bad_options_are_one_sentence(options: dict[str, object], sentence: str) -> None:
    model, optimizer = made()
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")) as told:
        watch(model, options.pop("optimizer", optimizer), **options)
    assert "\n" not in str(told.value)
    assert hooks(model, optimizer) == 0


def test_a_closure_is_measured_after_it_ran_and_only_once() -> None:
    """As Lightning's optimizers run one; LBFGS asks for several losses a step."""

    def seen(kind: str, steps: int) -> Result:
        model, _ = made()
        of = torch.optim.LBFGS if kind == "LBFGS" else torch.optim.SGD
        optimizer = of(model.parameters(), lr=0.1)
        with watch(model, optimizer, to=None) as it:
            for step in range(steps):

                def closure(step: int = step) -> Tensor:
                    optimizer.zero_grad()
                    total = torch.zeros(())
                    for micro in range(2):
                        loss = model(*batch(2 * step + micro))[1] / 2
                        loss.backward()
                        it.step(2 * loss)
                        total = total + loss.detach()
                    return total

                if kind == "plain":
                    closure()
                    optimizer.step()
                else:
                    optimizer.step(closure)
        return it.result

    plain = seen("plain", 3)
    wanted = [np.mean([made()[0](*batch(micro))[1].item() for micro in range(2)])]
    np.testing.assert_allclose(plain.losses[:1], wanted, rtol=1e-6)
    for kind, steps in (("SGD", 3), ("LBFGS", 1)):
        it = seen(kind, steps)
        np.testing.assert_array_equal(it.losses, plain.losses[:steps])
        np.testing.assert_array_equal(it.steps.grad_norm, plain.steps.grad_norm[:steps])
        for probe in it.probes:
            if kind == "SGD" or probe != "update_ratio":
                np.testing.assert_array_equal(it.values(probe), plain.values(probe)[:steps], probe)


class Trained(nn.Module):
    """A module without a forward pass of its own, as Lightning's."""

    def __init__(self) -> None:
        super().__init__()
        self.model, _ = made()


def test_the_placement_of_a_module_that_is_not_called_is_that_of_what_is_in_it() -> None:
    it = watch(Trained(), to=None)
    it.close()
    assert (it.settings.placement, it.settings.path) == (
        "pre",
        "model.layers",
    ) and not it.placement_note


def test_without_an_optimizer_a_step_is_told() -> None:
    model, optimizer = made()
    with watch(model, to=None) as it:
        for step in range(2):
            loss = model(*batch(step))[1]
            loss.backward()
            it.step(loss)
            optimizer.step()
            optimizer.zero_grad()
    seen = it.result
    assert len(seen.steps) == 2 and np.isfinite(seen.losses).all()
    assert not np.isnan(seen.values("grad_block")[:, 1:]).any()
    assert any("without an optimizer" in words for words in it.missing)
