"""What teaching material says most about norms, their gradients and their statistics."""

from __future__ import annotations

from ..evidence import GRADIENT, GRADIENT_GROWTH, HELD_OUT, at, lab
from ..numbers import final, minus, over, slope, tuned, value
from ..record import Claim, Curve, Layers, Number, Strip
from ..rule import Between, Less, Most, NotWorse, Part
from .gradients import DEPTHS, POST, PRE
from .quality import JUDGED, SMALL

START = {"depth": "48", "steps": "0"}
READ = lab("loss", "loss of 128 held-out sequences", "nats")
RATIO = {"first": 1, "last": -1}
DRIFTING = {
    "none": ("No norm", "0.002"), "pre": ("Pre-LN", "0.008"), "resp": ("Res-post-norm", "0.004"),
    "post": ("Post-LN", "0.004"), "slow": ("Post-LN at 0.002", "0.002"),
}  # fmt: skip
"""Placements with the rate that was best on another seed, and Post-LN with that of no norm."""


def ratio(arm: str, where: str, words: str) -> Number:
    """Branch over stream in the first or last of 48 blocks, at step 0."""
    quantity = at("branch_ratio", 0, RATIO[where])
    return Number(f"branch over stream, {where} of 48 blocks, {words}", value(arm, quantity))


CLAIMS = (
    Claim(
        "E16",
        "Post-LN's gradients explode",
        "In Post-LN gradients explode with depth at initialisation.",
        "teaching material, after Xiong et al. 2020, arXiv:2002.04745 (large near the output); "
        "against it Liu et al. 2020, arXiv:2004.08249",
        {
            "post": {**POST, "label": "Post-LN, Xavier", "depth": DEPTHS},
            "torch": {**POST, "label": "Post-LN, PyTorch's init", "init": "torch", "depth": DEPTHS},
            "pre": {**PRE, "label": "Pre-LN, Xavier", "depth": DEPTHS},
        },
        {
            "power": Number("the exponent over depth of the gradient of all parameters, Xavier",
                            slope("post", "depth", GRADIENT)),
            "power_torch": Number("the exponent over depth of the gradient of all parameters, PyTorch's init",
                                  slope("torch", "depth", GRADIENT)),
            "growth": Number("the gradient of all parameters, 96 blocks over 6, Xavier",
                             over(value("post", GRADIENT, depth=96), value("post", GRADIENT, depth=6))),
            "top": Number("the gradient of the last of 48 blocks, Post-LN over Pre-LN, Xavier",
                          over(value("post", at("grad_block", 0, -1), depth=48),
                               value("pre", at("grad_block", 0, -1), depth=48))),
        },
        (
            Part("With Xavier the gradient grows with depth: its exponent is above 0.25",
                 Between("power", low=0.25), control=True),
            Part("With PyTorch's initialisation it grows with depth: its exponent is above 0.25",
                 Between("power_torch", low=0.25), control=True),
            Part("With Xavier it grows tenfold from 6 to 96 blocks", Between("growth", low=10, ratio=True)),
            Part("The last of 48 blocks has a larger gradient than in Pre-LN",
                 Between("top", low=1, ratio=True), control=True),
        ),
        "At step 0 the L2 norm of the gradient of all parameters grows as L to the power of "
        "{power} with Xavier and {power_torch} with PyTorch's initialisation; with Xavier and 96 "
        "blocks it is {growth} times that of 6. The rule calls a tenfold growth an explosion. The "
        "gradient of the last of 48 blocks is {top} times that of Pre-LN's.",
        Curve("depth", GRADIENT),
        seeds=20,
        changed="With 8 seeds the first part was true on one set of seeds and undecided on "
        "another. The sentence said that gradients grow with depth, which is a control, and most "
        "near the output, which no part asks.",
        open_=(("post", {"depth": 96}), ("pre", {"depth": 96})),
        question="gradient",
        finding=(
            "ttft",
            "With Xavier the gradient of all of Post-LN's parameters grows before training as L to "
            "the power of {power}, in the median {growth} times from 6 to 96 blocks, less than the "
            "tenfold that the rule calls an explosion. With PyTorch's initialisation the power is "
            "{power_torch}.",
        ),
    ),
    Claim(
        "E17",
        "A block starts near the identity",
        "At initialisation a residual block is close to the identity, so that a deep model starts "
        "like a shallow one.",
        "teaching material, after De and Smith 2020, arXiv:2002.10444 (of residual networks with "
        "BatchNorm, on average)",
        {
            "xavier": {"label": "Pre-LN, Xavier", "scheme": "pre", **START},
            "torch": {"label": "Pre-LN, PyTorch's init", "scheme": "pre", "init": "torch", **START},
            "gpt2": {"label": "Pre-LN, GPT-2's init", "scheme": "pre", "init": "gpt2", **START},
            "post": {"label": "Post-LN, Xavier", "scheme": "post", **START},
        },
        {
            f"{arm}_{where}": ratio(arm, where, words)
            for arm, words in (("xavier", "Pre-LN, Xavier"), ("torch", "Pre-LN, PyTorch's init"),
                               ("gpt2", "Pre-LN, GPT-2's init"), ("post", "Post-LN, Xavier"))
            for where in RATIO
        },
        (
            Part("In Pre-LN's first block a branch is less than a quarter of its stream, Xavier",
                 Between("xavier_first", high=0.25)),
            Part("In Pre-LN's last block a branch is less than a quarter of its stream, Xavier",
                 Between("xavier_last", high=0.25)),
            Part("In Pre-LN's first block a branch is less than a quarter of its stream, GPT-2's init",
                 Between("gpt2_first", high=0.25)),
            Part("In Pre-LN's last block a branch is less than a quarter of its stream, GPT-2's init",
                 Between("gpt2_last", high=0.25)),
            Part("In Post-LN's last block a branch is less than a quarter of its stream, Xavier",
                 Between("post_last", high=0.25)),
        ),
        "RMS of a branch over that of the stream it is added to (mean of a block's attention and "
        "FFN), at step 0, in the first and the last of 48 blocks: Pre-LN with Xavier "
        "{xavier_first} and {xavier_last}, with PyTorch's initialisation {torch_first} and "
        "{torch_last}, with GPT-2's {gpt2_first} and {gpt2_last}; Post-LN with Xavier {post_first} "
        "and {post_last}, before the norm on the sum. The mean over the blocks is in Pre-LN less "
        "than a quarter with all three, by the figure's seeds; the parts are of the first and the "
        "last one. Whether a deep model starts like a shallow one is not tested.",
        Layers("branch_ratio", 0),
        seeds=8,
        changed="Parts said that a block changes the stream by less than a quarter; measured are "
        "its branches. That the parts are one statement, of all placements and initialisations, "
        "was said after a result; until then the verdict was holds in part.",
        open_=(("xavier", {}), ("gpt2", {}), ("post", {})),
        general=True,
        question="stream",
        finding=(
            "ftttf",
            "It depends on the initialisation: in the first of 48 Pre-LN blocks a branch is "
            "{xavier_first} of its stream with Xavier and {gpt2_first} with GPT-2's init. In "
            "Post-LN's last it is {post_last} with Xavier.",
        ),
    ),
    Claim(
        "E18",
        "DeepNorm keeps Post-LN's quality",
        "DeepNorm combines the good performance of Post-LN with the stable training of Pre-LN.",
        "Wang et al. 2022, arXiv:2203.00555, abstract",
        {
            "post": {"label": "Post-LN, PyTorch's init", "scheme": "post", "init": "torch",
                     "lr": "0.002,0.003,0.0045,0.007,0.01", **JUDGED},
            "deepnorm": {"label": "DeepNorm", "scheme": "deepnorm", "lr": "0.002,0.003,0.0045,0.007,0.01",
                         **JUDGED},
            "pre": {"label": "Pre-LN, PyTorch's init", "scheme": "pre", "init": "torch",
                    "lr": "0.0045,0.007,0.01,0.015,0.022", **JUDGED},
        },
        {
            **tuned("post", "Post-LN"),
            **tuned("deepnorm", "DeepNorm"),
            **tuned("pre", "Pre-LN"),
        },
        (
            Part("It is not worse than Post-LN by 0.01 nats", NotWorse("deepnorm", "post", 0.01)),
            Part("It ends lower than Pre-LN", Less("deepnorm", "pre", SMALL)),
        ),
        "Held-out loss on prose, 4 blocks, 600 steps, warm-up and a falling rate, each at the rate "
        "of five that is best on the other seeds: DeepNorm ends at {deepnorm} (rate "
        "{deepnorm_rate}), Post-LN at {post} ({post_rate}), Pre-LN at {pre} ({pre_rate}). Post-LN "
        "and Pre-LN have PyTorch's initialisation, DeepNorm its own factors on Xavier's matrices, "
        "so placement and initialisation are not told apart. In claim E7, which has the same task "
        "and steps, Post-LN with Xavier ends higher than DeepNorm does here. Whether DeepNorm "
        "trains as stably as Pre-LN is not asked.",
        Curve("lr", HELD_OUT, log_y=False),
        seeds=16,
        changed="Eight seeds decided the second part, and another eight left it open.",
        open_=(("deepnorm", {}), ("post", {}), ("pre", {})),
        question="quality",
        finding=(
            "ff",
            "With 4 blocks on prose DeepNorm, with its own initialisation, ends higher than both: "
            "at {deepnorm}, where Post-LN ends at {post} and Pre-LN at {pre} with PyTorch's. "
            "Post-LN with Xavier ends higher than DeepNorm (claim E7).",
        ),
    ),
    Claim(
        "E19",
        "Norms reduce internal covariate shift",
        "Normalisation helps because it keeps the inputs of each layer from drifting while the "
        "layers below learn.",
        "Ioffe and Szegedy 2015, arXiv:1502.03167; against it Santurkar et al. 2018, arXiv:1805.11604",
        {
            arm: {"label": label, "scheme": "post" if arm == "slow" else arm, "init": "torch",
                  "lr": rate, "steps": "300"}
            for arm, (label, rate) in DRIFTING.items()
        },
        {
            f"{arm}_{name}": Number(f"{words}, {label}", value(arm, lab(name, words)), ".3f", unit)
            for arm, (label, _) in DRIFTING.items()
            for name, words, unit in (("drift", "drift of the branches' inputs", ""),
                                      ("loss", "held-out loss", "nats"))
        },
        (
            Part("Pre-LN's branches read inputs that drift less than without a norm, each at its best rate",
                 Less("pre_drift", "none_drift", ratio=True)),
            Part("Pre-LN ends lower than without a norm", Less("pre_loss", "none_loss", SMALL)),
            Part("Post-LN's branches read inputs that drift less than without a norm, both at 0.002",
                 Less("slow_drift", "none_drift", ratio=True)),
            Part("Pre-LN's inputs drift less than those of Res-post-norm, which reads the stream itself",
                 Less("pre_drift", "resp_drift", ratio=True), control=True),
            Part("Pre-LN ends lower than Res-post-norm", Less("pre_loss", "resp_loss", SMALL)),
            Part("Post-LN's inputs drift less than Res-post-norm's",
                 Less("post_drift", "resp_drift", ratio=True)),
            Part("Post-LN ends lower than without a norm, both at 0.002",
                 Less("slow_loss", "none_loss", SMALL), control=True),
        ),
        "Drift is how far the channels' means and standard deviations on one held-out batch, over "
        "the RMS of the input at that time, move from one twentieth of the run to the next: "
        "{none_drift} without a norm, {pre_drift} in Pre-LN, {resp_drift} in Res-post-norm and "
        "{post_drift} in Post-LN. They end at {none_loss}, {pre_loss}, {resp_loss} and {post_loss} "
        "on that batch, where a loss above chance counts as chance; the last control judges "
        "Post-LN at 0.002. PyTorch's initialisation, 12 blocks, 300 steps, no warm-up, each at the "
        "best of some rates on another seed, 0.002, 0.008, 0.004 and 0.004. These are compared at "
        "different rates; at 0.002, as without a norm, Post-LN's is {slow_drift}. No noise was "
        "added to the inputs, as in the paper against it. Both papers are about BatchNorm. The "
        "batch is the same in every seed.",
        Strip("drift of the branches' inputs", tuple(f"{arm}_drift" for arm in DRIFTING), log_y=True),
        lab="drift",
        open_=tuple((arm, {}) for arm in DRIFTING if arm != "slow"),
        changed="Three of the rates were lower (0.001 without a norm, 0.002 in Post-LN and "
        "Res-post-norm). No part compared Post-LN with no norm, and the claim was undecided; then "
        "one did at different rates, and now at the same. That part, and that one false part "
        "contradicts the claim, was said after a result; with that part, but without this, the "
        "verdict would be holds in part.",
        general=True,
        question="norm",
        finding=(
            "ttftuut",
            "Without warm-up, at the best rates, 0.008 and 0.002, Pre-LN's inputs drift a little "
            "less than without a norm, {pre_drift} against {none_drift}, and it ends lower. But "
            "Post-LN's drift more, {slow_drift}, at the same rate of 0.002, and it ends lower too, "
            "at {slow_loss} instead of {none_loss}. On a third set of seeds alone only Post-LN's "
            "greater drift is decided.",
        ),
    ),
    Claim(
        "E20",
        "Gradients stay bounded with DeepNorm",
        "With DeepNorm gradients stay bounded throughout training, in deep models too.",
        "teaching material, after Wang et al. 2022, arXiv:2203.00555, whose theorem is about the "
        "model update",
        {
            arm: {"label": label, "scheme": arm, "depth": "12,48", "steps": "300"}
            for arm, label in (("deepnorm", "DeepNorm"), ("pre", "Pre-LN"), ("post", "Post-LN"))
        },
        {
            **{
                f"{arm}{depth}": Number(
                    f"largest gradient of the run over that of step 0, {label}, {depth} blocks",
                    value(arm, GRADIENT_GROWTH, depth=depth))
                for arm, label in (("deepnorm", "DeepNorm"), ("pre", "Pre-LN"), ("post", "Post-LN"))
                for depth in (12, 48)
            },
            "loss": final("deepnorm", "DeepNorm, 48 blocks", depth=48),
        },
        (
            Part("With 12 blocks no gradient exceeds 10 times the first", Most("deepnorm12", high=10)),
            Part("With 48 blocks no gradient exceeds 10 times the first", Most("deepnorm48", high=10)),
            Part("With 48 blocks the gradient grows less than in Pre-LN",
                 Less("deepnorm48", "pre48", ratio=True), control=True),
        ),
        "The largest gradient of all parameters in 300 steps at a rate of 0.003 without warm-up, "
        "over that of step 0, with 12 and 48 blocks: DeepNorm {deepnorm12} and {deepnorm48}, "
        "Pre-LN {pre12} and {pre48}, Post-LN {post12} and {post48}. DeepNorm with 48 blocks ends "
        "at {loss}; whether Post-LN trains is not read. The bound is relative to each model's own "
        "first gradient: the sizes at step 0 are not compared.",
        Curve("depth", GRADIENT_GROWTH),
        open_=(("deepnorm", {"depth": 48}), ("pre", {"depth": 48}), ("post", {"depth": 48})),
        changed="That the gradient grows less than in Pre-LN became a control, since the claim "
        "does not say it.",
        question="gradient",
        finding=(
            "ttu",
            "In 300 steps at 0.003 without warm-up, with DeepNorm no gradient exceeds the first "
            "one's tenfold, with 12 and with 48 blocks. In Pre-LN none does either, nor in "
            "Post-LN; whether DeepNorm's grows less than Pre-LN's is undecided.",
        ),
    ),
    Claim(
        "E21",
        "BatchNorm in small batches",
        "BatchNorm's error grows as batches shrink, more than LayerNorm's.",
        "Wu and He 2018, arXiv:1803.08494, abstract; teaching material",
        {
            norm: {"label": label, "norm": norm, "depth": "4", "seq_len": "8", "batch": "2,8,32",
                   "lr": "0.004", "steps": "400"}
            for norm, label in (("batchnorm", "BatchNorm"), ("layernorm", "LayerNorm"))
        },
        {
            **{
                f"{norm}{batch}": Number(f"held-out loss, {label}, batches of {batch}",
                                         value(norm, READ, batch=batch), ".3f", "nats")
                for norm, label in (("batchnorm", "BatchNorm"), ("layernorm", "LayerNorm"))
                for batch in (2, 32)
            },
            **{
                f"gap{batch}": Number(f"BatchNorm minus LayerNorm, batches of {batch}",
                                      minus(value("batchnorm", READ, batch=batch),
                                            value("layernorm", READ, batch=batch)), ".3f", "nats")
                for batch in (2, 8, 32)
            },
        },
        (
            Part("In batches of 2 BatchNorm loses more against LayerNorm than in batches of 32",
                 Less("gap32", "gap2", 0.02)),
            Part("In batches of 2 it ends higher than LayerNorm", Less("layernorm2", "batchnorm2", 0.02)),
            Part("In batches of 2 it ends higher than in batches of 32",
                 Less("batchnorm32", "batchnorm2", 0.02)),
            Part("In batches of 32 it is not worse than LayerNorm by 0.02 nats",
                 NotWorse("batchnorm32", "layernorm32", 0.02), control=True),
        ),
        "Pre-LN, 4 blocks, sequences of 8 tokens, loss of 128 held-out sequences after 400 steps "
        "at a constant 0.004 without warm-up, with BatchNorm's running statistics. BatchNorm minus "
        "LayerNorm is {gap2} in batches of 2 sequences, {gap8} in 8 and {gap32} in 32. With the "
        "same steps both read less data in smaller batches; whether the difference depends on the "
        "batch at equal data is not tested. The claim's error is a loss here. That its statistics "
        "are unreliable, which the source gives as the reason, is not measured. In training each "
        "position's statistics see later positions too, and here they do not.",
        Curve("batch", READ, log_y=False),
        lab="confidence",
        changed="The part about batches of 32 became a control, since the claim says nothing of "
        "them. The sentence also said that BatchNorm's statistics are unreliable in small batches, "
        "which no part tests.",
        open_=(("batchnorm", {"batch": 2}), ("layernorm", {"batch": 2}), ("batchnorm", {"batch": 32}),
               ("layernorm", {"batch": 32})),
        question="norm",
        finding=(
            "tttt",
            "In batches of 2 sequences of 8 tokens BatchNorm ends {gap2} above LayerNorm, in "
            "batches of 32 it is not worse by 0.02 nats.",
        ),
    ),
)  # fmt: skip
