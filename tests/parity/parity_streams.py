"""Comparisons of the schemes with several streams."""

from __future__ import annotations

from copy import deepcopy

import torch
import torch.nn.functional as F
from einops import rearrange
from parity_kit import Comparison, Link, Peer, Plugged, norm_links
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.streams.hyper import COPIES, EPS
from normviz.model.streams.manifold import ROUNDS
from normviz.model.transformer import Transformer


class OurEps(nn.Module):
    """The peer's RMSNorm with our eps, and with its scale left at 1: ours is in the next matrix."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], eps=EPS)


class HyperBlock(nn.Module):
    """lucidrains' hyper-connections on [B, T, n D]; they want the copies beside the sequences."""

    def __init__(self, wires: list[nn.Module]) -> None:
        super().__init__()
        self.wires = nn.ModuleList(wires)

    def forward(self, state: Tensor) -> Tensor:
        copies = rearrange(state, "b t (s d) -> (b s) t d", s=COPIES)
        for wire in self.wires:
            copies = wire(copies)
        return rearrange(copies, "(b s) t d -> b t (s d)", s=COPIES)


def hyper(config: RunConfig, ours: Transformer) -> Peer:
    """Its hyper-connections around our norms and branches; it starts as ours does."""
    from hyper_connections import HyperConnections

    blocks, links = nn.ModuleList(), []
    fresh = Transformer(config, 1).blocks
    for b, block in enumerate(ours.blocks):
        wires = []
        for name in ("attention", "ffn"):
            at, wire = f"blocks.{b}.{name}", getattr(block, name)
            norm, branch = deepcopy(wire.norm_in), Plugged(wire.branch, 0)
            theirs = HyperConnections(
                COPIES,
                dim=config.width,
                branch=nn.Sequential(norm, branch),
                layer_index=2 * b + (name == "ffn"),
            )
            theirs.norm = OurEps()
            links += norm_links(f"{at}.norm_in", norm) + branch.links(at)
            added = [
                Link(f"{at}.gain_start", theirs.static_alpha),
                Link(f"{at}.gain_write", theirs.static_beta),
                Link(f"{at}.gain_of_token", theirs.dynamic_alpha_fn),
                Link(f"{at}.gain_write_of_token", theirs.dynamic_beta_fn),
                Link(f"{at}.gain_scale", theirs.dynamic_alpha_scale, first),
                Link(f"{at}.gain_scale", theirs.dynamic_beta_scale, second),
            ]
            start = dict(fresh.named_parameters(prefix="blocks"))
            assert all(torch.equal(link.view(start[link.ours]), link.theirs) for link in added)
            links += added
            wires.append(theirs)
        blocks.append(HyperBlock(wires))
    final = deepcopy(ours.final_norm)
    links += norm_links("final_norm", final)

    def run(_: Tensor, x: Tensor) -> Tensor:
        state = x.repeat(1, 1, COPIES)
        for block in blocks:
            state = block(state)
        return final(state.unflatten(-1, (COPIES, -1)).sum(-2))

    return Peer(nn.ModuleList([blocks, final]), run, list(blocks), links)


def transposed(x: Tensor) -> Tensor:
    return x.T


def first(x: Tensor) -> Tensor:
    return x[0]


def second(x: Tensor) -> Tensor:
    return x[1]


class SideBySide(nn.Module):
    """A layer on [B, T, n, D], as one on [B, T, n D]."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, state: Tensor) -> Tensor:
        made = self.layer(state.unflatten(-1, (COPIES, -1)), input_ids=None)
        return made.flatten(-2)


def deepseek_v4(config: RunConfig, ours: Transformer) -> Peer:
    """Its hyper-connections, norms and wiring around our branches."""
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4

    class Layer(v4.DeepseekV4DecoderLayer):
        """Its own forward pass; the parts come one by one, as its attention needs much that we lack."""

        def __init__(self) -> None:
            nn.Module.__init__(self)

    theirs = v4.DeepseekV4Config(
        hidden_size=config.width, hc_mult=COPIES, hc_sinkhorn_iters=ROUNDS, hc_eps=0.0,
        rms_norm_eps=EPS,
    )  # fmt: skip
    layers, links = nn.ModuleList(), []
    for b, block in enumerate(ours.blocks):
        layer = Layer()
        layer.attn_hc, layer.ffn_hc = (v4.DeepseekV4HyperConnection(theirs) for _ in range(2))
        layer.self_attn = Plugged(block.attention.branch, 2)
        layer.mlp = Plugged(block.ffn.branch, 0)
        layer.input_layernorm = v4.DeepseekV4RMSNorm(config.width, EPS)
        layer.post_attention_layernorm = v4.DeepseekV4RMSNorm(config.width, EPS)
        layers.append(SideBySide(layer))
        for name, hc, norm, branch in (
            ("attention", layer.attn_hc, layer.input_layernorm, layer.self_attn),
            ("ffn", layer.ffn_hc, layer.post_attention_layernorm, layer.mlp),
        ):
            at = f"blocks.{b}.{name}"
            links += norm_links(f"{at}.norm_in", norm) + branch.links(at)
            links += [
                Link(f"{at}.gain_of_state", hc.fn, transposed),
                Link(f"{at}.gain_start", hc.base),
                Link(f"{at}.gain_scale", hc.scale),
            ]
    final = v4.DeepseekV4RMSNorm(config.width, EPS)
    links += norm_links("final_norm", final)

    def run(_: Tensor, x: Tensor) -> Tensor:
        state = x.repeat(1, 1, COPIES)
        for layer in layers:
            state = layer(state)
        return final(state.unflatten(-1, (COPIES, -1)).mean(-2))

    return Peer(nn.ModuleList([layers, final]), run, list(layers), links)


COMPARISONS = (
    Comparison("hyper", "hyper-connections HyperConnections, its RMSNorm with our eps", hyper),
    Comparison("mhc", "transformers DeepseekV4DecoderLayer", deepseek_v4, norm="rmsnorm"),
)
