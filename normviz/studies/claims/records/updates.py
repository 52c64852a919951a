"""The change of the output by one update, and other numbers that a lab measures before training."""

from __future__ import annotations

from ..evidence import Quantity, Sample, at, lab
from ..numbers import HALF, final, over, slope, value
from ..record import Claim, Curve, Number, Strip, Theory
from ..rule import All, Between, Fact, Less, Most, Part

DEPTHS = "6,12,24,48,96"
START = {"depth": DEPTHS, "steps": "0"}
SGD = lab("sgd", "change of the output by one SGD step of all parameters", "RMS")
MATRICES = lab(
    "sgd_matrices", "change of the output by one SGD step of the blocks' matrices", "RMS"
)
ADAM = lab("adam", "change of the output by one Adam step of all parameters", "RMS")
CHANGE = lab("change", "change of the output over that of the weights", "mean square")
STD = lab("std", "standard deviation of the logits")
EXCESS = lab("excess", "loss above ln V", "nats")


def widest(arm: str, quantity: Quantity) -> Number:
    """The largest value over the smallest, over an arm's depths."""

    def of(sample: Sample) -> float:
        values = [quantity.of(run) for run in sample.runs(arm)]
        return max(values) / min(values)

    return Number(f"{quantity.label}, largest over smallest of 6 to 96 blocks, {arm}", of)


def growth(arm: str, quantity: Quantity, low: int, high: int) -> Number:
    """A quantity at depth `high` over that at depth `low`."""
    of = over(value(arm, quantity, depth=high), value(arm, quantity, depth=low))
    return Number(f"{quantity.label}, {high} blocks over {low}, {arm}", of)


CLAIMS = (
    Claim(
        "C6",
        "DeepNorm bounds the model update",
        "With DeepNorm the change of the output by one update is bounded by a constant, whatever "
        "the depth; in Post-LN it explodes with depth.",
        "Wang et al. 2022, arXiv:2203.00555, theorem 4.2 and figure 5",
        {
            "DeepNorm": {"label": "DeepNorm", "scheme": "deepnorm", **START},
            "Post-LN": {"label": "Post-LN", "scheme": "post", **START},
            "Pre-LN": {"label": "Pre-LN", "scheme": "pre", **START},
        },
        {
            "deep_matrices": widest("DeepNorm", MATRICES),
            "deep_sgd": widest("DeepNorm", SGD),
            "deep_adam": widest("DeepNorm", ADAM),
            "deep_sgd_growth": growth("DeepNorm", SGD, 6, 96),
            "deep_adam_growth": growth("DeepNorm", ADAM, 6, 96),
            "post_matrices": growth("Post-LN", MATRICES, 6, 96),
            "pre_matrices": growth("Pre-LN", MATRICES, 6, 96),
            "post_sgd": growth("Post-LN", SGD, 6, 96),
            "pre_sgd": growth("Pre-LN", SGD, 6, 96),
        },
        (
            Part("DeepNorm: one SGD step of the blocks' matrices changes the output alike at all depths, up "
                 "to a factor of 1.5",
                 Between("deep_matrices", high=1.5, ratio=True)),
            Part("DeepNorm: one SGD step of all parameters changes it alike, up to a factor of 1.5",
                 Between("deep_sgd", high=1.5, ratio=True)),
            Part("DeepNorm: one Adam step changes it alike, up to a factor of 1.5",
                 Between("deep_adam", high=1.5, ratio=True)),
            Part("Post-LN: the change by one SGD step of the blocks' matrices grows at least fivefold",
                 Between("post_matrices", low=5.0, ratio=True)),
        ),
        "The theorem is about SGD on the matrices of attention and FFN. Of DeepNorm's models of 6 "
        "to 96 blocks, the largest change of the output by one such step at 0.01 is "
        "{deep_matrices} times the smallest. Where all parameters are updated, also embeddings and "
        "the norms' scales and shifts, it is {deep_sgd} times, and with Adam at 0.001, the usual "
        "optimizer, {deep_adam} times; from 6 to 96 blocks it grows {deep_sgd_growth} and "
        "{deep_adam_growth} times. From 6 to 96 blocks Post-LN's change grows {post_matrices} "
        "times by a step of the matrices and {post_sgd} times by one of all parameters, Pre-LN's "
        "{pre_matrices} and {pre_sgd} times. These are growths: the figure has the sizes by a step "
        "of the matrices.",
        Curve("depth", MATRICES),
        (Theory("constant in L", "from DeepNorm's first point; one SGD step of the matrices",
                lambda _x, _x0, y0: y0, "DeepNorm"),),
        seeds=20,
        changed="Each of three seeds had to pass, with a factor of 1.3 instead of 1.5, and Post-LN "
        "had to grow fivefold from 6 to 48 blocks. Then DeepNorm was judged on a step of the "
        "matrices and Post-LN on a step of all parameters.",
        lab="update",
        question="update",
        finding=(
            "tffu",
            "From 6 to 96 blocks the largest change of DeepNorm's output by an SGD step of the "
            "blocks' matrices is {deep_matrices} times the smallest. By a step of all parameters "
            "it grows {deep_sgd_growth} times, and by one of Adam {deep_adam_growth} times. "
            "Whether Post-LN's is fivefold at 96 blocks is undecided (true on a third set of seeds "
            "alone).",
        ),
    ),
    Claim(
        "C7",
        "Post-LN-init trains with a larger gradient",
        "Scaling Post-LN's lower layers down makes the top layer's gradient larger at the start, "
        "and yet the model converges.",
        "Wang et al. 2022, arXiv:2203.00555, section 3 (Post-LN-init)",
        {
            "post": {"label": "Post-LN", "scheme": "post", "depth": "18", "lr": "0.001", "steps": "600"},
            "init": {"label": "Post-LN-init", "scheme": "post_init", "depth": "18", "lr": "0.001",
                     "steps": "600"},
        },
        {
            "top_post": Number("gradient of the last block at step 0, Post-LN",
                               value("post", at("grad_block", 0, -1))),
            "top_init": Number("gradient of the last block at step 0, Post-LN-init",
                               value("init", at("grad_block", 0, -1))),
            "post": final("post", "Post-LN"),
            "init": final("init", "Post-LN-init"),
        },
        (
            Part("The gradient of the last block is larger at step 0",
                 Less("top_post", "top_init", ratio=True)),
            Part("It trains where Post-LN does not",
                 All((Most("init", high=HALF), Most("post", low=HALF)))),
        ),
        "With 18 blocks, the gradient of all of the last block's parameters starts at {top_post} "
        "in Post-LN and {top_init} in Post-LN-init, where the paper finds a larger one in its "
        "models for translation. At a rate of 0.001 without warm-up Post-LN ends at {post}, where "
        "a loss above chance counts as chance, and Post-LN-init at {init}. The figure has the "
        "losses; the gradients are in the table of all numbers. Only step 0 is judged, so this "
        "does not tell whether its size breaks Post-LN.",
        Strip("final loss (nats)", ("post", "init")),
        changed="Runs had 200 steps. That it trains where Post-LN does not was a control, though "
        "the sentence says so: that it is no control, and that a gradient that is not larger "
        "contradicts the whole, was said after a first result, until which the verdict was holds "
        "in part; then the sentence lost what the paper infers.",
        question="update",
        general=True,
        finding=(
            "ft",
            "At 0.001 without warm-up Post-LN-init ends at {init} where Post-LN is at chance, or "
            "above it. But the gradient of its last block is smaller at step 0, not larger, so "
            "this does not tell whether its size breaks Post-LN.",
        ),
    ),
    Claim(
        "C8",
        "How weights' changes add up",
        "With N layers, a small change of all weights changes the output by a variance of O(N) in "
        "Post-LN and of O(log N) in Pre-LN.",
        "Liu et al. 2020, arXiv:2004.08249, theorem 2 and figure 4",
        {
            f"{arm}_{init}": {"label": f"{label}, {words}", "scheme": arm, "init": init, **START}
            for init, words in (("xavier", "Xavier"), ("torch", "PyTorch's init"))
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
        },
        {
            **{
                f"post_{init}": Number(f"the exponent over depth, Post-LN, {words}",
                                       slope(f"post_{init}", "depth", CHANGE))
                for init, words in (("xavier", "Xavier"), ("torch", "PyTorch's init"))
            },
            **{
                f"{arm}_{init}_growth": Number(f"the growth from 24 to 96 blocks, {label}, {words}",
                                               growth(f"{arm}_{init}", CHANGE, 24, 96).of)
                for init, words in (("xavier", "Xavier"), ("torch", "PyTorch's init"))
                for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            },
        },
        (
            Part("With Xavier Post-LN's change grows as N to the power of 0.8 to 1.2",
                 Between("post_xavier", 0.8, 1.2)),
            Part("With PyTorch's init Post-LN's change grows as N to the power of 0.8 to 1.2",
                 Between("post_torch", 0.8, 1.2)),
            Part("With Xavier Pre-LN's change grows from 24 to 96 blocks by 1.1 to 1.9 times",
                 Between("pre_xavier_growth", 1.1, 1.9, ratio=True)),
            Part("With PyTorch's init Pre-LN's change grows from 24 to 96 blocks by 1.1 to 1.9 times",
                 Between("pre_torch_growth", 1.1, 1.9, ratio=True)),
            Part("With Xavier Post-LN's change grows more than Pre-LN's",
                 Less("pre_xavier_growth", "post_xavier_growth", ratio=True), control=True),
            Part("With PyTorch's init Post-LN's change grows more than Pre-LN's",
                 Less("pre_torch_growth", "post_torch_growth", ratio=True), control=True),
        ),
        "Before training, noise is added to each matrix of every block, in proportion to its "
        "spread. In Post-LN the mean square of the output's change has an exponent over N of "
        "{post_xavier} with Xavier and {post_torch} with PyTorch's init. On average the latter is "
        "above 1, but not clearly above the rule's 1.2. The rule takes the O for the law, of log N "
        "itself: from 24 to 96 blocks a logarithm grows 1.4 times and a straight line 4 times; "
        "with Xavier and with PyTorch's init Pre-LN's change grows {pre_xavier_growth} and "
        "{pre_torch_growth} times, Post-LN's {post_xavier_growth} and {post_torch_growth} times.",
        Curve("depth", CHANGE),
        (
            Theory("N", "from Post-LN's first point with Xavier; branches independent of each other",
                   lambda x, x0, y0: y0 * x / x0, "post_xavier"),
        ),
        changed="Each of five seeds had to lie in the band, and Xavier was the only initialisation.",
        seeds=20,
        lab="perturb",
        question="update",
        finding=(
            "uutfut",
            "From 24 to 96 blocks Pre-LN's change grows {pre_xavier_growth} times with Xavier, "
            "near the 1.4 times of log N, and {pre_torch_growth} times with PyTorch's init, which "
            "is more. Post-LN's law is undecided with both: its exponent over 6 to 96 blocks is "
            "{post_xavier} with Xavier and {post_torch} with PyTorch's init, where it is above 1, "
            "but not clearly above the rule's 1.2. From 24 to 96 blocks its change grows more than "
            "Pre-LN's with PyTorch's init; with Xavier that is undecided.",
        ),
    ),
    Claim(
        "C20",
        "Without a final norm the logits grow",
        "Without its final norm Pre-LN starts with logits that grow with depth about as a square "
        "root, and with a first loss that is higher with 96 blocks than with 6, and with 96 higher "
        "than with the norm.",
        "after Xiong et al. 2020, arXiv:2002.04745, lemma 2",
        {
            "bare": {"label": "Pre-LN, no final norm", "scheme": "pre_nofinal", **START},
            "pre": {"label": "Pre-LN", "scheme": "pre", **START},
        },
        {
            "power": Number("the exponent of the logits' standard deviation over depth",
                            slope("bare", "depth", STD)),
            "few": Number("loss above ln V, 6 blocks", value("bare", EXCESS, depth=6), unit="nats"),
            "many": Number("loss above ln V, 96 blocks", value("bare", EXCESS, depth=96),
                           unit="nats"),
            "pre": Number("loss above ln V, 96 blocks, Pre-LN", value("pre", EXCESS, depth=96),
                          unit="nats"),
        },
        (
            Part("The logits grow with an exponent of 0.4 to 0.6", Between("power", 0.4, 0.6)),
            Part("The first loss lies higher with more blocks", Less("few", "many")),
            Part("With the final norm 96 blocks start lower", Less("pre", "many")),
        ),
        "The logits' standard deviation grows as L to the power of {power}: on average a little "
        "steeper than a square root, within the rule's band of 0.4 to 0.6. The first loss lies "
        "{few} above ln V with 6 blocks and {many} with 96; with the final norm and 96 blocks "
        "{pre}. The dashed line is sqrt(L) from the first point.",
        Curve("depth", STD),
        (Theory("sqrt(L)", "from the first point; branches of equal variance",
                lambda x, x0, y0: y0 * (x / x0) ** 0.5, "bare"),),
        seeds=10,
        changed="A part asked whether 96 blocks start less than 0.5 nats above ln V with the final "
        "norm. It was undecided (0.43 to 0.58) and is no part of the claim. The sentence said that "
        "the logits grow as sqrt(1 + cL), which is less steep than what is measured.",
        lab="logits",
        question="stream",
        finding=(
            "ttt",
            "Without the final norm the logits grow with depth, on average a little steeper than a "
            "square root, within the rule's band: the first loss lies {few} above ln V with 6 "
            "blocks and {many} with 96, and with the final norm and 96 blocks {pre} above it.",
        ),
    ),
    Claim(
        "C21",
        "RMSNorm is LayerNorm on zero-mean streams",
        "In a Pre-LN transformer RMSNorm computes exactly what LayerNorm without a shift does, "
        "once the mean is taken out of the weights that write to the stream (folding).",
        "Jiang et al. 2023, arXiv:2305.14858",
        {"pre": {"label": "Pre-LN", "scheme": "pre", "depth": "6,24,48", "steps": "0"}},
        {
            "folded": Number("the largest difference over the depths, after folding",
                             lambda s: max(run.lab["folded"] for run in s.runs("pre")), ".0e"),
            "naive": Number("the least over the depths of the largest difference, without folding",
                            lambda s: min(run.lab["naive"] for run in s.runs("pre"))),
        },
        (
            Part("After folding the logits are the same", Most("folded", high=1e-5)),
            Part("A plain swap is another function", Most("naive", low=0.1), control=True),
        ),
        "With 6, 24 and 48 blocks, LayerNorm without a shift, the same epsilon in both norms, and "
        "noise on every parameter, the logits of both models after folding differ by {folded} of "
        "the largest one, in 64-bit arithmetic. That folding leaves LayerNorm's own as they were "
        "was not measured. Swapping the norms without folding changes them by {naive}, at the "
        "depth where it does so least. Only Pre-LN was measured.",
        Strip("largest difference of the logits over the largest logit", log_y=True),
        lab="recentre",
        changed="That a plain swap is another function became a control, as the claim does not "
        "say it. Each of three seeds had to pass. The claim was of any LayerNorm; those "
        "compared have no shift.",
        question="norm",
        finding=(
            "tt",
            "Once the mean is taken out of the weights of both that write to the stream, RMSNorm's "
            "logits differ from those of LayerNorm without a shift by {folded} of the largest one, "
            "in 64-bit arithmetic. A plain swap changes them by {naive} of it, at the depth where "
            "it does so least.",
        ),
    ),
    Claim(
        "C22",
        "Small embeddings, large early gradients",
        "Small embeddings give the lower layers large gradients: they go as 1 over the embeddings' "
        "standard deviation.",
        "Takase et al. 2023, arXiv:2312.16903 (in models whose other weights are small as well; "
        "whether for Xavier's too is asked here)",
        {
            "gpt2": {"label": "GPT-2 weights", "scheme": "pre", "init": "gpt2", "steps": "0"},
            "xavier": {"label": "Xavier weights", "scheme": "pre", "steps": "0"},
        },
        {
            "gpt2": Number("the exponent from 0.02 to 0.1, GPT-2 weights",
                           value("gpt2", lab("slope_small", "exponent"))),
            "gpt2_large": Number("the exponent from 0.1 to 1, GPT-2 weights",
                                 value("gpt2", lab("slope_large", "exponent"))),
            "xavier": Number("the exponent from 0.02 to 0.1, Xavier weights",
                             value("xavier", lab("slope_small", "exponent"))),
            "xavier_large": Number("the exponent from 0.1 to 1, Xavier weights",
                                   value("xavier", lab("slope_large", "exponent"))),
        },
        (
            Part("With GPT-2's small weights the exponent is near -1", Between("gpt2", -1.2, -0.8)),
            Part("With Xavier's weights the exponent is near -1", Between("xavier", -1.2, -0.8)),
        ),
        "In Pre-LN with 12 blocks, before training, the L2 norm of the first block's gradient with "
        "GPT-2's small weights scales as the embeddings' standard deviation to the power of {gpt2} "
        "from 0.02 to 0.1, and of {gpt2_large} from 0.1 to 1. With Xavier's the exponents are "
        "{xavier} and {xavier_large}. GPT-2's own width was not measured, nor were blocks above "
        "the first.",
        Strip("exponent of the first block's gradient over the embeddings' standard deviation"),
        seeds=5,
        lab="embedding",
        changed="Each of five seeds had to lie in the band. For a time one false part contradicted "
        "the claim, as if it were of all sizes of the weights; the source has small ones. The "
        "sentence also gave LayerNorm's Jacobian, O(sqrt(d) / |x|), as the reason, which is not "
        "measured.",
        question="gradient",
        finding=(
            "tf",
            "In Pre-LN with 12 narrow blocks, before training, and with GPT-2's small weights the "
            "gradient of the first block scales as the embeddings' standard deviation to the power "
            "of {gpt2}, from 0.02 to 0.1. With Xavier's the power is {xavier}.",
        ),
    ),
    Claim(
        "E15",
        "Norm operations of 96 layers",
        "A 96-layer model has 192 norm operations.",
        "teaching material",
        {
            "post": {"label": "Post-LN", "scheme": "post", "depth": "96", "steps": "0"},
            "pre": {"label": "Pre-LN", "scheme": "pre", "depth": "96", "steps": "0"},
            "sandwich": {"label": "Sandwich-LN", "scheme": "sandwich", "depth": "96", "steps": "0"},
        },
        {
            arm: Number(f"norm operations a forward pass, {label}", value(arm, lab("norms", "calls")),
                        ".0f")
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"), ("sandwich", "Sandwich-LN"))
        },
        (
            Part("Post-LN has 192", Fact("post", 192, 192)),
            Part("Pre-LN has 192", Fact("pre", 192, 192)),
            Part("Sandwich-LN has 192", Fact("sandwich", 192, 192)),
        ),
        "Counted during a forward pass: Post-LN {post}, Pre-LN {pre} (it has a final norm as "
        "well), Sandwich-LN {sandwich} (two for each branch, and a final one). Norms of queries "
        "and keys, if a model has them, come on top.",
        Strip("norm operations in one forward pass"),
        lab="norms",
        general=True,
        changed="That the parts are one statement, of all placements, was said after a result; "
        "until then the verdict was holds in part.",
        question="norm",
        finding=(
            "tff",
            "In one forward pass Post-LN with 96 layers has {post} norm operations, Pre-LN {pre} "
            "and Sandwich-LN {sandwich}.",
        ),
    ),
)  # fmt: skip
