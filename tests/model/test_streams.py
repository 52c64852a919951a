"""States of several streams: what they are without branches, and what mixes them."""

from __future__ import annotations

import pytest
import torch
from peek import begun, streams
from torch import Tensor

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.config import estimated_gib
from normviz.limits import MAX_GIB

SMALL = RunConfig(depth=4, width=16, heads=2, seq_len=8, batch=4, norm="rmsnorm")
D = SMALL.width


def without_branches(scheme: str) -> list[Tensor]:
    """The state behind the embedding and each block of a new model whose branches are zero."""
    model, tokens, _ = begun(SMALL.replace(scheme=scheme))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if ".branch.out." in name or ".branch.down." in name:
                p.zero_()
    return streams(model, tokens)


@pytest.mark.parametrize(
    "scheme", ["denseformer", "hyper", "mhc", "mhc_lite", "kromhc", "hc_identity", "geonorm"]
)
def test_a_new_model_passes_its_state_on(scheme: str) -> None:
    """Also where copies are mixed: they are still equal."""
    first, *others = without_branches(scheme)
    for state in others:
        torch.testing.assert_close(state, first, rtol=1e-12, atol=1e-12)


def test_what_keeps_all_values_has_a_budget_of_memory() -> None:
    deep = RunConfig(depth=96)
    for scheme in SCHEMES:
        kept = estimated_gib(deep.replace(scheme=scheme.key)) - estimated_gib(deep)
        more = bool(scheme.history) or scheme.streams == "gated"  # matrices of its own
        assert (kept > 0) == more
    with pytest.raises(ValueError, match="GiB of memory"):
        RunConfig(scheme="attnres", depth=1000, steps=1)
    assert estimated_gib(deep.replace(scheme="attnres")) < MAX_GIB
