"""What can be measured in every layer: keys, labels, units, definitions and sources (torch-free).

Blocks are numbered 1..L; layer 0 is the embedding output (after the embedding norm where a scheme
has one). All gradients are of the mean token loss, before clipping. The keys are an interface:
links, exports and stored runs use them. `normviz.probes` holds the instrument of each record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .registry import Registry


@dataclass(frozen=True)
class ProbeRecord:
    """One quantity per layer.

    `first_layer` is 0 where the quantity exists for the embedding output too, else 1.
    `shown` is what charts draw: the value itself, or one minus it (a cosine within 1e-9 of 1 is
    visible only so). `domain` is the range of the axis before the first measurement.
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

    @property
    def axis_unit(self) -> str:
        """Unit of the drawn value, for an axis without the label."""
        return f"1 - {self.unit}" if self.shown == "one_minus" else self.unit

    @property
    def axis_label(self) -> str:
        """Label and unit as charts print them."""
        label = f"1 - {self.label}" if self.shown == "one_minus" else self.label
        return f"{label} ({self.unit})"


PROBES: Registry[ProbeRecord] = Registry(
    "probe",
    (
        ProbeRecord(
            "grad_block",
            "Parameter gradient",
            "L2 norm",
            "L2 norm of the gradient of the mean token loss with respect to all parameters of a "
            "block.",
            "Xiong et al. 2020, arXiv:2002.04745, figure 3",
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
            "L2 norm of the gradient with respect to the block's query and key weights.",
            "Noci et al. 2022, arXiv:2206.03126",
        ),
        ProbeRecord(
            "grad_hidden",
            "Hidden-state gradient",
            "L2 norm",
            "L2 norm of the gradient of the mean token loss with respect to the residual stream "
            "after the block, over all positions and sequences of the batch.",
            "Liu et al. 2020, arXiv:2004.08249",
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
    ),
)
