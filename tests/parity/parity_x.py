"""Comparisons with x-transformers, whose attention, FFN, norms and wiring are all its own.

Its norms and its attention have no biases: ours are held at 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from parity_kit import Comparison, Link, Peer, linear_links, norm_links, third
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer

NO_BIAS = ((r"(norm\w*|qkv|out)\.bias$", 0.0),)
SLOTS = ("norm_in", "norm_out", "norm_main")
"""Where it has norms: before the branch, after it, and after the sum."""


def decoder_class() -> Any:
    """x-transformers' decoder-only stack."""
    with warnings.catch_warnings():
        # It scripts a helper with torch.jit.script, which PyTorch 2.13 calls deprecated.
        warnings.filterwarnings("ignore", r"`torch\.jit\.script`", DeprecationWarning)
        from x_transformers import Decoder
    return Decoder


def x_transformers(change: Callable[[Any], None] | None, **more: Any) -> Any:
    """A Decoder with these options, each perhaps a function of the depth, and after `change`."""

    def build(config: RunConfig, _: Transformer) -> Peer:
        theirs = decoder_class()(
            dim=config.width,
            depth=config.depth,
            heads=config.heads,
            attn_dim_head=config.width // config.heads,
            **{k: v(config.depth) if callable(v) else v for k, v in more.items()},
        )
        if change is not None:
            change(theirs)
        links, ends = norm_links("final_norm", theirs.final_norm), []
        for i, (norms, branch, residual) in enumerate(theirs.layers):
            name = f"blocks.{i // 2}.{('attention', 'ffn')[i % 2]}"
            for slot, norm in zip(SLOTS, norms, strict=True):
                links += norm_links(f"{name}.{slot}", norm) if norm is not None else []
            links += branch_links(name, branch)
            if residual.residual_scale is not None:
                links.append(Link(f"{name}.skip_gain.weight", residual.residual_scale))
            ends.append(residual if norms[2] is None else norms[2])
        return Peer(theirs, lambda _, x: theirs(x), ends[1::2], links)

    return build


def branch_links(name: str, branch: Any) -> list[Link]:
    """Of attention or FFN, and of LayerScale around it (stored as the distance from 1)."""
    links = []
    if hasattr(branch, "gamma"):
        links.append(Link(f"{name}.branch_gain.weight", branch.gamma, less=1.0))
        branch = branch.fn
    if name.endswith("ffn"):
        up, down = (m for m in branch.modules() if isinstance(m, nn.Linear))
        links += linear_links(f"{name}.branch.up", up)
        links += linear_links(f"{name}.branch.down", down)
        for inner in branch.ff:
            if hasattr(inner, "gamma"):
                links += norm_links(f"{name}.branch.norm_inner", inner)
        return links
    for i, map_ in enumerate((branch.to_q, branch.to_k, branch.to_v)):
        links.append(Link(f"{name}.branch.qkv.weight", map_.weight, third(i)))
    if branch.head_scale:
        links.append(Link(f"{name}.branch.head_gain", branch.head_scale_params, per_head))
    return links + linear_links(f"{name}.branch.out", branch.to_out)


def per_head(x: Tensor) -> Tensor:
    return x[None, :, None, None]


def plain_first_sublayer(theirs: Any) -> None:
    """KEEL's exception, for which there is no option."""
    norms, _, residual = theirs.layers[0]
    residual.scale_residual_constant = 1.0
    norms[2] = None


def normformer(theirs: Any) -> None:
    """The options go for attention and FFN alike; NormFormer normalises attention's output alone,
    and scales the FFN's skip path alone."""
    for i, (norms, _, residual) in enumerate(theirs.layers):
        if i % 2:
            norms[1] = None
        else:
            residual.residual_scale = None


def twice_root_root(depth: int) -> float:
    return (2 * depth) ** 0.25


def sublayers(depth: int) -> float:
    return 2.0 * depth


def decoder(
    scheme: str, name: str, change: Callable[[Any], None] | None = None, but: str = "", **more: Any
) -> Comparison:
    """With the Decoder that these options make; `name` says which they are, `but` what changed."""
    return Comparison(
        scheme,
        f"x-transformers Decoder({name}){but}",
        x_transformers(change, **more),
        lacks=NO_BIAS,
    )


COMPARISONS = (
    decoder("post", "pre_norm=False", pre_norm=False),
    decoder("pre_nofinal", "pre_norm_has_final_norm=False", pre_norm_has_final_norm=False),
    decoder("pre_post_main", "pre_and_post_norm", pre_and_post_norm=True),
    decoder("sandwich", "sandwich_norm", sandwich_norm=True),
    decoder(
        "deepnorm",
        "pre_norm=False, scale_residual_constant",
        pre_norm=False,
        scale_residual_constant=twice_root_root,
    ),
    decoder(
        "value_residual",
        "add_value_residual",
        add_value_residual=True,
        learned_value_residual_mix=False,
    ),
    decoder("admin", "pre_norm=False, scale_residual", pre_norm=False, scale_residual=True),
    decoder(
        "keel",
        "pre_and_post_norm, scale_residual_constant",
        plain_first_sublayer,
        but=", first sublayer plain",
        pre_and_post_norm=True,
        scale_residual_constant=sublayers,
    ),
    decoder("layerscale", "use_layerscale", use_layerscale=True),
    decoder(
        "normformer",
        "attn_head_scale, ff_post_act_ln, sandwich_norm, scale_residual",
        normformer,
        but=", some of them in one branch",
        attn_head_scale=True,
        ff_post_act_ln=True,
        sandwich_norm=True,
        scale_residual=True,
    ),
)
