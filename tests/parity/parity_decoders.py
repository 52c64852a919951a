"""Comparisons with the decoders of Hugging Face transformers that share Llama's interface."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from parity_kit import Comparison, Link, Peer, Plugged, norm_links
from parity_transformers import AROUND, PRE, plug, stack, ungated, with_inner_norms
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer

GLM4 = {
    "attention.norm_in": "input_layernorm",
    "attention.norm_out": "post_self_attn_layernorm",
    "ffn.norm_in": "post_attention_layernorm",
    "ffn.norm_out": "post_mlp_layernorm",
}
AFMOE = {
    "attention.norm_in": "input_layernorm",
    "attention.norm_out": "post_attention_layernorm",
    "ffn.norm_in": "pre_mlp_layernorm",
    "ffn.norm_out": "post_mlp_layernorm",
}
OLMO2 = {
    "attention.norm_out": "post_attention_layernorm",
    "ffn.norm_out": "post_feedforward_layernorm",
}
MINIMAX = {
    "attention.norm_fork": "input_layernorm",
    "ffn.norm_fork": "post_attention_layernorm",
}
MUSE_SPARK = {
    "attention.norm_in": "input_layernorm",
    "ffn.norm_in": "pre_feedforward_layernorm",
}


def dense(depth: int) -> list[str]:
    return ["dense"] * depth


def full_attention(depth: int) -> list[str]:
    return ["full_attention"] * depth


def gated(b: int, layer: Any, model: Any) -> list[Link]:
    """Our branches, and the gates of Muse Spark. Its outer norms differ from all others: one has no
    scale, one scales before it normalises. They are compared without scale."""
    layer.post_feedforward_layernorm.weight.requires_grad_(False)
    return [
        *plug(b, layer, model),
        Link(f"blocks.{b}.attention.branch_gain.weight", layer.post_attention_residual_gate.gate),
        Link(f"blocks.{b}.ffn.branch_gain.weight", layer.post_feedforward_residual_gate.gate),
    ]


def every_block(depth: int) -> int:
    return depth


def by_root_depth(depth: int) -> float:
    return depth**-0.5


def by_depth(depth: int) -> float:
    return 1.0 / depth


def decoder(
    scheme: str, name: str, norms: dict[str, str], lacks: Any = (), but: str = "", **more: Any
) -> Comparison:
    """With the model of that name and everything in it but the branches."""
    oracle = f"transformers {name}Model{but}"
    return Comparison(scheme, oracle, stack(name, norms, **more), "rmsnorm", lacks)


def layers_of(
    name: str, norms: dict[str, str], own: Callable[[str, Any], list[Link]]
) -> Callable[[RunConfig, Transformer], Peer]:
    """Decoder layers `{name}DecoderLayer` with their own forward pass around our branches: the class has
    its parts given one by one. `own` makes what else a layer needs and links it."""

    def build(config: RunConfig, model: Transformer) -> Peer:
        folder = name.removesuffix("Text").lower()
        code = import_module(f"transformers.models.{folder}.modeling_{folder}")
        kind = getattr(code, f"{name}DecoderLayer")
        norm = getattr(code, f"{name.removesuffix('Text')}RMSNorm")
        layers, links = nn.ModuleList(), list[Link]()
        for b, block in enumerate(model.blocks):
            layer = kind.__new__(kind)
            nn.Module.__init__(layer)
            for slot, attribute in norms.items():
                setattr(layer, attribute, norm(config.width, eps=1e-6))
                links += norm_links(f"blocks.{b}.{slot}", getattr(layer, attribute))
            layer.self_attn = Plugged(block.attention.branch, 2)
            layer.mlp = Plugged(block.ffn.branch, 2 * (name == "Zaya"))
            links += layer.self_attn.links(f"blocks.{b}.attention")
            links += layer.mlp.links(f"blocks.{b}.ffn") + own(f"blocks.{b}", layer)
            layers.append(layer)
        final = norm(config.width, eps=1e-6)
        links += norm_links("final_norm", final)

        def run(_: Tensor, x: Tensor) -> Tensor:
            for layer in layers:
                made = layer(x.clone())
                x = made[0] if isinstance(made, tuple) else made
            return final(x)

        return Peer(nn.ModuleList([layers, final]), run, list(layers), links)

    return build


def gemma4(at: str, layer: Any) -> list[Link]:
    """No experts, no embeddings of a layer's own, and its scalar as a parameter."""
    layer.hidden_size_per_layer_input, layer.enable_moe_block = 0, False
    layer.layer_scalar = nn.Parameter(torch.ones(()))
    return [Link(f"{at}.ffn.main_gain.weight", layer.layer_scalar)]


def zaya(at: str, layer: Any) -> list[Link]:
    """Its scaling of skip path and branch."""
    from transformers.models.zaya.modeling_zaya import ZayaResidualScaling

    links = list[Link]()
    for name, attribute in (("attention", "post_attention"), ("ffn", "post_mlp")):
        scaling = ZayaResidualScaling(layer.input_layernorm.weight.shape[0])
        setattr(layer, f"{attribute}_residual_scale", scaling)
        for theirs, ours in (("hidden_states", "branch"), ("residual", "skip")):
            links += [
                Link(f"{at}.{name}.{ours}_gain.weight", getattr(scaling, f"{theirs}_scale")),
                Link(f"{at}.{name}.{ours}_shift.weight", getattr(scaling, f"{theirs}_bias")),
            ]
    return links


COMPARISONS = (
    Comparison(
        "layer_scalar",
        "transformers Gemma4TextDecoderLayer",
        layers_of("Gemma4Text", AROUND, gemma4),
        "rmsnorm",
    ),
    Comparison(
        "residual_scaling", "transformers ZayaDecoderLayer", layers_of("Zaya", PRE, zaya), "rmsnorm"
    ),
    decoder("pre", "Llama", PRE, branches=ungated, attention_bias=True, mlp_bias=True),
    decoder("sandwich", "Gemma2", AROUND),
    decoder("sandwich", "Glm4", GLM4),
    decoder("peri", "Gemma2", AROUND, but=" behind our embedding norm"),
    decoder("dssn", "Afmoe", AFMOE, num_dense_layers=every_block),
    decoder("resp", "Olmo2", OLMO2),
    decoder("beam", "Beam", AROUND, mlp_layer_types=dense),
    decoder(
        "gated_peri",
        "MuseSparkText",
        MUSE_SPARK,
        lacks=((r"norm_out\.weight$", 1.0),),
        but=", outer norms without scale",
        branches=gated,
        mlp_layer_types=dense,
        post_norm_eps=1e-6,
    ),
    decoder("resid_const", "Granite", PRE, residual_multiplier=by_root_depth),
    decoder("completep", "Granite", PRE, residual_multiplier=by_depth),
    decoder(
        "subln",
        "BitNet",
        PRE,
        lacks=((r"(up|down)\.bias$", 0.0),),
        branches=with_inner_norms,
        attention_bias=True,
    ),
    decoder("skip_norm", "MiniMax", MINIMAX, layer_types=full_attention, num_local_experts=2),
)
