"""nGPT: streams on the unit sphere, and weights that are unit vectors."""

from __future__ import annotations

from dataclasses import replace

from ..scheme import Constant, Gain, Place, Scheme, Slots

FROM_ONE = Gain(1.0, "channel", stored="1/sqrt(d)")
"""nGPT's parametrisation of most of its gains."""
BETWEEN = Slots(
    norm_out=True,
    norm_main=True,
    mix="lerp",
    branch_gain=Gain(0.05, "channel", stored="1/sqrt(d)"),
)


def ngpt(place: Place) -> Slots:
    """Norms after the branch and after the sum, a learned share between stream and branch, and gains of
    queries, keys and the FFN's hidden layer; arXiv:2410.01131."""
    if place.branch == "attention":
        return replace(BETWEEN, unit_qk=True, qk_gain=FROM_ONE)
    return replace(BETWEEN, hidden_gain=Gain(1.0, "channel", unit="sqrt(d)"))


SCHEMES = (
    Scheme(
        key="ngpt",
        label="nGPT",
        order=175,
        family="Norms around the branch",
        sentence="Every token, branch output and weight vector has length 1: a sublayer moves the "
        "stream a learned share alpha of the way to its branch's output, and back to the sphere.",
        trouble="The logits are cosines times s_z, which starts at 1 and has to grow before the loss "
        "can be low: it needs a higher learning rate than Pre-LN, and neither warm-up nor weight "
        "decay. Not the paper's: positions are learned and added (unit vectors too; their sum with "
        "the token is normalised) instead of rotary, the FFN is plain instead of SwiGLU, with "
        "s_u sqrt(d) on its one hidden layer, and branches keep their biases.",
        source="Loshchilov et al. 2024, arXiv:2410.01131; NVIDIA/ngpt, model.py",
        oracle="nGPT-pytorch nGPT, its FFN ungated, its s_qk squared",
        slots=ngpt,
        final_norm=False,
        embed_norm=True,
        norm="l2",
        logit_gain=FROM_ONE,
        constraint="unit_vectors",
        constants=(
            Constant("branch_gain", r"\alpha", r"\text{learned, starts at 0.05}"),
            Constant("qk_gain", r"s_{qk}", r"\text{learned, starts at 1, of unit } q, k"),
            Constant("hidden_gain", r"s_u", r"\text{learned, starts at 1, times } \sqrt{d}"),
            Constant("logit_gain", r"s_z", r"\text{learned, starts at 1, of the logits}"),
        ),
    ),
)
