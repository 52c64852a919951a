"""The families of models, as torch-free records: the decoder, other residual stacks, and recurrent nets.

A residual stack (mlp, vit, gnn) has the decoder's wire around its branches, and so its placements. A
recurrent net has no residual stream; its placements are in `catalog.cells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .cells import CELLS
from .registry import Registry

LANGUAGE = ("markov", "copy", "prose", "prose_split", "masked", "hops", "text")
GRAPHS = ("karate", "digits_graph")
TOKENS_OF_TEXT = ("markov", "copy", "prose", "prose_split", "masked", "hops")


@dataclass(frozen=True)
class Family:
    """A kind of model.

    tasks     keys of the tasks that it learns
    usual     the values of settings that are not given; those of `RunConfig` where they are not named
    lacks     why it does not have a setting, which then keeps its usual value
    first     the first of the two branches of a block, the second is the FFN; None for recurrent nets
    rows      what a row of its layers is: "layer", or "time step" of an unrolled recurrent net
    without   keys of the quantities that it does not have
    oracle    the peer that the tests compare it with
    """

    key: str
    label: str
    sentence: str
    source: str
    tasks: tuple[str, ...]
    usual: Mapping[str, object] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    first: str | None = None
    rows: str = "layer"
    without: tuple[str, ...] = ()
    oracle: str = ""

    @property
    def is_recurrent(self) -> bool:
        """Whether it has cells and no residual stream."""
        return self.first is None


NO_ATTENTION = dict.fromkeys(
    ("heads", "qk_norm", "v_norm", "positions", "mask", "sinks"), "it has no attention"
)
NO_TOKENS = {"tied": "it reads no tokens", "text": "it reads no text"}
NO_BASE = {"parametrisation": "muP and CompleteP are defined here for models with attention"}
OF_ATTENTION = ("grad_qk", "attn_logit_max", "attn_entropy", "attn_sink")
RECURRENT = {
    **NO_ATTENTION,
    **NO_BASE,
    "ffn_ratio": "it has no FFN",
    "activation": "its cells use tanh, and an LSTM's gates the sigmoid",
    "tied": "its head has a matrix of its own",
    "text": "your own text is for the decoder",
    "rounding": "it has no residual stream",
    "branch_gain": "it has no branches",
}
OF_STACKS = (
    "grad_w2",
    "branch_ratio",
    "update_ratio",
    "token_cosine",
    "branch_cosine",
    "branch_in_rms",
    "sum_rms",
    "norm_drift",
    "stream_max_ratio",
    "stream_kurtosis",
)
BA = "Ba et al. 2016, arXiv:1607.06450"

FAMILIES: Registry[Family] = Registry(
    "family",
    (
        Family(
            "decoder",
            "Decoder",
            "A language model: causal attention and an FFN in each block.",
            "Radford et al. 2019",
            LANGUAGE,
            first="attention",
        ),
        Family(
            "mlp",
            "MLP",
            "A residual stack without attention: a block has two FFNs, each in a wire of its own, so that "
            "the formulas of the placements hold with the same L. Each image or node is one position.",
            "residual branches: He et al. 2015, arXiv:1512.03385",
            ("digits", *GRAPHS),
            usual={"task": "digits"},
            lacks={
                **NO_ATTENTION,
                **NO_TOKENS,
                **NO_BASE,
                "seq_len": "each image or node is one position",
            },
            first="first",
            without=OF_ATTENTION,
            oracle="a stack of torch.nn.Linear, written in the test",
        ),
        Family(
            "vit",
            "ViT",
            "A vision transformer: an image is cut into square patches, which become positions after a "
            "class token. Attention sees all positions, and the class token's output is classified.",
            "Dosovitskiy et al. 2020, arXiv:2010.11929",
            ("digits",),
            usual={"task": "digits", "mask": "none", "seq_len": 16},
            lacks=NO_TOKENS,
            first="attention",
            oracle="transformers ViTModel",
        ),
        Family(
            "gnn",
            "GNN",
            "A graph network: attention gives way to messages. A node takes the values of its neighbours "
            "and its own, weighted by 1 / sqrt(degree degree'), and an FFN follows. Each step reads the "
            "whole graph, and a node is a position.",
            "Kipf and Welling 2016, arXiv:1609.02907, with residual branches",
            GRAPHS,
            usual={"task": "karate"},
            lacks={
                **NO_ATTENTION,
                **NO_TOKENS,
                **NO_BASE,
                "seq_len": "its positions are the nodes of the graph",
                "batch": "each step reads the whole graph",
            },
            first="messages",
            without=OF_ATTENTION,
            oracle="a sum over networkx neighbours, written in the test",
        ),
        Family(
            "rnn",
            "RNN",
            "A recurrent net: h_t = tanh(W_h h + W_x x + b). Unrolled, it is as deep as its sequence is "
            "long, with the same weights at each time step.",
            "Elman 1990; with a norm " + BA,
            (*TOKENS_OF_TEXT, "digits"),
            usual={
                "scheme": "pre_activation",
                "task": "digits",
                "seq_len": 64,
                "depth": 1,
                "batch": 32,
            },
            lacks=RECURRENT,
            rows="time step",
            without=(*OF_ATTENTION, *OF_STACKS),
            oracle="torch.nn.RNN",
        ),
        Family(
            "lstm",
            "LSTM",
            "A recurrent net whose gates decide what a cell keeps: c = f c + i g, h = o tanh(c).",
            "Hochreiter and Schmidhuber 1997; with a norm " + BA,
            (*TOKENS_OF_TEXT, "digits"),
            usual={
                "scheme": "pre_activation",
                "task": "digits",
                "seq_len": 64,
                "depth": 1,
                "batch": 32,
            },
            lacks=RECURRENT,
            rows="time step",
            without=(*OF_ATTENTION, *OF_STACKS),
            oracle="torch.nn.LSTM",
        ),
    ),
)


def places_of(family: str) -> tuple[str, ...] | None:
    """The keys of a recurrent family's placements; None for a residual stack, which has the schemes."""
    return CELLS.keys() if FAMILIES[family].is_recurrent else None
