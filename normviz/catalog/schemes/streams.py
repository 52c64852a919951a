"""Several streams, or all earlier values, in place of one residual stream."""

from __future__ import annotations

from ..scheme import Place, Scheme, Slots


def half_the_first_values(place: Place) -> Slots:
    """Pre-LN whose attention takes half of its values from block 1; ResFormer, arXiv:2410.17897."""
    return Slots(norm_in=True, first_value=0.5 if place.branch == "attention" else 0.0)


WRITE_AND_READ = r"H^{+} = R^{\top} H + p^{\top} F\left(\mathrm{N}(q\,H)\right)"

SCHEMES = (
    Scheme(
        key="value_residual",
        label="Value residual",
        order=400,
        family="Other paths",
        sentence="Pre-LN whose attention mixes its values half and half with those of the first "
        "block.",
        trouble="The mix is the fixed half of the published code; a learned one is not included.",
        source="Zhou et al. 2024 (ResFormer), arXiv:2410.17897",
        oracle="x-transformers Decoder(add_value_residual)",
        slots=half_the_first_values,
        final_norm=True,
    ),
    Scheme(
        key="denseformer",
        label="DenseFormer",
        order=410,
        family="Several streams",
        sentence="Pre-LN with a learned average over the outputs of all earlier blocks after each "
        "block; it starts as Pre-LN.",
        trouble="Memory grows with the square of depth.",
        source="Pagliardini et al. 2024, arXiv:2402.02622",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="dense",
        history=2,
        equations=(
            r"\tilde{x}_b = x_{b-1} + \text{Pre-LN block}",
            r"x_b = \textstyle\sum_{i \le b} \alpha_{b,i}\,\tilde{x}_i,\quad \tilde{x}_0 = x_0",
        ),
    ),
    Scheme(
        key="attnres",
        label="Attention residuals",
        order=420,
        family="Several streams",
        sentence="Each sublayer reads an attention-weighted average of the embedding and of all "
        "earlier branch outputs, by a learned query; there is no running sum.",
        trouble="Queries start at 0, which makes plain averages at first. Memory grows with the "
        "square of depth.",
        source="Kimi 2026, arXiv:2603.15031",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="attention",
        history=10,
        equations=(
            r"v_0 = x_0,\quad v_l = F_l\left(\mathrm{N}\left(h_l\right)\right)",
            r"h_{l+1} = \textstyle\sum_{i \le l} \mathrm{softmax}_i\left(w_l^{\top} "
            r"\mathrm{RMS}(v_i)\right) v_i",
        ),
    ),
    Scheme(
        key="delta_attnres",
        label="Delta attention residuals",
        order=425,
        family="Several streams",
        sentence="Pre-LN whose branches read the stream plus an attention-weighted average of the embedding "
        "and of all earlier branch outputs, by a learned query.",
        trouble="Queries start at 0, which makes plain averages at first. Memory grows with the square of "
        "depth. The keys' norm has no scale of its own, which the query can do.",
        source="Luo et al. 2026, arXiv:2605.18855; wdlctc/delta-attention-residuals-code (mode delta)",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="delta_attention",
        history=10,
        equations=(
            r"v_0 = x_0,\quad h = x + \textstyle\sum_{i < l} \mathrm{softmax}_i\left(w_l^{\top} "
            r"\mathrm{RMS}(v_i)\right) v_i",
            r"v_l = F\left(\mathrm{N}\left(h\right)\right),\quad x^{+} = x + v_l",
        ),
    ),
    Scheme(
        key="residual_dual",
        label="ResiDual",
        order=430,
        family="Several streams",
        sentence="A Post-LN stream that all branches read, beside a second one that only adds "
        "their outputs up; the end adds both.",
        trouble="Branches see the Post-LN stream alone.",
        source="Xie et al. 2023, arXiv:2304.14802",
        slots=lambda _: Slots(norm_main=True),
        final_norm=False,
        streams="dual",
        equations=(
            r"x^{+} = \mathrm{N}\left(x + F(x)\right),\quad r^{+} = r + F(x)",
            r"\text{at the end: } x + \mathrm{N}(r)",
        ),
    ),
    Scheme(
        key="siamese",
        label="SiameseNorm",
        order=440,
        family="Several streams",
        sentence="A Post-LN stream X and a Pre-LN stream Y that share every branch.",
        trouble="The factor of O is that of the code, for vision and for language models.",
        source="SiameseNorm 2026, arXiv:2602.08064",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="siamese",
        equations=(
            r"O = F\left(\mathrm{N}\left(X + \mathrm{N}(Y)\right)\right)",
            r"X^{+} = \mathrm{N}\left(X + O / \sqrt{2b}\right),\quad Y^{+} = Y + O",
            r"\text{at the end: } \mathrm{N}(X) + \mathrm{N}(Y)",
        ),
    ),
    Scheme(
        key="hyper",
        label="Hyper-connections",
        order=450,
        family="Several streams",
        sentence="Four copies of the stream; learned, token-dependent matrices say what a branch "
        "reads, how the copies mix, and where its output goes.",
        trouble="The product of many mixtures is not bounded. The paper scales the initial output "
        "matrices; here they start as chosen. The matrices read copies divided by their RMS; the "
        "paper's listing has a LayerNorm there.",
        source="Zhu et al. 2024, arXiv:2409.19606",
        oracle="hyper-connections HyperConnections, its RMSNorm with our eps",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="hyper",
        equations=(
            r"h = A_m^{\top} H,\quad H^{+} = A_r^{\top} H + B^{\top} "
            r"F\left(\mathrm{N}(h)\right)",
            r"A, B = \text{learned} + s \tanh\left(\mathrm{RMS}(H)\,W\right)",
        ),
    ),
    Scheme(
        key="mhc",
        label="mHC",
        order=460,
        family="Several streams",
        sentence="Hyper-connections whose mixing matrix is doubly stochastic, so that the copies "
        "neither grow nor vanish by being mixed.",
        trouble="The biases start at 0, as in public code, which mixes all copies evenly and so "
        "starts far from the identity; the paper's own start is not known to us.",
        source="DeepSeek 2025, arXiv:2512.24880",
        used_by="DeepSeek-V4, GLM-5.3-Flash",
        oracle="transformers DeepseekV4DecoderLayer",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="manifold",
        equations=(
            WRITE_AND_READ,
            r"q = \sigma(\cdot),\quad p = 2\sigma(\cdot)",
            r"R = \text{Sinkhorn}_{20}(\exp \cdot)",
        ),
    ),
    Scheme(
        key="mhc_lite",
        label="mHC-lite",
        order=470,
        family="Several streams",
        sentence="Hyper-connections whose mixing matrix is an average of all 24 permutations of the copies, "
        "with softmax weights: doubly stochastic without rounds.",
        trouble="The number of weights grows with the factorial of the number of copies. It starts as the "
        "identity up to exp(-8). The end averages the copies where the published code adds them.",
        source="Yang and Gao 2026, arXiv:2601.05732; the code of arXiv:2601.21579, wz1119/KromHC",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="permuted",
        equations=(
            WRITE_AND_READ,
            r"q = \sigma(\cdot),\quad p = 2\sigma(\cdot)",
            r"R = \textstyle\sum_i \mathrm{softmax}_i(\cdot)\,P_i",
        ),
    ),
    Scheme(
        key="kromhc",
        label="KromHC",
        order=475,
        family="Several streams",
        sentence="Hyper-connections whose mixing matrix is the Kronecker product of two matrices that "
        "exchange two copies with a weight: doubly stochastic, with two weights in all.",
        trouble="Only a part of the doubly stochastic matrices can be made. It starts as the identity up to "
        "exp(-8). The end averages the copies where the published code adds them.",
        source="Zhou et al. 2026, arXiv:2601.21579; wz1119/KromHC",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="kronecker",
        equations=(
            WRITE_AND_READ,
            r"q = \sigma(\cdot),\quad p = 2\sigma(\cdot)",
            r"R = U_1 \otimes U_2,\quad U_k = a_k I + (1 - a_k) S,\quad a_k = \sigma(\cdot)",
        ),
    ),
    Scheme(
        key="hc_identity",
        label="Hyper-connections, unmixed",
        order=480,
        family="Several streams",
        sentence="Hyper-connections whose copies are never mixed: branches read from and write to all four.",
        trouble="The ablation of the mixing matrix; what is read and written starts as in KromHC's code.",
        source="the ablation R = I of arXiv:2512.24880 and arXiv:2601.21579",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="unmixed",
        equations=(
            r"H^{+} = H + p^{\top} F\left(\mathrm{N}(q\,H)\right)",
            r"q = \sigma(\cdot),\quad p = 2\sigma(\cdot)",
        ),
    ),
)
