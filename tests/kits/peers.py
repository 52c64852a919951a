"""Public implementations, each imported when a test first asks for it: all of them take seconds.

`peers.LlamaRMSNorm` is the class of that name.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks the network for anything

MODULES = {
    "CohereAttention": "cohere.modeling_cohere",
    "CohereConfig": "cohere.configuration_cohere",
    "CohereLayerNorm": "cohere.modeling_cohere",
    "Gemma2RMSNorm": "gemma2.modeling_gemma2",
    "Gemma4RMSNorm": "gemma4.modeling_gemma4",
    "Llama4TextL2Norm": "llama4.modeling_llama4",
    "LlamaConfig": "llama.configuration_llama",
    "LlamaMLP": "llama.modeling_llama",
    "LlamaRMSNorm": "llama.modeling_llama",
    "LlamaRotaryEmbedding": "llama.modeling_llama",
    "NemotronLayerNorm1P": "nemotron.modeling_nemotron",
    "Olmo2Attention": "olmo2.modeling_olmo2",
    "Olmo2Config": "olmo2.configuration_olmo2",
    "OlmoLayerNorm": "olmo.modeling_olmo",
    "Qwen3Attention": "qwen3.modeling_qwen3",
    "Qwen3Config": "qwen3.configuration_qwen3",
    "Qwen3NextAttention": "qwen3_next.modeling_qwen3_next",
    "Qwen3NextConfig": "qwen3_next.configuration_qwen3_next",
    "StableLmLayerNormPerHead": "stablelm.modeling_stablelm",
    "Swinv2Config": "swinv2.configuration_swinv2",
    "Swinv2SelfAttention": "swinv2.modeling_swinv2",
    "apply_rotary_pos_emb": "llama.modeling_llama",
    "eager_attention_forward": "gpt_oss.modeling_gpt_oss",
}
"""Where transformers has each class and function."""


def __getattr__(name: str) -> Any:
    if name == "x_transformers":
        with warnings.catch_warnings():
            # It scripts a helper with torch.jit.script, which PyTorch 2.13 calls deprecated.
            warnings.filterwarnings("ignore", r"`torch\.jit\.script`", DeprecationWarning)
            return import_module("x_transformers.x_transformers")
    if name in MODULES:
        return getattr(import_module(f"transformers.models.{MODULES[name]}"), name)
    raise AttributeError(name)
