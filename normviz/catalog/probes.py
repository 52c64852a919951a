"""What can be measured in every layer: keys, labels, units, definitions and sources (torch-free).

Blocks are numbered 1..L; layer 0 is the embedding output (after the embedding norm where a scheme
has one). All gradients are of the loss, a mean over the positions that count, before clipping. The keys are
an interface: links, exports and stored runs use them. `normviz.training.probes` holds the instrument of
each record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .families import FAMILIES
from .registry import Registry


@dataclass(frozen=True)
class ProbeRecord:
    """One quantity per layer.

    `first_layer` is 0 where the quantity exists for the embedding output too, else 1.
    `shown` is what charts draw: the value itself, or one minus it (a cosine within 1e-9 of 1 is
    visible only so). `domain` is the range of the axis before the first measurement. `streams` are the
    kinds of state (`catalog.STREAMS`) that have the quantity; empty where all have it. `group` is the
    heading in a list to choose from; those without one come first. `rounds_with` is the key of a
    quantity: values below ROUNDING times that one are rounding, and charts draw 0. `elsewhere` says what
    the quantity is in other families than the decoder.
    """

    key: str
    label: str
    unit: str
    definition: str
    source: str
    first_layer: Literal[0, 1] = 1
    shown: Literal["value", "one_minus"] = "value"
    scale: Literal["log", "linear"] = "log"
    domain: tuple[float, float] = (1e-4, 1e1)
    streams: tuple[str, ...] = ()
    group: str | None = None
    rounds_with: str | None = None
    elsewhere: str | None = None

    @property
    def whole(self) -> str:
        """The definition for models of all families."""
        return " ".join(filter(None, (self.definition, self.elsewhere)))

    @property
    def title(self) -> str:
        """What charts draw: the label, or "1 - token cosine"."""
        if self.shown == "value":
            return self.label
        return f"1 - {self.label[0].lower()}{self.label[1:]}"

    @property
    def axis_label(self) -> str:
        """Title and unit as charts print them."""
        return f"{self.title} ({self.unit})"


ROUNDING = 2.0**-24
"""Unit roundoff of float32. Compared with float64, in Post-LN, Pre-LN, Peri-LN and DeepNorm of 12 to 48
blocks, the query and key gradient is off by up to 2 times this share of the block's gradient, and by 0.01
to 0.5 times where the tokens of Post-LN are alike and the true gradient is smaller than that."""
OUTLIERS, INSIDE = "Outliers", "Inside a block"
TWO_STREAMS = ("dual", "siamese")
TWO_PAPERS = "Xie et al. 2023, arXiv:2304.14802; SiameseNorm, arXiv:2602.08064"


def _of_two_streams(key: str, label: str, which: str) -> tuple[ProbeRecord, ...]:
    """RMS, gradient and token cosine of one of the two streams of ResiDual and SiameseNorm; the other probes
    of the stream are of both together."""
    where = f"of {which}, one of the two of ResiDual and SiameseNorm, after the block"
    return (
        ProbeRecord(
            f"{key}_rms",
            f"{label} RMS",
            "RMS",
            f"Root mean square {where}, over all positions, sequences and channels.",
            TWO_PAPERS,
            first_layer=0,
            domain=(1e-1, 1e2),
            streams=TWO_STREAMS,
            group="Each of two streams",
        ),
        ProbeRecord(
            f"{key}_grad",
            f"{label} gradient",
            "L2 norm",
            f"L2 norm of the gradient of the loss with respect to the values {where}, over all "
            "positions and sequences of the batch.",
            TWO_PAPERS,
            first_layer=0,
            domain=(1e-3, 1e0),
            streams=TWO_STREAMS,
            group="Each of two streams",
        ),
        ProbeRecord(
            f"{key}_cosine",
            f"{label} token cosine",
            "mean pairwise cosine",
            "Mean cosine similarity between the vectors of all pairs of different positions of a sequence, "
            f"{where}. Charts draw one minus it.",
            TWO_PAPERS,
            first_layer=0,
            shown="one_minus",
            domain=(1e-6, 1e0),
            streams=TWO_STREAMS,
            group="Each of two streams",
        ),
    )


PROBES: Registry[ProbeRecord] = Registry(
    "probe",
    (
        ProbeRecord(
            "grad_block",
            "Parameter gradient",
            "L2 norm",
            "L2 norm of the gradient of the loss with respect to all parameters of a block.",
            "Xiong et al. 2020, arXiv:2002.04745, figure 3",
            elsewhere="Of a recurrent net: of what a time step adds to the gradient of its matrices.",
        ),
        ProbeRecord(
            "grad_w2",
            "Second FFN matrix gradient",
            "L2 norm",
            "L2 (Frobenius) norm of the gradient with respect to the block's second FFN matrix.",
            "Xiong et al. 2020, arXiv:2002.04745, theorem 1",
        ),
        ProbeRecord(
            "grad_qk",
            "Query and key gradient",
            "L2 norm",
            "L2 norm of the gradient with respect to the block's query and key weights. Charts show 0 where "
            "it is below 6e-08 of the gradient of the whole block: that is rounding of float32.",
            "Noci et al. 2022, arXiv:2206.03126",
            rounds_with="grad_block",
        ),
        ProbeRecord(
            "grad_hidden",
            "Hidden-state gradient",
            "L2 norm",
            "L2 norm of the gradient of the loss with respect to the residual stream "
            "after the block, over all positions and sequences of the batch.",
            "Liu et al. 2020, arXiv:2004.08249",
            elsewhere="Of a recurrent net: to the hidden states of a time step; step 0 is the state before "
            "the first, which is 0.",
            first_layer=0,
            domain=(1e-3, 1e0),
        ),
        ProbeRecord(
            "stream_rms",
            "Residual stream RMS",
            "RMS",
            "Root mean square of the residual stream after the block, over all positions, "
            "sequences and channels.",
            "Xiong et al. 2020, arXiv:2002.04745, lemma 2",
            elsewhere="Of a recurrent net: of the hidden states of a time step.",
            first_layer=0,
            domain=(1e-1, 1e2),
        ),
        ProbeRecord(
            "branch_ratio",
            "Branch-to-stream ratio",
            "RMS / RMS",
            "RMS of the branch output over RMS of the stream it is added to, both as they enter "
            "the sum (with the scheme's gains); mean of the attention and the FFN sublayer.",
            "Liu et al. 2020, arXiv:2004.08249",
            domain=(1e-2, 1e1),
        ),
        ProbeRecord(
            "update_ratio",
            "Update-to-weight ratio",
            "L2 / L2",
            "L2 norm of the optimizer's step in a block's parameters over the L2 norm of those "
            "parameters before the step.",
            "Wortsman et al. 2023, arXiv:2309.14322",
            domain=(1e-4, 1e-1),
        ),
        ProbeRecord(
            "token_cosine",
            "Token cosine",
            "mean pairwise cosine",
            "Mean cosine similarity between the residual-stream vectors of all pairs of different "
            "positions of a sequence: 1 means the block no longer tells tokens apart. Charts draw "
            "one minus it.",
            "Dong et al. 2021, arXiv:2103.03404",
            elsewhere="In a graph a position is a node, in an MLP an example of the batch.",
            first_layer=0,
            shown="one_minus",
            domain=(1e-6, 1e0),
        ),
        ProbeRecord(
            "attn_logit_max",
            "Largest attention logit",
            "absolute value",
            "Largest absolute attention logit q.k / sqrt(head width) of the block among the "
            "positions that may be attended to.",
            "Wortsman et al. 2023, arXiv:2309.14322, section 3.1",
            domain=(1e-1, 1e2),
        ),
        ProbeRecord(
            "attn_entropy",
            "Attention entropy",
            "fraction of its maximum",
            "Entropy of the attention weights divided by the entropy of uniform weights over the "
            "visible positions; mean over heads, sequences and all positions but the first.",
            "Zhai et al. 2023, arXiv:2303.06296",
            scale="linear",
            domain=(0.0, 1.0),
        ),
        ProbeRecord(
            "stream_max",
            "Largest stream value",
            "absolute value",
            "Largest absolute number of the residual stream after the block, over all positions, "
            "sequences and channels.",
            "Sun et al. 2024, arXiv:2402.17762",
            elsewhere="Of a recurrent net: of the hidden states of a time step.",
            first_layer=0,
            domain=(1e0, 1e2),
            group=OUTLIERS,
        ),
        ProbeRecord(
            "stream_max_ratio",
            "Largest-to-median stream value",
            "absolute value / median",
            "Largest absolute number of the residual stream after the block over the median absolute "
            "number, both over all positions, sequences and channels of the batch. The paper calls an "
            "activation massive where it is above 100 and at least about 1,000 times the median.",
            "Sun et al. 2024, arXiv:2402.17762, section 2",
            first_layer=0,
            domain=(1e0, 1e2),
            group=OUTLIERS,
        ),
        ProbeRecord(
            "stream_kurtosis",
            "Channel kurtosis",
            "mean s^4 / (mean s^2)^2",
            "Kurtosis of the residual stream's channels after the block: s is the RMS of a channel over "
            "all positions and sequences, the means are over channels, and nothing is centred. 1: all "
            "channels are equally large; the width: all but one are zero.",
            "He et al. 2024, arXiv:2405.19279, equation 1",
            first_layer=0,
            domain=(1e0, 1e1),
            group=OUTLIERS,
        ),
        ProbeRecord(
            "attn_sink",
            "Attention on the first token",
            "mean weight",
            "Attention weight that the later positions give to the first one; mean over positions, heads "
            "and sequences. Uniform attention over T positions gives the mean of 1/2 to 1/T.",
            "Xiao et al. 2023, arXiv:2309.17453; as a mean over positions Gu et al. 2024, "
            "arXiv:2410.10781, who count the first position too",
            scale="linear",
            domain=(0.0, 1.0),
            group=OUTLIERS,
        ),
        ProbeRecord(
            "branch_cosine",
            "Branch-to-stream cosine",
            "cosine",
            "Cosine of the angle between the branch output and the stream it is added to, both as they "
            "enter the sum, at each position (0 where one of them is zero); mean over positions and "
            "sequences, and of the attention and the FFN sublayer.",
            "Oh et al. 2025, arXiv:2505.11881",
            scale="linear",
            domain=(-1.0, 1.0),
            group=INSIDE,
        ),
        ProbeRecord(
            "branch_in_rms",
            "Branch input RMS",
            "RMS",
            "Root mean square of what a branch reads, over all positions, sequences and channels; mean of "
            "the attention and the FFN sublayer.",
            "the norm's output in Xiong et al. 2020, arXiv:2002.04745",
            domain=(1e-1, 1e1),
            group=INSIDE,
        ),
        ProbeRecord(
            "sum_rms",
            "Sum RMS",
            "RMS",
            "Root mean square of the sum of stream and branch, before the norm that some placements put "
            "after it, over all positions, sequences and channels; mean of the attention and the FFN "
            "sublayer.",
            "the input of the Post-LN norm in Xiong et al. 2020, arXiv:2002.04745",
            domain=(1e-1, 1e2),
            group=INSIDE,
        ),
        ProbeRecord(
            "norm_drift",
            "Norm scale drift",
            "RMS of the change",
            "Root mean square of the change, since the start of the run, of all learned norm scales of a "
            "block (gamma; of most norms it starts at 1). 0 in a block whose norms learn no scale.",
            "NormViz; scales during training: arXiv:2605.26895",
            domain=(1e-3, 1e0),
            group=INSIDE,
        ),
        *_of_two_streams(
            "normed",
            "Normed stream",
            "the stream that passes a norm after every sum",
        ),
        *_of_two_streams("summed", "Summed stream", "the stream that is only added to"),
    ),
)
"""New quantities go to the end: the rows of a run are the first of this list, and pages list them so."""


def recorded_by(streams: str, family: str = "decoder") -> tuple[str, ...]:
    """The keys of the probes that runs with this kind of state and family record, in their order."""
    there = (probe for probe in PROBES if not probe.streams or streams in probe.streams)
    return tuple(probe.key for probe in there if probe.key not in FAMILIES[family].without)
