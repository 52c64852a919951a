"""The smaller choices of a run, from QK-norm to the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .registry import Registry
from .setting import Spot


@dataclass(frozen=True)
class Choice:
    """A choice: its key in configs, its label on pages, and one sentence about it. `oracle` names the
    implementation by others that the tests compare with it. `gated`: an activation of two linear maps, whose
    outputs it multiplies. `code` has its lines of pasted code."""

    key: str
    label: str
    sentence: str
    oracle: str = ""
    gated: bool = False
    code: Mapping[Spot, str] = field(default_factory=dict)


QK_NORMS: Registry[Choice] = Registry(
    "qk_norm",
    (
        Choice("off", "Off", "Queries and keys are used as they are."),
        Choice(
            "on",
            "Per head, no scale",
            "Queries and keys of each head are divided by their RMS, without learned scale "
            "(after Henry et al. 2020, arXiv:2010.04245).",
            code={"queries": "q, k = (F.rms_norm(x, (D // H,), eps=1e-6) for x in (q, k))"},
        ),
        Choice(
            "head",
            "Per head",
            "Queries and keys of each head are divided by their RMS and scaled by learned numbers "
            "that all heads share (Qwen3, arXiv:2505.09388; Gemma 3).",
            oracle="transformers Qwen3Attention",
            code={
                "queries init": "self.norm_query = nn.RMSNorm(D // H, 1e-6)\n"
                "self.norm_key = nn.RMSNorm(D // H, 1e-6)",
                "queries": "q, k = self.norm_query(q), self.norm_key(k)",
            },
        ),
        Choice(
            "layernorm",
            "Per head, LayerNorm",
            "Queries and keys of each head pass a LayerNorm without shift, whose learned scale is the "
            "head's own (Command R+; StableLM 2; eps 1e-5).",
            oracle="transformers StableLmLayerNormPerHead",
            code={
                "queries init": "self.scale_q = nn.Parameter(torch.ones(H, 1, D // H))\n"
                "self.scale_k = nn.Parameter(torch.ones(H, 1, D // H))",
                "queries": "q, k = (F.layer_norm(x, (D // H,), eps=1e-5) for x in (q, k))\n"
                "q, k = self.scale_q * q, self.scale_k * k",
            },
        ),
        Choice(
            "full",
            "Full width",
            "Queries and keys are divided by their RMS over all heads together and scaled channel "
            "by channel (OLMo 2, arXiv:2501.00656; eps 1e-5).",
            oracle="transformers Olmo2Attention",
            code={
                "queries init": "self.norm_query = nn.RMSNorm(D, 1e-5)\nself.norm_key = nn.RMSNorm(D, 1e-5)",
                "queries": "def joined(x): return x.transpose(1, 2).flatten(2)\n"
                "def split(x): return x.view(B, -1, H, D // H).transpose(1, 2)\n"
                "q, k = split(self.norm_query(joined(q))), split(self.norm_key(joined(k)))",
            },
        ),
        Choice(
            "cosine",
            "Cosine",
            "Logits are the cosine of query and key times a learned number of each head, which "
            "starts at 10 and is at most 100 (Swin V2, arXiv:2111.09883).",
            oracle="transformers Swinv2SelfAttention",
            code={
                "queries init": "self.log_scale = nn.Parameter(torch.full((H, 1, 1), 10.0).log())",
                "queries": "q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)\n"
                "q = self.log_scale.exp().clamp(max=100.0) * q",
            },
        ),
    ),
)
V_NORMS: Registry[Choice] = Registry(
    "v_norm",
    (
        Choice("off", "Off", "Values are used as they are."),
        Choice(
            "on",
            "Per head, no scale",
            "Values of each head are divided by their RMS, without learned scale, as in Gemma 4.",
            oracle="transformers Gemma4RMSNorm",
            code={"queries": "v = F.rms_norm(v, (D // H,), eps=1e-6)"},
        ),
    ),
)
ACTIVATIONS: Registry[Choice] = Registry(
    "activation",
    (
        Choice(
            "relu",
            "ReLU",
            "max(0, x)",
            oracle="torch.nn.TransformerEncoderLayer",
            code={"hidden": "F.relu({})"},
        ),
        Choice(
            "gelu",
            "GELU",
            "x Phi(x), exact",
            oracle="torch.nn.TransformerEncoderLayer",
            code={"hidden": "F.gelu({})"},
        ),
        Choice(
            "silu",
            "SiLU",
            "x sigmoid(x) (Elfwing et al. 2017, arXiv:1702.03118).",
            code={"hidden": "F.silu({})"},
        ),
        Choice(
            "relu2",
            "ReLU squared",
            "max(0, x)^2 (Primer, arXiv:2109.08668).",
            code={"hidden": "F.relu({}).square()"},
        ),
        Choice(
            "swiglu",
            "SwiGLU",
            "SiLU(G x) times U x: two matrices instead of one, of two thirds of the hidden width, rounded to "
            "a multiple of 4, so that the FFN has about as many parameters (Shazeer 2020, arXiv:2002.05202).",
            oracle="transformers LlamaMLP",
            gated=True,
            code={"hidden": "F.silu({}) * x"},
        ),
        Choice(
            "geglu",
            "GEGLU",
            "GELU(G x) times U x, with the hidden width of SwiGLU (Shazeer 2020, arXiv:2002.05202).",
            oracle="transformers LlamaMLP with gelu",
            gated=True,
            code={"hidden": "F.gelu({}) * x"},
        ),
    ),
)
GATED = tuple(choice.key for choice in ACTIVATIONS if choice.gated)
POSITIONS: Registry[Choice] = Registry(
    "positions",
    (
        Choice(
            "learned", "Learned", "A learned vector for each position is added to the embedding."
        ),
        Choice(
            "rope",
            "RoPE",
            "Queries and keys are rotated by their position, after QK-norm, with base 10000 and the halves "
            "of a head paired as in Llama (Su et al. 2021, arXiv:2104.09864).",
            oracle="transformers LlamaRotaryEmbedding",
        ),
        Choice(
            "sinusoidal",
            "Sinusoidal",
            "Fixed sines and cosines are added to the embedding (Vaswani et al. 2017, arXiv:1706.03762).",
        ),
        Choice(
            "none", "None", "Nothing gives a token's position, except that it sees no later one."
        ),
    ),
)
MASKS: Registry[Choice] = Registry(
    "mask",
    (
        Choice(
            "causal",
            "Causal",
            "A position attends to itself and earlier ones: a decoder.",
            oracle="torch.nn.TransformerEncoderLayer with a causal mask",
            code={
                "mask": "mask = torch.full((T, T), -1e30, device=x.device).triu(1)"
                "  # no position sees a later one"
            },
        ),
        Choice(
            "none",
            "None (encoder)",
            "A position attends to all: an encoder, for tasks whose answers are not among their inputs.",
            oracle="torch.nn.MultiheadAttention",
            code={"mask": "mask = torch.zeros(T, T, device=x.device)  # each position sees all"},
        ),
    ),
)
SINKS: Registry[Choice] = Registry(
    "sinks",
    (
        Choice("off", "Off", "The weights of attention sum to 1."),
        Choice(
            "on",
            "On",
            "Each head has a learned logit, 0 at first, that takes a share of the softmax and adds nothing "
            "(gpt-oss; Miller 2023).",
            oracle="transformers gpt_oss eager_attention_forward",
            code={
                "weights init": "self.sink = nn.Parameter(torch.zeros(H))",
                "weights": "size = torch.logsumexp(logits, -1).view(B, H, T, 1)\n"
                "x = x * torch.sigmoid(size - self.sink[:, None, None])"
                "  # as one more logit, whose weight is dropped",
            },
        ),
    ),
)
GATED_HEADS: dict[Spot, str] = {
    "queries": "gate = torch.sigmoid(self.gate(x)).unflatten(-1, (H, -1)).transpose(1, 2)",
    "heads": "x = x * gate",
}
ATTN_GATES: Registry[Choice] = Registry(
    "attn_gate",
    (
        Choice("off", "Off", "Heads go to the output matrix as they are."),
        Choice(
            "head",
            "Per head",
            "Each head's result is multiplied by the sigmoid of a linear map of what attention reads, "
            "one number a head and token (arXiv:2505.06708; qiuzh20/gated_attention, modeling_qwen3.py).",
            code={"queries init": "self.gate = nn.Linear(D, H)", **GATED_HEADS},
        ),
        Choice(
            "channel",
            "Per channel",
            "One number for each channel of a head and token (arXiv:2505.06708; Qwen3-Next).",
            oracle="transformers Qwen3NextAttention",
            code={"queries init": "self.gate = nn.Linear(D, D)", **GATED_HEADS},
        ),
    ),
)
TIED: Registry[Choice] = Registry(
    "tied",
    (
        Choice("off", "Off", "The output head has a matrix of its own."),
        Choice(
            "on",
            "On",
            "The output head is the token embedding. With embeddings of variance 1 the logits are divided by "
            "sqrt(width), as in T5 and PaLM (arXiv:2204.02311).",
            code={"head": "self.head.weight = self.tokens.weight"},
        ),
    ),
)
OPTIMIZERS: Registry[Choice] = Registry(
    "optimizer",
    (
        Choice(
            "adamw",
            "AdamW",
            "Adam with decoupled weight decay (beta1, beta2, eps 1e-8).",
            oracle="torch.optim.AdamW",
        ),
        Choice("sgd", "SGD", "Gradient descent with momentum."),
        Choice(
            "muon",
            "Muon",
            "The matrices of the blocks (query, key, value and gate apart) move by their orthogonalised "
            "Nesterov momentum of 0.95, five Newton-Schulz steps in float32, times 0.2 sqrt(longer side), so "
            "that AdamW's rates fit (Jordan 2024; arXiv:2502.16982). AdamW moves the rest.",
            oracle="torch.optim.Muon on each matrix",
        ),
    ),
)
DECAYS: Registry[Choice] = Registry(
    "decay_on",
    (
        Choice("all", "All", "Weight decay shrinks every parameter, norms and biases too."),
        Choice(
            "matrices",
            "Matrices",
            "Weight decay shrinks embeddings, head and the matrices of the blocks, as GPT-2's successors do.",
            oracle="torch.optim.AdamW with groups",
        ),
        Choice(
            "input_norms",
            "Matrices and input norms",
            "It also shrinks the scales of norms that a matrix reads (before a branch, inside it, before the "
            "head), but not those of queries, keys, branch outputs or the stream (arXiv:2605.26895; its "
            "abstract and two summaries were read).",
            oracle="torch.optim.AdamW with groups",
        ),
    ),
)
PARAMETRISATIONS: Registry[Choice] = Registry(
    "parametrisation",
    (
        Choice("standard", "Standard", "One learning rate, decay and eps for all parameters."),
        Choice(
            "mup",
            "muP",
            "With m = width / 32: matrices of the blocks start as at width 32 over sqrt(m), their rate is "
            "divided by m and their decay multiplied by m, eps and logits are divided by m, and attention "
            "divides by the width of a head instead of its root (arXiv:2203.03466, as in nanoGPT-mup).",
            oracle="the recipe of EleutherAI/nanoGPT-mup",
        ),
        Choice(
            "completep",
            "CompleteP",
            "muP, and with m = depth / 2 each branch is divided by m, and so is eps inside the blocks "
            "(arXiv:2505.01618, alpha 1).",
            oracle="the recipe of EleutherAI/nanoGPT-mup, branch completep",
        ),
    ),
)
ROUNDINGS: Registry[Choice] = Registry(
    "rounding",
    (
        Choice("off", "Off", "The stream is float32."),
        Choice(
            "bf16",
            "bfloat16",
            "After the embedding and after each block the stream is rounded to bfloat16; gradients are not.",
            code={"stream": "x = x + (x.detach().to(torch.bfloat16).to(x.dtype) - x.detach())"},
        ),
        Choice(
            "fp16",
            "float16",
            "After the embedding and after each block the stream is rounded to float16, which ends at 65504; "
            "gradients are not rounded.",
            code={"stream": "x = x + (x.detach().to(torch.float16).to(x.dtype) - x.detach())"},
        ),
    ),
)
PATCH_NORMS: Registry[Choice] = Registry(
    "patch_norm",
    (
        Choice(
            "off",
            "Off",
            "Patches are mapped to the stream as they are.",
            oracle="transformers ViTModel",
        ),
        Choice(
            "after",
            "After the embedding",
            "A norm follows the linear map of the patches.",
        ),
        Choice(
            "dual",
            "Dual PatchNorm",
            "A norm before and after the linear map of the patches (Kumar et al. 2023, arXiv:2302.01327).",
        ),
    ),
)
SCHEDULES: Registry[Choice] = Registry(
    "schedule",
    (
        Choice("constant", "Constant", "The learning rate stays after warm-up."),
        Choice("linear", "Linear", "It falls linearly after warm-up, to zero after the last step."),
        Choice("cosine", "Cosine", "It falls along half a cosine after warm-up, to zero."),
    ),
)
DEVICES: Registry[Choice] = Registry(
    "device",
    (
        Choice(
            "auto",
            "Automatic",
            "A CUDA GPU where it is estimated to take less time, else the CPU.",
        ),
        Choice("cpu", "CPU", "The CPU, one thread a lane."),
        Choice("cuda", "CUDA GPU", "An NVIDIA GPU; the run fails with a sentence without one."),
    ),
)
