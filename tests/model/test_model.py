"""Every scheme without a public implementation equals its written formula; no scheme looks ahead."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from crossing_kit import case, pairs
from model_kit import batch, shaken
from torch import Tensor
from twin import FORMULAS, RUNS, forward

from normviz import RunConfig
from normviz.catalog import NORMS, QK_NORMS, SCHEMES, V_NORMS
from normviz.model.branches import Dropout
from normviz.model.gains import Clock

TWINS = [*FORMULAS, *RUNS]


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    """Equal up to a share of the largest number of the tensor (or of 1 if it is less)."""
    scale = max(1.0, float(theirs.detach().abs().max()))
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-10 * scale)


def assert_is_its_twin(config: RunConfig) -> None:
    model, (tokens, targets) = shaken(config), batch(config)
    twin = forward(config, dict(model.named_parameters()), tokens, targets)
    assert_close(model(tokens), twin.output)
    assert_close(model.loss(tokens, targets), twin.loss)


def test_every_scheme_has_a_twin_or_a_peer() -> None:
    assert {*TWINS} | {s.key for s in SCHEMES if s.oracle} == {*SCHEMES.keys()}


@pytest.mark.slow
def test_whole_model_is_its_twin(tiny: RunConfig) -> None:
    """Mix-LN has both kinds in four blocks. A norm that starts smaller is every norm once."""
    smaller = [("lns_learned", norm) for norm in NORMS.keys()]  # noqa: SIM118
    for scheme, norm in {*pairs(TWINS, NORMS.keys()), *smaller}:
        with case(scheme, norm):
            depth = 4 if scheme == "mixln" else 2
            config = tiny.replace(scheme=scheme, norm=norm, activation="gelu", depth=depth, steps=0)
            assert_is_its_twin(config)


@pytest.mark.slow
def test_whole_model_is_its_twin_with_attention_norms(tiny: RunConfig) -> None:
    for scheme, (qk_norm, v_norm) in pairs(TWINS, [*product(QK_NORMS.keys(), V_NORMS.keys())], 1):
        with case(scheme, qk_norm, v_norm):
            assert_is_its_twin(tiny.replace(scheme=scheme, qk_norm=qk_norm, v_norm=v_norm))


def test_no_norm_means_no_norm_anywhere(tiny: RunConfig) -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        model = shaken(tiny.replace(scheme=scheme, norm="none"))
        assert not [name for name, _ in model.named_parameters() if "norm" in name], scheme


@pytest.mark.slow
def test_causal(tiny: RunConfig) -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        model, (tokens, _) = shaken(tiny.replace(scheme=scheme)).eval(), batch(tiny)
        changed = tokens.clone()
        changed[:, 4] = (changed[:, 4] + 1) % 32
        before, after = model(tokens), model(changed)
        assert torch.equal(after[:, :4], before[:, :4]), scheme
        assert (after[:, 4:] != before[:, 4:]).any(-1).all(), scheme


def test_dropout_is_seeded_and_spares_the_global_generator(tiny: RunConfig) -> None:
    config, tokens = tiny.replace(dropout=0.5), batch(tiny)[0]
    one, two, without = shaken(config), shaken(config), shaken(tiny)
    state = torch.get_rng_state()
    assert torch.equal(one(tokens), two(tokens))
    assert not torch.equal(one(tokens), without(tokens))
    assert torch.equal(torch.get_rng_state(), state)
    mask = Dropout(0.2, 0, 1, Clock()).mask(100_000)
    assert set(mask.tolist()) == {0.0, 1.25}  # what it keeps makes up for what it drops
    assert mask.mean() == pytest.approx(1, abs=0.01)
