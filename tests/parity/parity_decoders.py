"""Comparisons with the decoders of Hugging Face transformers that share Llama's interface."""

from __future__ import annotations

from typing import Any

from parity_kit import Comparison, Link
from parity_transformers import AROUND, PRE, plug, stack, ungated, with_inner_norms

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


COMPARISONS = (
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
