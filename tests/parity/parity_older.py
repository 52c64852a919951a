"""Comparisons with the older models of Hugging Face transformers, each with names of its own, and
with PyTorch's layer. LayerNorm throughout."""

from __future__ import annotations

from typing import Any

import torch
from parity_kit import Comparison, Link, Peer, Plugged, linear_links, norm_links, transposed
from parity_transformers import headless, projections
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer

POSITIONS_BEFORE = 2
"""OPT keeps two unused positions in front."""


def gpt2(config: RunConfig, model: Transformer) -> Peer:
    """Everything is GPT-2's own, embedding and positions too."""
    from transformers import GPT2Config, GPT2Model

    theirs = GPT2Model(
        GPT2Config(
            vocab_size=vocabulary(model),
            n_positions=config.seq_len,
            n_embd=config.width,
            n_layer=config.depth,
            n_head=config.heads,
            activation_function="gelu",
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    links = norm_links("final_norm", theirs.ln_f)
    links += [Link("tokens.weight", theirs.wte.weight), Link("positions.weight", theirs.wpe.weight)]
    for b, layer in enumerate(theirs.h):
        at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
        links += norm_links(f"{at}.norm_in", layer.ln_1) + norm_links(f"{ff}.norm_in", layer.ln_2)
        for ours, map_ in (
            (f"{at}.branch.qkv", layer.attn.c_attn),
            (f"{at}.branch.out", layer.attn.c_proj),
            (f"{ff}.branch.up", layer.mlp.c_fc),
            (f"{ff}.branch.down", layer.mlp.c_proj),
        ):
            links += linear_links(ours, map_, transposed)
    return Peer(theirs, from_tokens(theirs), list(theirs.h), links)


def vocabulary(model: Transformer) -> int:
    return model.tokens.num_embeddings


def from_tokens(theirs: Any) -> Any:
    """Run a model that has an embedding of its own."""
    return lambda tokens, _: theirs(input_ids=tokens, use_cache=False).last_hidden_state


def opt(slot: str, **more: Any) -> Any:
    """Everything is OPT's own; `slot` is where our norms stand."""

    def build(config: RunConfig, model: Transformer) -> Peer:
        from transformers import OPTConfig, OPTModel

        theirs = OPTModel(
            OPTConfig(
                vocab_size=vocabulary(model),
                hidden_size=config.width,
                word_embed_proj_dim=config.width,
                ffn_dim=config.ffn_ratio * config.width,
                num_hidden_layers=config.depth,
                num_attention_heads=config.heads,
                max_position_embeddings=config.seq_len,
                activation_function="gelu",
                dropout=0.0,
                pad_token_id=None,
                bos_token_id=None,
                eos_token_id=None,
                **more,
            )
        )
        decoder = theirs.decoder
        links = [
            Link("tokens.weight", decoder.embed_tokens.weight),
            Link("positions.weight", decoder.embed_positions.weight, behind_unused_positions),
        ]
        if decoder.final_layer_norm is not None:
            links += norm_links("final_norm", decoder.final_layer_norm)
        for b, layer in enumerate(decoder.layers):
            at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
            links += norm_links(f"{at}.{slot}", layer.self_attn_layer_norm)
            links += norm_links(f"{ff}.{slot}", layer.final_layer_norm)
            links += projections(f"{at}.branch", layer.self_attn, "out_proj")
            links += linear_links(f"{ff}.branch.up", layer.fc1)
            links += linear_links(f"{ff}.branch.down", layer.fc2)
        return Peer(theirs, from_tokens(theirs), list(decoder.layers), links)

    return build


def behind_unused_positions(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(x[:POSITIONS_BEFORE]), x])


def gptj(config: RunConfig, model: Transformer) -> Peer:
    """Our attention in GPT-J, whose own one rotates."""
    from transformers import GPTJConfig, GPTJModel

    theirs = GPTJModel(
        GPTJConfig(
            vocab_size=vocabulary(model),
            n_positions=config.seq_len,
            n_embd=config.width,
            n_layer=config.depth,
            n_head=config.heads,
            rotary_dim=config.width // config.heads,
            activation_function="gelu",
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    links = norm_links("final_norm", theirs.ln_f)
    for b, layer in enumerate(theirs.h):
        at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
        layer.attn = Plugged(model.blocks[b].attention.branch, outputs=2)
        links += layer.attn.links(at) + norm_links(f"{at}.norm_in", layer.ln_1)
        links += linear_links(f"{ff}.branch.up", layer.mlp.fc_in)
        links += linear_links(f"{ff}.branch.down", layer.mlp.fc_out)
    return Peer(theirs, headless(theirs), list(theirs.h), links)


def neox(config: RunConfig, model: Transformer) -> Peer:
    """Our attention in GPT-NeoX, whose own one rotates."""
    from transformers import GPTNeoXConfig, GPTNeoXModel

    theirs = GPTNeoXModel(
        GPTNeoXConfig(
            vocab_size=vocabulary(model),
            hidden_size=config.width,
            intermediate_size=config.ffn_ratio * config.width,
            num_hidden_layers=config.depth,
            num_attention_heads=config.heads,
            max_position_embeddings=config.seq_len,
            use_parallel_residual=True,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    links = norm_links("final_norm", theirs.final_layer_norm)
    for b, layer in enumerate(theirs.layers):
        at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
        layer.attention = Plugged(model.blocks[b].attention.branch, outputs=2)
        links += layer.attention.links(at) + norm_links(f"{at}.norm_in", layer.input_layernorm)
        links += norm_links(f"{ff}.norm_in", layer.post_attention_layernorm)
        links += linear_links(f"{ff}.branch.up", layer.mlp.dense_h_to_4h)
        links += linear_links(f"{ff}.branch.down", layer.mlp.dense_4h_to_h)
    return Peer(theirs, headless(theirs), list(theirs.layers), links)


def chain(layers: nn.ModuleList, final: nn.Module, **more: Any) -> Any:
    """Run layers that come without a model, then a norm of PyTorch's."""

    def run(_: Tensor, x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x, **more)
            x = x[0] if isinstance(x, tuple) else x
        return final(x)

    return run


def swin(config: RunConfig, model: Transformer) -> Peer:
    """Our attention in Swin V2's layers: one window, a square of all tokens."""
    from transformers import Swinv2Config
    from transformers.models.swinv2.modeling_swinv2 import Swinv2Layer

    side = round(config.seq_len**0.5)
    layers = nn.ModuleList(
        Swinv2Layer(Swinv2Config(window_size=side), config.width, (side, side), config.heads)
        for _ in range(config.depth)
    )
    final = nn.LayerNorm(config.width)
    links = norm_links("final_norm", final)
    for b, layer in enumerate(layers):
        at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
        layer.attention = Plugged(model.blocks[b].attention.branch, outputs=1)
        links += layer.attention.links(at) + norm_links(f"{at}.norm_out", layer.layernorm_before)
        links += norm_links(f"{ff}.norm_out", layer.layernorm_after)
        links += linear_links(f"{ff}.branch.up", layer.intermediate.dense)
        links += linear_links(f"{ff}.branch.down", layer.output.dense)
    module = nn.ModuleList([layers, final])
    run = chain(layers, final, input_dimensions=(side, side))
    return Peer(module, run, list(layers), links)


def torch_layers(slot: str, norm_first: bool) -> Any:
    """PyTorch's encoder layers under a causal mask; `slot` is where our norms stand."""

    def build(config: RunConfig, _: Transformer) -> Peer:
        width, heads, hidden = config.width, config.heads, config.ffn_ratio * config.width
        layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, hidden, 0.0, "gelu", batch_first=True, norm_first=norm_first
            )
            for _ in range(config.depth)
        )
        final = nn.LayerNorm(width) if norm_first else nn.Identity()
        links = norm_links("final_norm", final)
        for b, layer in enumerate(layers):
            at, ff = f"blocks.{b}.attention", f"blocks.{b}.ffn"
            links += norm_links(f"{at}.{slot}", layer.norm1) + norm_links(
                f"{ff}.{slot}", layer.norm2
            )
            links.append(Link(f"{at}.branch.qkv.weight", layer.self_attn.in_proj_weight))
            links.append(Link(f"{at}.branch.qkv.bias", layer.self_attn.in_proj_bias))
            links += linear_links(f"{at}.branch.out", layer.self_attn.out_proj)
            links += linear_links(f"{ff}.branch.up", layer.linear1)
            links += linear_links(f"{ff}.branch.down", layer.linear2)
        mask = nn.Transformer.generate_square_subsequent_mask(config.seq_len, dtype=torch.float64)
        return Peer(
            nn.ModuleList([layers, final]), chain(layers, final, src_mask=mask), list(layers), links
        )

    return build


COMPARISONS = (
    Comparison("pre", "torch TransformerEncoderLayer", torch_layers("norm_in", True)),
    Comparison("post", "torch TransformerEncoderLayer", torch_layers("norm_main", False)),
    Comparison("pre", "transformers GPT2Model", gpt2),
    Comparison("post", "transformers OPTModel", opt("norm_main", do_layer_norm_before=False)),
    Comparison(
        "pre_nofinal", "transformers OPTModel", opt("norm_in", _remove_final_layer_norm=True)
    ),
    Comparison("parallel", "transformers GPTJModel", gptj),
    Comparison("parallel_two", "transformers GPTNeoXModel", neox),
    Comparison("resp_zero", "transformers Swinv2Layer", swin),
)
