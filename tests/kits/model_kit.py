"""Models for tests, and the code that the page shows of them, compared with the model."""

from __future__ import annotations

import torch
from torch import Tensor
from twin import SHARE

from normviz import RunConfig
from normviz.lessons import anatomy
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.init import initialise, share
from normviz.model.transformer import Transformer


def shaken(config: RunConfig, dtype: torch.dtype = torch.float64) -> Transformer:
    """An initialised model with noise on every parameter, so that no bias or scale is trivial."""
    model = build(config, make_task(config).vocabulary)
    initialise(model, config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator))
    share(model)
    model.clock.share = SHARE
    return model.to(dtype)


def batch(config: RunConfig) -> tuple[Tensor, Tensor]:
    return make_task(config).tensors(0, torch.device("cpu"))


def assert_the_same(config: RunConfig) -> None:
    """The pasted code of a config and the model have the same parameters, buffers and outputs."""
    model = shaken(config)
    source = anatomy.code(config, make_task(config).vocabulary)
    pasted: dict = {}
    exec(source, pasted)
    theirs = pasted["Model"]().double()
    lasting = model.state_dict()
    ours = {n: x for n, x in (*model.named_parameters(), *model.named_buffers()) if n in lasting}
    if config.tied == "on":
        ours["head.weight"] = model.head.weight
    theirs.load_state_dict({anatomy.our_name(n): x for n, x in ours.items()})
    tokens = torch.randint(0, 32, (4, 8), generator=torch.Generator().manual_seed(0))
    progress = (SHARE,) if "progress" in source else ()
    expected = model(tokens)
    tolerance = 1e-10 * max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(theirs(tokens, *progress), expected, rtol=0.0, atol=tolerance)
