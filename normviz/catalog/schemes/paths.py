"""Placements with other skip paths, and with attention and FFN in parallel."""

from __future__ import annotations

from ..scheme import ONE, ZERO, Constant, Gain, Matrix, Place, Scheme, Slots


def bottom_to_top(place: Place) -> Slots:
    """Post-LN that adds the block's input to the FFN's sum too; B2T, arXiv:2206.00330."""
    return Slots(norm_main=True, block_gain=ONE if place.branch == "ffn" else ZERO)


def inverse_root_depth(place: Place, _: Matrix) -> float:
    """Weight gain 1/sqrt(L), as in the published code of B2T, arXiv:2206.00330."""
    return place.depth**-0.5


def spannorm(place: Place) -> Slots:
    """Post-LN whose FFN is added to the block's input, not to attention's result; arXiv:2601.22580."""
    if place.branch == "attention":
        return Slots(norm_main=True)
    return Slots(norm_main=True, skip_gain=ZERO, block_gain=ONE)


def parallel_two_norms(place: Place) -> Slots:
    """Pre-LN whose FFN reads the block's input through its own norm; GPT-NeoX, arXiv:2204.06745."""
    if place.branch == "attention":
        return Slots(norm_in=True)
    return Slots(norm_in=True, branch_reads="block")


def parallel_one_norm(place: Place) -> Slots:
    """Pre-LN whose FFN reads the output of attention's norm; GPT-J, and PaLM, arXiv:2204.02311."""
    if place.branch == "attention":
        return Slots(norm_in=True)
    return Slots(norm_in=True, branch_reads="block", shares_norm=True)


def skip_to_the_embedding(place: Place) -> Slots:
    """Pre-LN whose attention starts from r x + lambda x_0, both learned; karpathy/nanochat, gpt.py."""
    if place.branch == "ffn":
        return Slots(norm_in=True)
    down = (place.block - 1) / max(1, place.depth - 1)
    return Slots(
        norm_in=True,
        stream_gain=Gain(1.15 - 0.10 * down, "sublayer"),
        embed_gain=Gain(0.20 - 0.15 * down, "sublayer"),
    )


SCHEMES = (
    Scheme(
        key="b2t",
        label="B2T",
        order=340,
        family="Other paths",
        sentence="Post-LN with one more skip path in each block, from its input to the sum in "
        "front of its last norm; all matrices of the blocks start multiplied by 1/sqrt(L).",
        trouble="The scaled start is the published code's, and part of the effect.",
        source="Takase et al. 2022, arXiv:2206.00330",
        slots=bottom_to_top,
        final_norm=False,
        weight_gain=inverse_root_depth,
        constants=(Constant("weight_gain", r"\beta", "1/\\sqrt{L}"),),
    ),
    Scheme(
        key="spannorm",
        label="SpanNorm",
        order=350,
        family="Other paths",
        sentence="Post-LN whose FFN adds to what entered the block rather than to what attention "
        "made of it; the embedding is normalised.",
        trouble="The paper's scaled initialisation is not included: its constants are not known "
        "to us.",
        source="Wang et al. 2026, arXiv:2601.22580 (equations from third-party code)",
        slots=spannorm,
        final_norm=False,
        embed_norm=True,
    ),
    Scheme(
        key="skip_norm",
        label="Norm before the fork",
        order=360,
        family="Other paths",
        sentence="The norm is before the fork: skip path and branch both start from the "
        "normalised stream.",
        trouble="As in Post-LN a gradient passes every norm on its way down. MiniMax-Text-01 "
        "multiplies the skip path by a constant that is 1 here.",
        source="MiniMax 2025, arXiv:2501.08313",
        used_by="MiniMax-Text-01",
        oracle="transformers MiniMaxModel",
        slots=lambda _: Slots(norm_fork=True),
        final_norm=True,
    ),
    Scheme(
        key="parallel",
        label="Parallel, one norm",
        order=370,
        family="Other paths",
        sentence="Pre-LN whose FFN reads the same normalised input as attention, beside it rather "
        "than after it.",
        trouble="Half as many steps from bottom to top: the FFN of a block can't use its attention.",
        source="GPT-J 2021; Chowdhery et al. 2022 (PaLM), arXiv:2204.02311",
        used_by="GPT-J, PaLM, Phi-1 and Phi-2, Command R",
        oracle="transformers GPTJModel",
        slots=parallel_one_norm,
        final_norm=True,
    ),
    Scheme(
        key="parallel_two",
        label="Parallel, two norms",
        order=380,
        family="Other paths",
        sentence="Attention and FFN side by side, each with its own norm of the block's input.",
        trouble="Half as many steps from bottom to top: the FFN of a block can't use its attention.",
        source="Black et al. 2022 (GPT-NeoX), arXiv:2204.06745",
        used_by="GPT-NeoX, Falcon-40B",
        oracle="transformers GPTNeoXModel",
        slots=parallel_two_norms,
        final_norm=True,
    ),
    Scheme(
        key="lambda_skip",
        label="Skip to the embedding",
        order=390,
        family="Other paths",
        sentence="Pre-LN whose blocks start from r x + lambda x_0: learned shares of the stream "
        "and of the normalised embedding.",
        trouble="The middle-layer readout of nanochat is not included.",
        source="karpathy/nanochat, gpt.py",
        used_by="nanochat, modded-nanogpt",
        slots=skip_to_the_embedding,
        final_norm=True,
        embed_norm=True,
        constants=(
            Constant(
                "stream_gain",
                "r",
                r"\text{learned, starts at 1.15 to 1.05}",
                "1.15 - 0.10 * (b - 1) / max(1, L - 1)",
            ),
            Constant(
                "embed_gain",
                r"\lambda",
                r"\text{learned, starts at 0.20 to 0.05}",
                "0.20 - 0.15 * (b - 1) / max(1, L - 1)",
            ),
        ),
    ),
    Scheme(
        key="geonorm",
        label="GeoNorm",
        order=392,
        family="Other paths",
        sentence="A branch turns each token on its sphere: along the part of the branch's output that is "
        "orthogonal to the stream, by an angle of at most 45 degrees, divided by the block's number.",
        trouble="No norm inside: every token keeps the length of its embedding, and branches read it as it "
        "is. What is before the output head is not known to us; here it is a norm.",
        source="Zheng et al. 2026, arXiv:2601.22095 (equations and harmonic decay from third-party code)",
        slots=lambda _: Slots(),
        final_norm=True,
        streams="geodesic",
        equations=(
            r"v = F(x) - \frac{F(x) \cdot x}{\lVert x \rVert^2}\,x,\quad "
            r"\varphi = \frac{1}{b}\left(w \min\left(\frac{\lVert v \rVert}{\lVert x \rVert}, "
            r"\frac{\pi}{4}\right) + s\right)",
            r"x^{+} = \cos(\varphi)\,x + \sin(\varphi)\,\frac{\lVert x \rVert}{\lVert v \rVert}\,v",
        ),
    ),
    Scheme(
        key="deep_delta",
        label="Deep Delta Learning",
        order=394,
        family="Other paths",
        sentence="A branch names a direction k: the stream's part along k moves a learned share beta, from "
        "0 to 2, of the way to a learned value.",
        trouble="The form with one value, of which beta and value depend on the token. Both depend on "
        "nothing at the start, beta = 1 and value = 2; the published code draws them.",
        source="Zhang et al. 2026, arXiv:2601.00417; yifanzhang-pro/deep-delta-learning (d_v = 1)",
        slots=lambda _: Slots(norm_in=True),
        final_norm=True,
        streams="delta",
        equations=(
            r"k = \frac{F}{\lVert F \rVert},\quad F = F\left(\mathrm{N}(x)\right)",
            r"x^{+} = x + \beta \left(v - k^{\top} x\right) k",
            r"\beta = 2\sigma\left(w^{\top} \mathrm{N}(x) + b\right),\quad "
            r"v = 4\sigma\left(u^{\top} x + c\right)",
        ),
    ),
    Scheme(
        key="gtrxl",
        label="GTrXL gate",
        order=396,
        family="Other paths",
        sentence="Pre-LN whose addition is a gate like a GRU's: each channel of the stream keeps a share "
        "1 - z and takes a share z of a new value; a bias of 2 makes z small at first.",
        trouble="Six matrices more in each sublayer: about twice the weights. Without Transformer-XL's "
        "memory and relative positions. A token's channels can't grow beyond their embedding and 1.",
        source="Parisotto et al. 2020, arXiv:1910.06764, equations 10 and 14; opendilab/DI-engine, gtrxl.py",
        used_by="agents of reinforcement learning (DI-engine, RLlib)",
        slots=lambda _: Slots(norm_in=True),
        final_norm=False,
        streams="gated",
        equations=(
            r"y = \mathrm{ReLU}\left(F\left(\mathrm{N}(x)\right)\right),\quad "
            r"x^{+} = (1 - z) \odot x + z \odot h",
            r"r = \sigma\left(W_r y + U_r x\right),\quad z = \sigma\left(W_z y + U_z x - b\right)",
            r"h = \tanh\left(W_h y + U_h (r \odot x)\right)",
        ),
    ),
)
