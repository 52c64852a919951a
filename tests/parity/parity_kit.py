"""How our model is held against one that others wrote: same weights, same tokens, same loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.overrides import TorchFunctionMode

from normviz import RunConfig
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.init import initialise
from normviz.model.sites import untapped
from normviz.model.transformer import Transformer

CONFIG = RunConfig(
    depth=3, width=16, heads=2, seq_len=16, batch=4, activation="gelu", qk_norm="off"
)
SHARED = r"^(head|tokens|positions|embed_norm)\."
"""Both models start from our embedding and end in our head, unless the peer brings its own."""


def same(x: Tensor) -> Tensor:
    return x


def transposed(x: Tensor) -> Tensor:
    return x.T


def third(i: int) -> Callable[[Tensor], Tensor]:
    """Query, key or value (0, 1, 2) of our matrix that makes all three."""
    return lambda x: x.chunk(3)[i]


@dataclass(frozen=True)
class Link:
    """One parameter of ours and where the peer keeps it: in which layout, and less how much (a
    scale that is stored as its distance from 1)."""

    ours: str
    theirs: Tensor
    view: Callable[[Tensor], Tensor] = same
    less: float = 0.0


@dataclass
class Peer:
    """Another implementation. `run` makes what goes into the head from tokens and the embedded
    stream (a peer with an embedding of its own ignores the stream); `blocks` are the modules whose
    output is the stream after each block; `head` makes logits, where it is not ours."""

    module: nn.Module
    run: Callable[[Tensor, Tensor], Tensor]
    blocks: list[nn.Module]
    links: list[Link]
    head: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Comparison:
    """A scheme, a peer that implements it, and what of ours the peer has no parameter for: patterns
    of names, and the value that leaves those parameters without effect."""

    scheme: str
    oracle: str
    build: Callable[[RunConfig, Transformer], Peer]
    norm: str = "layernorm"
    lacks: tuple[tuple[str, float], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.scheme}-{self.oracle}"


class KeepFloat64(TorchFunctionMode):
    """Many peers cast to float32 for their norms and softmax, whatever comes in: not here."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if args and isinstance(args[0], Tensor) and args[0].dtype == torch.float64:
            if func is Tensor.float:
                return args[0]
            if func is Tensor.to and torch.float32 in args[1:]:
                return args[0]
            if kwargs.get("dtype") is torch.float32:
                kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


class Plugged(nn.Module):
    """A copy of one of our branches, callable as a peer's attention (a tuple) or FFN."""

    def __init__(self, branch: nn.Module, outputs: int) -> None:
        super().__init__()
        self.branch, self.outputs = deepcopy(branch), outputs

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> Any:
        made = self.branch(hidden_states, untapped)
        return (made, None)[: self.outputs] if self.outputs else made

    def links(self, prefix: str) -> list[Link]:
        return [Link(f"{prefix}.branch.{name}", p) for name, p in self.branch.named_parameters()]


def linear_links(
    ours: str, theirs: nn.Module, view: Callable[[Tensor], Tensor] = same
) -> list[Link]:
    """Weight and bias of a linear map; the layout is the weight's."""
    return [
        Link(f"{ours}.{name}", p, view if name == "weight" else same)
        for name, p in theirs.named_parameters()
    ]


def norm_links(ours: str, theirs: nn.Module) -> list[Link]:
    """Scale and shift of a norm. A scale that starts at 0 is stored as its distance from 1."""
    links = []
    for name, p in theirs.named_parameters():
        ending = "bias" if name.endswith("bias") else "weight"
        less = float(ending == "weight" and not p.any())
        links.append(Link(f"{ours}.{ending}", p, less=less))
    return links


def shaken(comparison: Comparison) -> tuple[RunConfig, Transformer]:
    """Our model in float64 with noise on every parameter that the peer has too."""
    config = CONFIG.replace(scheme=comparison.scheme, norm=comparison.norm)
    model = build(config, make_task(config).vocabulary)
    initialise(model, config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator))
            for pattern, value in comparison.lacks:
                if re.search(pattern, name):
                    p.fill_(value)
    return config, model.double()


def make_peer(comparison: Comparison, config: RunConfig, model: Transformer) -> Peer:
    """The peer with our weights."""
    peer = comparison.build(config, model)
    peer.module.double().eval()
    ours = dict(model.named_parameters())
    with torch.no_grad():
        for link in peer.links:
            link.theirs.copy_(link.view(ours[link.ours]) - link.less)
    return peer


def check_links(comparison: Comparison, model: Transformer, peer: Peer) -> None:
    """Nothing of ours was left out, and the peer used nothing that did not come from us."""
    linked = {link.ours for link in peer.links}
    exempt = "|".join([SHARED, *(pattern for pattern, _ in comparison.lacks)])
    left_out = {n for n, _ in model.named_parameters() if not re.search(exempt, n)} - linked
    assert not left_out, f"not compared: {sorted(left_out)}"
    known = {id(link.theirs) for link in peer.links}
    used = {
        n for n, p in peer.module.named_parameters() if p.grad is not None and id(p) not in known
    }
    assert not used, f"the peer also used {sorted(used)}"


def streams_of(peer: Peer) -> list[Tensor]:
    """A list that fills with the peer's streams as it runs."""
    seen: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
        seen.append(output[0] if isinstance(output, tuple) else output)

    for block in peer.blocks:
        block.register_forward_hook(keep)
    return seen


def apart(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The largest difference, as a share of the largest number."""
    pairs = [(a.detach(), b.detach()) for a, b in pairs]
    assert all(a.dtype == b.dtype == torch.float64 and a.shape == b.shape for a, b in pairs)
    assert all(a.isfinite().all() and b.isfinite().all() for a, b in pairs)
    largest = max(float(b.abs().max()) for _, b in pairs)
    return max(float((a - b).abs().max()) for a, b in pairs) / largest


def measure(comparison: Comparison) -> float:
    """The largest relative difference of streams, logits and gradients between us and the peer."""
    config, model = shaken(comparison)
    tokens, targets = make_task(config).tensors(0, torch.device("cpu"))
    peer = make_peer(comparison, config, model)

    embedded = model.embed_norm(model.tokens(tokens) + model.positions.weight)
    embedded.retain_grad()
    state, ours = model.streams.enter(embedded), []
    for block in model.blocks:
        state = block(state, untapped, embedded)
        ours.append(state)
    logits = model.logit_gain(model.head(model.final_norm(model.streams.leave(state))))
    cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()

    theirs, start = streams_of(peer), embedded.detach().requires_grad_()
    with KeepFloat64():
        final = peer.run(tokens, start)
        their_logits = peer.head(final) if peer.head else final @ model.head.weight.detach().T
    cross_entropy(their_logits.flatten(0, 1), targets.flatten()).backward()
    check_links(comparison, model, peer)

    parameters = dict(model.named_parameters())
    gradients = [(link.view(parameters[link.ours].grad), link.theirs.grad) for link in peer.links]
    if start.grad is not None:
        gradients.append((embedded.grad, start.grad))
    forward = [*zip(ours, theirs, strict=True), (logits, their_logits)]
    return max(apart(forward), apart(gradients))
