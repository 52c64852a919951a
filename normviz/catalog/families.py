"""The families of models, as torch-free records: the decoder, other residual stacks, and recurrent nets.

A residual stack (mlp, vit, gnn) has the decoder's wire around its branches, and so its placements. A
recurrent net has no residual stream; its placements are in `catalog.cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .cells import BA, CELLS
from .registry import Registry
from .scheme import Place
from .schemes import SCHEMES

TOKENS = ("markov", "copy", "prose", "prose_split", "masked", "hops")
"""Tasks of tokens that every machine has: all but one's own text."""
LANGUAGE = (*TOKENS, "text")
GRAPHS = ("karate", "digits_graph")
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """Values that a family can't train with: "family is vit and mask is causal, but ...".

    names     the settings that the sentence names
    refuses   whether it refuses these values
    why       how the sentence ends: the reason, and what to choose; {family} stands for its key
    """

    names: tuple[str, ...]
    refuses: Callable[[Values], bool]
    why: str

    def sentence(self, values: Values) -> str:
        """Why it refuses these values."""
        given = " and ".join(f"{name} is {values[name]}" for name in self.names)
        return f"{given}, {self.why.format(**values)}"


def _of(name: str, refuses: Callable[[Values], bool], why: str) -> Rule:
    return Rule(("family", name), refuses, why)


@dataclass(frozen=True)
class Family:
    """A kind of model.

    tasks      keys of the tasks that it learns
    usual      the values of settings that are not given; those of `RunConfig` where they are not named
    lacks      why it does not have a setting, which then keeps its usual value
    rules      the values that it can't train with; the first one that refuses gives the sentence
    first      the first of the two branches of a block, the second is the FFN; None for recurrent nets
    kind       what pasted code calls it
    rows       what a row of its layers is: "layer", or "time step" of an unrolled recurrent net
    positions  the positions of an example, by the length of a sequence
    gates      the vectors that a recurrent cell computes from its inputs
    tape       whether the tape has it
    without    keys of the quantities that it does not have
    oracle     the peer that the tests compare it with
    """

    key: str
    label: str
    sentence: str
    source: str
    tasks: tuple[str, ...]
    usual: Mapping[str, object] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    first: str | None = None
    kind: str = ""
    rows: str = "layer"
    positions: Callable[[int], int] = lambda length: length
    gates: int = 0
    tape: bool = False
    without: tuple[str, ...] = ()
    oracle: str = ""

    @property
    def is_recurrent(self) -> bool:
        """Whether it has cells and no residual stream."""
        return self.first is None

    def refusal(self, values: Values, defaults: Values) -> str | None:
        """A sentence about a task, setting or value that it does not have, or None."""
        given, task = f"family is {self.key}", values["task"]
        if task not in self.tasks:
            learners = either(family.key for family in FAMILIES if task in family.tasks)
            return (
                f"{given} and task is {task}, but it learns {either(self.tasks)}: choose one of them, or "
                f"family={learners}"
            )
        for name, why in self.lacks.items():
            usual = self.usual.get(name, defaults[name])
            if values[name] != usual:
                mended = "" if usual == "" or ": " in why else f": leave {name} at {usual}"
                return f"{given} and {name} is {values[name]}, but {why}{mended}"
        return next((rule.sentence(values) for rule in self.rules if rule.refuses(values)), None)


def either(words: Iterable[str]) -> str:
    """ "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


NO_ATTENTION = dict.fromkeys(
    ("heads", "qk_norm", "v_norm", "positions", "mask", "sinks", "attn_gate", "qk_clip"),
    "it has no attention",
)
NO_TOKENS = {"tied": "it reads no tokens", "text": "it reads no text"}
NO_BASE = {"parametrisation": "muP and CompleteP are defined here for models with attention"}
NO_PATCHES = {"patch_norm": "only a vit reads patches: choose family=vit"}
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
    "loops": "its layers share nothing",
    **NO_PATCHES,
}
UNROLLED: Values = {
    "scheme": "pre_activation",
    "task": "digits",
    "seq_len": 64,
    "depth": 1,
    "batch": 32,
}
"""What is usual of a recurrent net."""
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

OVER_BATCH = ("batchnorm", "powernorm")
ONE_IMAGE = Rule(
    ("norm", "batch"),
    lambda v: v["norm"] in OVER_BATCH and v["task"] == "digits" and v["batch"] == 1,
    "but one image has no variance over a batch: choose a batch of 2 or more, or layernorm",
)
NO_DECODERS_NORM = _of(
    "norm",
    lambda v: v["norm"] in ("gatednorm", "tapernorm"),
    "but that norm is written here for decoders alone: choose another norm",
)
NO_MASK = _of(
    "mask",
    lambda v: v["mask"] != "none",
    "but its class token reads all patches: choose mask=none",
)
SQUARES = _of(
    "seq_len",
    lambda v: v["seq_len"] not in (4, 16, 64),
    "but an image of 8 x 8 pixels has 4, 16 or 64 square patches: choose one of these",
)
STACK = (
    _of(
        "scheme",
        lambda v: v["scheme"] not in SCHEMES,
        "but that is a place in a recurrent net: choose family=rnn or lstm, or another scheme",
    ),
)
STACK_WITHOUT_TOKENS = (
    *STACK,
    _of(
        "scheme",
        lambda v: SCHEMES[v["scheme"]].constraint != "none",
        "whose rule for the weights is defined for tokens: choose another scheme",
    ),
    _of(
        "scheme",
        lambda v: SCHEMES[v["scheme"]].streams != "one",
        "but a {family} has placements of one stream here: choose another scheme",
    ),
)
NOT_OF_ATTENTION = _of(
    "scheme",
    lambda v: SCHEMES[v["scheme"]].slots(Place(1, v["depth"], "attention")).is_about_attention,
    "which is about attention, and it has none: choose another scheme",
)
CELL = (
    _of(
        "norm",
        lambda v: v["norm"] in OVER_BATCH,
        "but its statistics would differ between time steps: choose a norm of each position, such as "
        "layernorm",
    ),
    NO_DECODERS_NORM,
    _of(
        "scheme",
        lambda v: v["scheme"] not in CELLS,
        f"but that is a place around a residual branch: choose {either(CELLS.keys())}",
    ),
    _of(
        "optimizer",
        lambda v: v["optimizer"] == "muon",
        "which is written for residual stacks: choose adamw or sgd",
    ),
    _of(
        "seq_len",
        lambda v: v["task"] == "digits" and 64 % v["seq_len"] != 0,
        "but the 64 pixels of an image are read in equal parts: choose 2, 4, 8, 16, 32 or 64",
    ),
)

FAMILIES: Registry[Family] = Registry(
    "family",
    (
        Family(
            "decoder",
            "Decoder",
            "A language model: causal attention and an FFN in each block.",
            "Radford et al. 2019",
            LANGUAGE,
            lacks=NO_PATCHES,
            rules=STACK,
            first="attention",
            kind="decoder-only transformer",
            tape=True,
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
                **NO_PATCHES,
            },
            rules=(NO_DECODERS_NORM, ONE_IMAGE, *STACK_WITHOUT_TOKENS, NOT_OF_ATTENTION),
            first="first",
            kind="residual MLP",
            positions=lambda length: 1,
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
            rules=(NO_MASK, SQUARES, NO_DECODERS_NORM, *STACK_WITHOUT_TOKENS),
            first="attention",
            kind="vision transformer",
            positions=lambda length: length + 1,
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
                **NO_PATCHES,
            },
            rules=(NO_DECODERS_NORM, *STACK_WITHOUT_TOKENS, NOT_OF_ATTENTION),
            first="messages",
            kind="graph network",
            without=OF_ATTENTION,
            oracle="a sum over networkx neighbours, written in the test",
        ),
        Family(
            "rnn",
            "RNN",
            "A recurrent net: h_t = tanh(W_h h + W_x x + b). Unrolled, it is as deep as its sequence is "
            "long, with the same weights at each time step.",
            "Elman 1990; with a norm " + BA,
            (*TOKENS, "digits"),
            usual=UNROLLED,
            lacks=RECURRENT,
            rules=CELL,
            kind="recurrent net",
            rows="time step",
            gates=1,
            without=(*OF_ATTENTION, *OF_STACKS),
            oracle="torch.nn.RNN",
        ),
        Family(
            "lstm",
            "LSTM",
            "A recurrent net whose gates decide what a cell keeps: c = f c + i g, h = o tanh(c).",
            "Hochreiter and Schmidhuber 1997; with a norm " + BA,
            (*TOKENS, "digits"),
            usual=UNROLLED,
            lacks=RECURRENT,
            rules=CELL,
            kind="LSTM",
            rows="time step",
            gates=4,
            without=(*OF_ATTENTION, *OF_STACKS),
            oracle="torch.nn.LSTM",
        ),
    ),
)


def places_of(family: str) -> tuple[str, ...] | None:
    """The keys of a recurrent family's placements; None for a residual stack, which has the schemes."""
    return CELLS.keys() if FAMILIES[family].is_recurrent else None
