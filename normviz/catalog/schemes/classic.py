"""Pre-LN and Post-LN, placements between the two, and their ablations."""

from __future__ import annotations

from ..scheme import Constant, Gain, Matrix, Place, Scheme, Slots


def norm_after_the_sum(_: Place) -> Slots:
    """Post-LN, N(x + F(x)); arXiv:1706.03762."""
    return Slots(norm_main=True)


def norm_before_the_branch(_: Place) -> Slots:
    """Pre-LN, x + F(N(x)); arXiv:1809.10853 and arXiv:2002.04745."""
    return Slots(norm_in=True)


def norm_before_and_after(_: Place) -> Slots:
    """A norm before the branch and one after the sum, N(x + F(N(x)))."""
    return Slots(norm_in=True, norm_main=True)


def after_the_sum_of_a_smaller_branch(place: Place) -> Slots:
    """Post-LN with a smaller branch, N(x + F(x) / sqrt(2L))."""
    return Slots(norm_main=True, branch_gain=Gain((2 * place.depth) ** -0.5))


def smaller_in_lower_blocks(place: Place, _: Matrix) -> float:
    """Weight gain 1 / (L - b + 1) of block b; arXiv:2203.00555, section 3."""
    return 1.0 / (place.depth - place.block + 1)


def post_below_pre_above(place: Place) -> Slots:
    """Post-LN in the first L // 4 blocks, Pre-LN in the others; Mix-LN, arXiv:2412.13795."""
    return Slots(norm_main=True) if place.block <= place.depth // 4 else Slots(norm_in=True)


RAMP = 0.25
"""Share of the run after which BranchNorm's branches are fully on."""


def after_the_sum_of_a_rising_branch(_: Place) -> Slots:
    """Post-LN whose branch gain rises from 0 to 1, N(x + a F(x)); after arXiv:2305.02790."""
    return Slots(norm_main=True, branch_gain=Gain(ramp=RAMP))


SCHEMES = (
    Scheme(
        key="pre",
        label="Pre-LN",
        order=10,
        family="Pre-LN and Post-LN",
        sentence="The norm is at the start of each branch; the residual stream itself is never "
        "normalised until one final norm before the output.",
        trouble="The stream grows with depth, so deeper blocks change it less and less on the whole.",
        source="Baevski and Auli 2018, arXiv:1809.10853; Xiong et al. 2020, arXiv:2002.04745",
        used_by="GPT-2, Llama, Qwen, DeepSeek-V3",
        oracle="torch TransformerEncoderLayer; transformers GPT2Model; transformers LlamaModel",
        slots=norm_before_the_branch,
        final_norm=True,
    ),
    Scheme(
        key="post",
        label="Post-LN",
        order=20,
        family="Pre-LN and Post-LN",
        sentence="The norm is on the residual stream itself, after each sum: the layout of the "
        "original transformer.",
        trouble="With a large initialisation, a deep stack collapses in its first steps: every "
        "token looks the same to the upper blocks.",
        source="Vaswani et al. 2017, arXiv:1706.03762",
        used_by="the original Transformer, BERT, RoBERTa, BART, OPT-350m",
        oracle="torch TransformerEncoderLayer; "
        "transformers OPTModel; "
        "x-transformers Decoder(pre_norm=False)",
        slots=norm_after_the_sum,
        final_norm=False,
    ),
    Scheme(
        key="pre_nofinal",
        label="Pre-LN, no final norm",
        order=105,
        family="Pre-LN and Post-LN",
        sentence="Pre-LN without the one norm before the output head.",
        trouble="The logits inherit the growth of the stream: the loss starts far above chance in "
        "deep models.",
        source="ablation of Pre-LN",
        oracle="transformers OPTModel; x-transformers Decoder(pre_norm_has_final_norm=False)",
        slots=norm_before_the_branch,
        final_norm=False,
    ),
    Scheme(
        key="pre_post_main",
        label="Pre- and Post-LN",
        order=110,
        family="Pre-LN and Post-LN",
        sentence="A norm at the start of each branch and another on the stream after each sum.",
        trouble="The stream is normalised at every sublayer, so a gradient passes every norm on "
        "its way down, as in Post-LN.",
        source="x-transformers, pre_and_post_norm",
        used_by="looped language models",
        oracle="x-transformers Decoder(pre_and_post_norm)",
        slots=norm_before_and_after,
        final_norm=False,
    ),
    Scheme(
        key="mixln",
        label="Mix-LN",
        order=120,
        family="Pre-LN and Post-LN",
        sentence="Post-LN in the first quarter of the blocks, Pre-LN in the rest.",
        trouble="The Post-LN part brings Post-LN's troubles along. Below 4 blocks it is Pre-LN.",
        source="Li et al. 2024, arXiv:2412.13795",
        slots=post_below_pre_above,
        final_norm=True,
    ),
    Scheme(
        key="post_scaled",
        label="Post-LN, branch / sqrt(2L)",
        order=122,
        family="Pre-LN and Post-LN",
        sentence="Post-LN whose branches are divided by the square root of the number of sublayers.",
        trouble="The skip path outweighs each branch in deep models, so a block changes little at "
        "first.",
        source="GPT-2's factor (Radford et al. 2019), moved to Post-LN",
        slots=after_the_sum_of_a_smaller_branch,
        final_norm=False,
        constants=(Constant("branch_gain", "c", r"1/\sqrt{2L}", "(2 * L) ** -0.5"),),
    ),
    Scheme(
        key="post_init",
        label="Post-LN-init",
        order=124,
        family="Pre-LN and Post-LN",
        sentence="Post-LN whose matrices in block b start 1 / (L - b + 1) times as large: the lower, "
        "the smaller.",
        trouble="A probe of what harms Post-LN rather than a recipe. In the paper's models the top "
        "block starts with a larger gradient than in Post-LN, here with a smaller one (claim C7: 18 "
        "blocks).",
        source="Wang et al. 2022, arXiv:2203.00555, section 3",
        slots=norm_after_the_sum,
        final_norm=False,
        weight_gain=smaller_in_lower_blocks,
        constants=(Constant("weight_gain", r"\beta", "1/(L - b + 1)"),),
    ),
    Scheme(
        key="branchnorm",
        label="BranchNorm",
        order=126,
        family="Pre-LN and Post-LN",
        sentence="Post-LN whose branches are multiplied by a number that rises from 0 to 1 over the first "
        "quarter of the run, the same in all blocks.",
        trouble="At step 0 every branch is off. The straight line over a quarter of the run is ours.",
        source="Liu et al. 2023, arXiv:2305.02790 (the equation from a public summary)",
        slots=after_the_sum_of_a_rising_branch,
        final_norm=False,
        constants=(Constant("branch_gain", "a", r"\min(1, t / T)", f"{RAMP}"),),
    ),
    Scheme(
        key="none",
        label="No norm",
        order=90,
        family="No norm",
        sentence="No norm anywhere: each branch is added to the stream as it is.",
        trouble="The stream grows by a factor in every block unless the initialisation keeps the "
        "branches small.",
        source="the ablation",
        slots=lambda _: Slots(),
        final_norm=False,
    ),
)
