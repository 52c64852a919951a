"""What a scheme keeps true of its weights holds at the start and after every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
import torch
from parity_sphere import peer
from peek import begun, model_seen, steps_of
from test_init import initial
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.lessons import anatomy
from normviz.model.constraint import STREAM_AXIS, constrain
from normviz.model.data import make_task
from normviz.model.sites import SITES
from normviz.model.transformer import Transformer
from normviz.training import loop
from normviz.training.events import Step
from normviz.training.probes.instruments import ROWS as ROWS_OF

NGPT = RunConfig(scheme="ngpt", depth=3, width=16, heads=2, seq_len=8, batch=4, steps=10, lr=0.01)
ROWS = ("tokens.weight", "positions.weight", "head.weight", "qkv.weight", "up.weight")
COLUMNS = ("out.weight", "down.weight")
SETTINGS = pytest.mark.parametrize(
    "change",
    [{}, {"optimizer": "sgd", "lr": 1.0, "momentum": 0.5}, {"weight_decay": 0.5}, {"clip": 0.1}],
    ids=str,
)


@pytest.fixture
def float64() -> Iterator[None]:
    """Training in float64, of which the page has no switch."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def trained(config: RunConfig) -> Iterator[Transformer]:
    """The model at the start, and after each step."""
    with model_seen() as models:
        for event in loop.train(config, record=()):
            yield models[0]
            if isinstance(event, Step) and event.step == config.steps - 1:
                return


def lengths(x: Tensor, axis: int = -1) -> Tensor:
    return x.detach().square().sum(axis).sqrt()


def constrained(scheme: str, params: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Copies of parameters, by the scheme's rule."""
    found = {name: p.detach().clone() for name, p in params}
    constrain(scheme, found.items())
    return found


def assert_unit(x: Tensor) -> None:
    torch.testing.assert_close(x, torch.ones_like(x), rtol=0.0, atol=1e-14)


# Unit vectors


def test_ngpts_weights_have_unit_norm_after_each_step(float64: None) -> None:
    """Each vector along the stream's channels: rows of what reads it, columns of what writes."""
    checked = 0
    for model in trained(NGPT):
        for name, p in model.named_parameters():
            if name.endswith((*ROWS, *COLUMNS)):
                assert_unit(lengths(p, axis=0 if name.endswith(COLUMNS) else 1))
                checked += 1
    assert checked == 11 * (3 + 4 * NGPT.depth)


def test_ngpts_hidden_states_have_unit_norm(float64: None) -> None:
    """At the start and after each of ten steps: the stream at every site, what each branch reads,
    what the head reads, and each branch's output, before alpha multiplies it."""
    tokens, _ = make_task(NGPT).tensors(0, torch.device("cpu"))
    for model in trained(NGPT):
        wires = [wire for block in model.blocks for wire in (block.attention, block.ffn)]
        seen: dict[str, int] = dict.fromkeys(SITES, 0)

        def tap(site: str, index: int, x: Tensor, /, wires=wires, seen=seen) -> Tensor:
            if site == "branch_out":
                assert_unit(lengths(x / abs(wires[index].branch_gain.amount())))
            elif site not in ("skip", "attn_logits", "attn_weights", "logits"):
                assert_unit(lengths(x))
            seen[site] += 1
            return x

        model(tokens, tap)
        assert all(seen.values())


def test_the_rule_is_that_of_a_public_implementation() -> None:
    """nGPT-pytorch's norm_weights_, which its hook calls after each step of the optimizer."""
    theirs = peer(NGPT, 32).double()
    pairs = {"tokens.weight": theirs.token_embed, "head.weight": theirs.to_logits}
    for b, (at, ff) in enumerate(theirs.layers):
        pairs[f"blocks.{b}.attention.branch.out.weight"] = at.fn.to_out
        pairs[f"blocks.{b}.ffn.branch.up.weight"] = ff.fn.to_gate
        pairs[f"blocks.{b}.ffn.branch.down.weight"] = ff.fn.to_out
    with torch.no_grad():
        for part in pairs.values():
            part.weight.add_(0.3 * torch.randn_like(part.weight))
    ours = {name: part.weight.detach().clone() for name, part in pairs.items()}
    constrain("ngpt", ours.items())
    theirs.norm_weights_()
    for name, part in pairs.items():
        torch.testing.assert_close(ours[name], part.weight.detach(), rtol=0.0, atol=1e-15)


# In training


@pytest.mark.slow
@SETTINGS
def test_training_is_a_plain_loop_with_the_rule_after_each_step(
    change: dict, float64: None
) -> None:
    """PyTorch's optimizer, then the rule; the size of an update is that after both."""
    config = NGPT.replace(**change)
    task = make_task(config)
    model, *_ = begun(config)
    if config.optimizer == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), 1.0, 0.5)
    else:
        optimizer = torch.optim.AdamW(
            model.parameters(), config.lr, weight_decay=config.weight_decay
        )
    expected, updates = [], []
    for step in range(config.steps):
        optimizer.zero_grad()
        loss = model.loss(*task.tensors(step, torch.device("cpu")))
        loss.backward()
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        before = torch.nn.utils.parameters_to_vector(model.blocks[0].parameters()).detach()
        optimizer.step()
        model.load_state_dict(constrained("ngpt", model.named_parameters()))
        after = torch.nn.utils.parameters_to_vector(model.blocks[0].parameters()).detach()
        expected.append(loss.item())
        updates.append(float((after - before).norm() / before.norm()))
    steps = steps_of(config, range(config.steps))
    assert [e.loss for e in steps] == pytest.approx(expected, rel=1e-5)
    measured = [e.layers[ROWS_OF["update_ratio"], 1] for e in steps if e.layers is not None]
    assert measured == pytest.approx(updates, rel=1e-4)


def test_a_change_of_the_rate_replays_bit_for_bit() -> None:
    """As for every scheme: pausing, stepping and changing the rate do not touch the rule."""
    knobs, live = loop.Knobs(), []
    run = loop.train(NGPT, knobs)
    live += islice(run, 5)
    knobs.lr = 0.002
    live += run
    again = loop.train(NGPT.replace(lr_edits=((4, 0.002),)))
    one, two = ([e.loss for e in events if isinstance(e, Step)] for events in (live, again))
    assert one == two


# At the start


@pytest.mark.parametrize("scheme", [s.key for s in SCHEMES if s.constraint != "none"])
@pytest.mark.parametrize("init", ["xavier", "torch", "gpt2"])
def test_it_starts_from_the_draw_of_all_others(scheme: str, init: str) -> None:
    plain = initial(RunConfig(scheme="none", init=init, depth=2, width=16))
    kept = constrained(scheme, plain.items())
    for name, x in initial(RunConfig(scheme=scheme, init=init, depth=2, width=16)).items():
        if name in plain:
            torch.testing.assert_close(x, kept[name], rtol=1e-6, atol=1e-7)


def test_the_code_shown_keeps_the_rule_too() -> None:
    pasted: dict = {}
    exec(anatomy.code(NGPT, 32), pasted)
    theirs, (ours, *_) = pasted["Model"](), begun(NGPT)
    for name, p in theirs.named_parameters():
        if name.endswith((*ROWS, *COLUMNS)):
            length = lengths(p, axis=0 if name.endswith(COLUMNS) else 1)
            torch.testing.assert_close(length, torch.ones_like(length))
    shaken = {n: p.detach() + 0.1 for n, p in ours.named_parameters()}
    theirs.double().load_state_dict({anatomy.our_name(n): p.clone() for n, p in shaken.items()})
    theirs.constrain()
    constrain("ngpt", shaken.items())
    found = dict(theirs.named_parameters())
    for name, p in shaken.items():
        torch.testing.assert_close(found[anatomy.our_name(name)], p, rtol=0.0, atol=1e-15)


def test_the_rule_knows_every_matrix() -> None:
    """A new one would have to say which of its axes is the stream's."""
    model, *_ = begun(NGPT.replace(attn_gate="channel"))
    matrices = {".".join(n.split(".")[-2:]) for n, p in model.named_parameters() if p.ndim == 2}
    assert matrices == set(STREAM_AXIS)
