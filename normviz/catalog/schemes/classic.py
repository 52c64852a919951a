"""The two placements everybody argues about, and their ablations."""

from __future__ import annotations

from ..scheme import Place, Scheme, Slots


def norm_after_the_sum(_: Place) -> Slots:
    return Slots(norm_main=True)


def norm_before_the_branch(_: Place) -> Slots:
    return Slots(norm_in=True)


def no_norm(_: Place) -> Slots:
    return Slots()


SCHEMES = (
    Scheme(
        key="pre",
        label="Pre-LN",
        order=10,
        sentence="The norm stands in front of each branch; the residual stream itself is never "
        "normalised until one final norm before the output.",
        trouble="The stream grows with depth, so each deeper block changes it less.",
        source="Baevski and Auli 2018, arXiv:1809.10853; Xiong et al. 2020, arXiv:2002.04745",
        slots=norm_before_the_branch,
        final_norm=True,
    ),
    Scheme(
        key="post",
        label="Post-LN",
        order=20,
        sentence="The norm stands on the residual stream itself, after each sum: the layout of the "
        "original transformer.",
        trouble="With a large initialisation, a deep stack collapses in its first steps: every "
        "token looks the same to the upper blocks.",
        source="Vaswani et al. 2017, arXiv:1706.03762",
        slots=norm_after_the_sum,
        final_norm=False,
    ),
    Scheme(
        key="pre_nofinal",
        label="Pre-LN, no final norm",
        order=30,
        sentence="Pre-LN without the one norm before the output head.",
        trouble="The logits inherit the growth of the stream: the loss starts far above chance in "
        "deep models.",
        source="ablation of Pre-LN",
        slots=norm_before_the_branch,
        final_norm=False,
    ),
    Scheme(
        key="none",
        label="No norm",
        order=90,
        sentence="No norm anywhere: each branch is added to the stream as it is.",
        trouble="The stream grows by a factor in every block unless the initialisation keeps the "
        "branches small.",
        source="the ablation",
        slots=no_norm,
        final_norm=False,
    ),
)
