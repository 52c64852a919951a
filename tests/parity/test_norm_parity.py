"""Every norm whose record names an oracle equals it: outputs and all gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import peers
import pytest
import torch
from torch import Tensor, nn

from normviz.catalog import NORMS
from normviz.model.norms import make_norm

CLOSE = {torch.float64: 1e-10, torch.float32: 1e-5}


class Reshaped(nn.Module):
    """A norm that wants another layout than [B, T, D]."""

    def __init__(
        self, norm: nn.Module, there: Callable[[Tensor], Tensor], back: Callable[..., Tensor]
    ) -> None:
        super().__init__()
        self.norm, self.there, self.back = norm, there, back

    def forward(self, x: Tensor) -> Tensor:
        return self.back(self.norm(self.there(x)), x.shape)


class L2(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return peers.x_transformers.l2norm(x)


def completed(width: int) -> nn.Module:
    """LayerNorm of tokens with mean zero, given without their last channel."""
    return Reshaped(
        nn.LayerNorm(width + 1, elementwise_affine=False),
        lambda x: torch.cat([x, -x.sum(-1, keepdim=True)], -1),
        lambda y, shape: y[..., :-1],
    )


def channels_second(width: int) -> nn.Module:
    return Reshaped(
        nn.BatchNorm1d(width), lambda x: x.transpose(1, 2), lambda y, shape: y.transpose(1, 2)
    )


def tokens_first(width: int) -> nn.Module:
    return Reshaped(
        nn.GroupNorm(4, width), lambda x: x.flatten(0, 1)[..., None], lambda y, s: y.view(s)
    )


def public(name: str) -> Callable[[int], nn.Module]:
    """Makes a class of transformers of this name, at a width."""
    return lambda width: getattr(peers, name)(width)


def xt(name: str) -> Callable[[int], nn.Module]:
    """The same of x-transformers."""
    return lambda width: getattr(peers.x_transformers, name)(width)


@dataclass(frozen=True)
class Peer:
    """Somebody else's norm. `names` maps our parameters to theirs, if they differ; `factor` is what
    theirs is times ours."""

    key: str
    oracle: str
    make: Callable[[int], nn.Module]
    dtype: torch.dtype = torch.float64
    names: dict[str, str] = field(default_factory=dict)
    factor: Callable[[int], float] = lambda width: 1.0


HALF = {"dtype": torch.float32}  # these cast to float32 themselves
BOTH = {"weight": "gamma", "bias": "beta"}
INSIDE = {"weight": "norm.weight", "bias": "norm.bias"}
PEERS = [
    Peer("layernorm", "torch.nn.LayerNorm", nn.LayerNorm),
    Peer("layernorm_nobias", "transformers CohereLayerNorm", public("CohereLayerNorm"), **HALF),
    Peer("layernorm_nonparam", "transformers OlmoLayerNorm", public("OlmoLayerNorm"), **HALF),
    Peer(
        "layernorm_1p",
        "transformers NemotronLayerNorm1P",
        public("NemotronLayerNorm1P"),
        names={"offset": "weight"},
    ),
    Peer("groupnorm", "torch.nn.GroupNorm", tokens_first, names=INSIDE),
    Peer("rmsnorm", "transformers LlamaRMSNorm", public("LlamaRMSNorm"), **HALF),
    Peer(
        "rmsnorm_1p",
        "transformers Gemma2RMSNorm",
        public("Gemma2RMSNorm"),
        names={"offset": "weight"},
        **HALF,
    ),
    Peer(
        "rmsnorm_noaffine",
        "transformers Llama4TextL2Norm",
        lambda width: peers.Llama4TextL2Norm(),
        **HALF,
    ),
    Peer("crmsnorm", "torch.nn.LayerNorm of the completed token", completed),
    Peer(
        "scalenorm",
        "x-transformers ScaleNorm",
        xt("ScaleNorm"),
        names={"scale": "g"},
        factor=lambda width: width**-0.5,
    ),
    Peer("l2", "x-transformers l2norm", lambda width: L2()),
    Peer(
        "dyt",
        "x-transformers DynamicTanh",
        xt("DynamicTanh"),
        names=BOTH | {"alpha": "pre_tanh_scale"},
    ),
    Peer("derf", "x-transformers Derf", xt("Derf"), names=BOTH | {"shift": "s"}),
    Peer("batchnorm", "torch.nn.BatchNorm1d", channels_second, names=INSIDE),
    Peer("none", "torch.nn.Identity", lambda width: nn.Identity()),
]


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: f"{peer.key}-{peer.oracle}")
def test_equals_a_public_implementation(peer: Peer) -> None:
    width, generator = 32, torch.Generator().manual_seed(32)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(peer.dtype)

    ours = make_norm(peer.key, width).to(peer.dtype)
    theirs = peer.make(width).to(peer.dtype)
    factor, parameters = peer.factor(width), dict(theirs.named_parameters())
    pairs = [(p, parameters[peer.names.get(n, n)]) for n, p in ours.named_parameters()]
    assert len(pairs) == len(parameters)
    with torch.no_grad():
        for p, q in pairs:
            p.add_(0.3 * drawn(*p.shape))
            q.copy_(factor * p.view(q.shape))
    x = (0.5 + drawn(3, 7, width)).requires_grad_()
    toward = drawn(3, 7, width)
    mine, other = ours(x), theirs(x)
    grads = torch.autograd.grad(mine, [x, *(p for p, _ in pairs)], toward)
    expected = torch.autograd.grad(other, [x, *(q for _, q in pairs)], toward)
    assert_close(mine, other, CLOSE[peer.dtype])
    assert_close(grads[0], expected[0], CLOSE[peer.dtype])
    for a, b in zip(grads[1:], expected[1:], strict=True):
        assert_close(a, factor * b.view(a.shape), CLOSE[peer.dtype])


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """Equal up to a tolerance relative to the largest number of the tensor (or 1 if it is less)."""
    scale = max(1.0, float(theirs.detach().abs().max()))
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=tolerance * scale)


def test_every_oracle_that_a_record_names_is_compared() -> None:
    compared = {(peer.key, peer.oracle) for peer in PEERS}
    assert compared == {(norm.key, norm.oracle) for norm in NORMS if norm.oracle}
