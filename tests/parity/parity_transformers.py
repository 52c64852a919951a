"""Peers from Hugging Face transformers.

The residual wiring and the norms are always the peer's own. Where its attention or FFN is not ours
(rotary positions, gated FFNs, experts), a copy of our branch stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parity_kit import Link, Peer, Plugged, linear_links, norm_links, third
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer

Builder = Callable[[RunConfig, Transformer], Peer]
PRE = {"attention.norm_in": "input_layernorm", "ffn.norm_in": "post_attention_layernorm"}
AROUND = {
    "attention.norm_in": "input_layernorm",
    "attention.norm_out": "post_attention_layernorm",
    "ffn.norm_in": "pre_feedforward_layernorm",
    "ffn.norm_out": "post_feedforward_layernorm",
}


class Unrotated(nn.Module):
    """Rotary positions of the angle 0: our positions are learned."""

    def forward(self, x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Cosines and sines that broadcast over batch, time and channels."""
        return x.new_ones(1, 1, 1), x.new_zeros(1, 1, 1)


class Ones(nn.Module):
    """The second input of a gated FFN, switched off."""

    def forward(self, x: Tensor) -> Tensor:
        return x.new_ones(())


def options(config: RunConfig) -> dict[str, Any]:
    """A configuration in the names that most peers share."""
    return {
        "hidden_size": config.width,
        "intermediate_size": config.ffn_ratio * config.width,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "head_dim": config.width // config.heads,
        "max_position_embeddings": config.seq_len,
        "vocab_size": 40,
        "rms_norm_eps": 1e-6,
        "hidden_act": "gelu",
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def make(name: str, config: RunConfig, more: Mapping[str, Any]) -> Any:
    """The headless model `{name}Model` in a tiny configuration."""
    import transformers

    made = getattr(transformers, f"{name}Config")(**{**options(config), **more})
    return getattr(transformers, f"{name}Model")(made)


def stack(
    name: str,
    norms: Mapping[str, str],
    *,
    branches: Callable[[int, Any, Any], list[Link]] | None = None,
    **more: Any,
) -> Builder:
    """A decoder whose layers have `self_attn`, `mlp` and `norms` (our slot: its attribute).
    `branches` links the branches of block b: a layer's own, or ours plugged in. An option may be a
    function of the depth."""

    def build(config: RunConfig, model: Transformer) -> Peer:
        depth_options = {k: v(config.depth) if callable(v) else v for k, v in more.items()}
        theirs = make(name, config, depth_options)
        theirs.rotary_emb = Unrotated()
        links = norm_links("final_norm", theirs.norm)
        for b, layer in enumerate(theirs.layers):
            for slot, attribute in norms.items():
                links += norm_links(f"blocks.{b}.{slot}", getattr(layer, attribute))
            links += (branches or plug)(b, layer, model)
        return Peer(theirs, headless(theirs), list(theirs.layers), links)

    return build


def headless(theirs: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Run a model from our embedding to what goes into its head."""
    return lambda _, x: theirs(inputs_embeds=x, use_cache=False).last_hidden_state


def plug(b: int, layer: Any, model: Any) -> list[Link]:
    """Our branches in place of a layer's own."""
    layer.self_attn = Plugged(model.blocks[b].attention.branch, outputs=2)
    layer.mlp = Plugged(model.blocks[b].ffn.branch, outputs=0)
    return [
        *layer.self_attn.links(f"blocks.{b}.attention"),
        *layer.mlp.links(f"blocks.{b}.ffn"),
    ]


def projections(ours: str, attention: Any, out: str) -> list[Link]:
    """Of attention with three input maps."""
    links = linear_links(f"{ours}.out", getattr(attention, out))
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        projection = getattr(attention, name)
        links += [Link(f"{ours}.qkv.{n}", p, third(i)) for n, p in projection.named_parameters()]
    return links


def ungated(b: int, layer: Any, _: Any) -> list[Link]:
    """Of attention and FFN of the Llama kind, the FFN's second input switched off."""
    layer.mlp.up_proj = Ones()
    ffn = f"blocks.{b}.ffn.branch"
    return [
        *projections(f"blocks.{b}.attention.branch", layer.self_attn, "o_proj"),
        *linear_links(f"{ffn}.up", layer.mlp.gate_proj),
        *linear_links(f"{ffn}.down", layer.mlp.down_proj),
    ]


def with_inner_norms(b: int, layer: Any, model: Any) -> list[Link]:
    """Of BitNet: one more norm in each branch."""
    return [
        *ungated(b, layer, model),
        *norm_links(f"blocks.{b}.attention.branch.norm_inner", layer.self_attn.attn_sub_norm),
        *norm_links(f"blocks.{b}.ffn.branch.norm_inner", layer.mlp.ffn_sub_norm),
    ]
