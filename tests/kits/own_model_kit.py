"""Models that a stranger could have written: code that NormViz exports, and small models of transformers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from normviz.config import RunConfig
from normviz.export import script
from normviz.runs.lane import Lane


def exported(scheme: str, depth: int = 4, **settings: Any) -> SimpleNamespace:
    """The model of a scheme as its exported script makes it, and tokens for it."""
    lane = Lane("A", RunConfig(scheme=scheme, depth=depth, **settings))
    names: dict[str, Any] = {"__name__": "script"}
    threads = torch.get_num_threads()
    exec(script(lane), names)
    torch.set_num_threads(threads)
    model, tokens = names["build"]()
    return SimpleNamespace(model=model, tokens=tokens)


def hugging(kind: str, **more: Any) -> nn.Module:
    """A small model of transformers from its configuration, with noise on its vectors."""
    import transformers

    small: dict[str, dict[str, Any]] = {
        "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 32},
        "llama": {
            "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2,
        },
        "bert": {
            "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
        },
    }  # fmt: skip
    config = transformers.AutoConfig.for_model(kind, vocab_size=50, **{**small[kind], **more})
    make = (
        transformers.AutoModelForMaskedLM if kind == "bert" else transformers.AutoModelForCausalLM
    )
    torch.manual_seed(0)
    model = make.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(0.1 * torch.randn_like(p))
    return model
