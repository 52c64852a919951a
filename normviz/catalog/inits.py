"""The initialisations, as torch-free records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .registry import Registry

EMBEDDINGS = ("tokens.weight", "positions.weight", "head.weight", "inputs.weight")
MATRICES = ("qkv.weight", "out.weight", "up.weight", "down.weight", "gate.weight", "cell.weight")
BIASES = ("qkv.bias", "out.bias", "up.bias", "down.bias", "gate.bias", "cell.bias", "inputs.bias")
OF_NORMS = "norm.weight"
"""The role of a matrix inside of a norm. The optimizer treats it as what else is in a norm."""
ROLES = (*EMBEDDINGS, *MATRICES, *BIASES, OF_NORMS)
"""The roles of the parameters that an initialisation draws; those of one role have one distribution."""


@dataclass(frozen=True)
class InitRecord:
    """An initialisation: its distributions in one sentence, its source, and as code.

    `draws` has a `Draw` of `normviz.model.init` for each role, as an expression of the model's sizes: D
    channels, HIDDEN in an FFN, L blocks, V symbols, and the `shape` [outputs, inputs] of the matrix.
    `inputs.weight` is drawn as `tokens.weight`, over sqrt(inputs). Any other role that it does not name
    starts at 0.
    """

    key: str
    label: str
    sentence: str
    source: str
    draws: Mapping[str, str]


XAVIER, FFN = "Draw((6 / (D + D)) ** 0.5)", "Draw((6 / (D + HIDDEN)) ** 0.5)"
XAVIER_REST = {
    "out.weight": XAVIER,
    "up.weight": FFN,
    "down.weight": FFN,
    "gate.weight": XAVIER,
    "cell.weight": XAVIER,
    "norm.weight": "Draw((6 / sum(shape)) ** 0.5)",
}
"""Of all matrices but those of queries, keys and values, and the ends of the model."""


def _gpt2(s: str) -> dict[str, str]:
    """Normal with standard deviation `s`, and less for what writes to the stream."""
    roles = ("tokens", "positions", "head", "qkv", "up", "gate", "cell", "norm")
    small, residual = f"Draw({s}, normal=True)", f"Draw({s} / (2 * L) ** 0.5, normal=True)"
    return {
        **{f"{role}.weight": small for role in roles},
        "out.weight": residual,
        "down.weight": residual,
    }


INITS: Registry[InitRecord] = Registry(
    "init",
    (
        InitRecord(
            "xavier",
            "Xavier",
            "Xavier-uniform for each matrix, with query, key and value apart; biases zero; "
            "embeddings normal with standard deviation 1, positions with 0.5.",
            "Glorot and Bengio 2010; for a transformer Xiong et al. 2020, arXiv:2002.04745",
            {
                "tokens.weight": "Draw(1.0, normal=True)",
                "positions.weight": "Draw(0.5, normal=True)",
                "head.weight": "Draw((6 / (D + V)) ** 0.5)",
                "qkv.weight": XAVIER,
                **XAVIER_REST,
            },
        ),
        InitRecord(
            "fairseq",
            "fairseq",
            "Xavier whose queries, keys and values start 1/sqrt(2) times as large; positions and output "
            "head normal with standard deviation 1/sqrt(d). Biases are zero, as in fairseq's releases up "
            "to 0.9; later ones draw the FFN as PyTorch does.",
            "facebookresearch/fairseq, modules/multihead_attention.py and models/transformer.py",
            {
                "tokens.weight": "Draw(1.0, normal=True)",
                "positions.weight": "Draw(D**-0.5, normal=True)",
                "head.weight": "Draw(D**-0.5, normal=True)",
                "qkv.weight": "Draw((6 / (D + 3 * D)) ** 0.5)",
                **XAVIER_REST,
            },
        ),
        InitRecord(
            "torch",
            "PyTorch",
            "What torch.nn.TransformerEncoderLayer does: Xavier-uniform over the fused query, key "
            "and value matrix, the other matrices U(-1/sqrt(n), 1/sqrt(n)) with n inputs; "
            "branches come out smaller than with Xavier.",
            "torch.nn.TransformerEncoderLayer",
            {
                "tokens.weight": "Draw(1.0, normal=True)",
                "positions.weight": "Draw(0.5, normal=True)",
                "head.weight": "Draw((6 / (D + V)) ** 0.5)",
                "qkv.weight": "Draw((6 / (D + 3 * D)) ** 0.5)",
                "out.weight": "Draw(D**-0.5)",
                "up.weight": "Draw(D**-0.5)",
                "up.bias": "Draw(D**-0.5)",
                "down.weight": "Draw(HIDDEN**-0.5)",
                "down.bias": "Draw(HIDDEN**-0.5)",
                "gate.weight": "Draw(D**-0.5)",
                "cell.weight": "Draw(D**-0.5)",
                "cell.bias": "Draw(D**-0.5)",
                "norm.weight": "Draw(shape[1] ** -0.5)",
            },
        ),
        InitRecord(
            "gpt2",
            "GPT-2",
            "Normal with standard deviation 0.02 everywhere, the two matrices that write to the stream "
            "divided by sqrt(2L); biases zero.",
            "Radford et al. 2019",
            _gpt2("0.02"),
        ),
        InitRecord(
            "gpt2_width",
            "GPT-2, width-scaled",
            "GPT-2's with 0.02 multiplied by sqrt(768 / width), so that narrow models start with "
            "branches as strong as GPT-2's.",
            "GPT-2's rule, scaled",
            _gpt2("0.02 * (768 / D) ** 0.5"),
        ),
    ),
)
