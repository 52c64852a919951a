"""Public implementations, imported without their import-time warnings."""

from __future__ import annotations

import os
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks the network for anything

with warnings.catch_warnings():
    # x-transformers decorates a helper with torch.jit.script, which PyTorch 2.13 calls deprecated.
    warnings.filterwarnings("ignore", r"`torch\.jit\.script`", DeprecationWarning)
    from x_transformers import x_transformers

from transformers.models.cohere.modeling_cohere import CohereLayerNorm
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.gemma4.modeling_gemma4 import Gemma4RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.llama4.modeling_llama4 import Llama4TextL2Norm
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm
from transformers.models.olmo2.configuration_olmo2 import Olmo2Config
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention
from transformers.models.swinv2.configuration_swinv2 import Swinv2Config
from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

__all__ = [
    "CohereLayerNorm",
    "Gemma2RMSNorm",
    "Gemma4RMSNorm",
    "Llama4TextL2Norm",
    "LlamaRMSNorm",
    "Olmo2Attention",
    "Olmo2Config",
    "OlmoLayerNorm",
    "Qwen3Attention",
    "Qwen3Config",
    "Swinv2Config",
    "Swinv2SelfAttention",
    "x_transformers",
]
