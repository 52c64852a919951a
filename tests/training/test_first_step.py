"""DeepNorm's promise, measured: one step of SGD changes the output alike at every depth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from peek import begun

from normviz import RunConfig

KINDS: dict[str, Callable[[str], bool]] = {
    "matrices": lambda name: name.endswith("weight") and "norm" not in name,
    "biases": lambda name: name.endswith("bias") and "norm" not in name,
    "norms": lambda name: "norm" in name,
}


def change(scheme: str, depth: int, kind: str = "matrices", matrices_times: float = 1.0) -> float:
    """RMS over the logits by which a step at rate 0.01 in the blocks' parameters of a kind changes
    them; value, output and FFN matrices start that many times larger."""
    config = RunConfig(scheme=scheme, depth=depth)
    model, tokens, targets = begun(config)
    with torch.no_grad():
        for block in model.blocks:
            attention, ffn = block.attention.branch, block.ffn.branch
            value = attention.qkv.weight[2 * config.width :]
            for matrix in (value, attention.out.weight, ffn.up.weight, ffn.down.weight):
                matrix.mul_(matrices_times)
    before = model(tokens).detach()
    model.loss(tokens, targets).backward()
    moved = [p for name, p in model.blocks.named_parameters() if KINDS[kind](name)]
    torch.optim.SGD(moved, 0.01).step()
    return (model(tokens).detach() - before).square().mean().sqrt().item()


@pytest.mark.slow
def test_deepnorms_step_does_not_depend_on_depth() -> None:
    """Wang et al. 2022, theorem 4.2, which is about matrices. Measured at 6, 24 and 48 blocks:
    DeepNorm 1.2e-3 each time, Post-LN 0.06, 0.37, 0.51, Pre-LN 0.02, 0.06, 0.08."""
    deep = [change("deepnorm", depth) for depth in (6, 24)]
    assert max(deep) < 1.3 * min(deep)
    assert change("post", 24) > 4 * change("post", 6)
    assert change("pre", 24) > 2 * change("pre", 6)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "low", "high"), [("biases", 1.5, 3), ("norms", 3, 6)])
def test_but_that_of_its_biases_and_norms_does(kind: str, low: float, high: float) -> None:
    """The constants say nothing of these: the step of biases grows like sqrt(L), that of the norms'
    scale and shift like L. Measured at 24 over 6 blocks: 2.0 and 4.1."""
    assert low < change("deepnorm", 24, kind) / change("deepnorm", 6, kind) < high


def test_an_inverted_beta_undoes_it() -> None:
    """Two public baselines multiply by (8L)^(1/4) where the paper divides by it. Measured: 23 times
    the change at 6 blocks, 417 times at 48."""
    inverted = change("deepnorm", 6, matrices_times=(8 * 6) ** 0.5)
    assert inverted > 10 * change("deepnorm", 6)
