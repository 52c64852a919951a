"""Claims about norms outside of language transformers: recurrent nets, images, graphs."""

from __future__ import annotations

from operator import sub

from ..evidence import FINAL, FIRST, HELD_OUT, Sample, at, quotient
from ..numbers import Of, at_rate_of, final, minus, tuned, value
from ..record import Claim, Combined, Curve, Number, Strip
from ..rule import Between, Less, LessInMost, NotWorse, Part
from .quality import SMALL

NATS = "nats"
RNN = {"cell_none": "no norm", "pre_activation": "LayerNorm on the pre-activation"}
LENGTHS = (4, 32)
GAINS = (0.3, 1.0, 3.0)
VIT = {"pre": "Pre-LN", "post": "Post-LN"}
LAST_OVER_FIRST = quotient("grad_block", 0, -1, 1)
GROWTH = at("stream_rms", 0, -1)
BATCHES = (2, 8, 32, 128)
MLP = {"batchnorm": "BatchNorm", "layernorm": "LayerNorm"}
GNN = {
    "none": ("GNN, no norm", {"family": "gnn", "norm": "none"}),
    "layernorm": ("GNN, LayerNorm", {"family": "gnn"}),
    "batchnorm": ("GNN, BatchNorm", {"family": "gnn", "norm": "batchnorm"}),
    "mlp": ("MLP without the edges, LayerNorm", {"family": "mlp"}),
}


def apart(place: str) -> Of:
    """Largest minus smallest loss at initialisation over the sizes of the weights, in nats."""

    def of(sample: Sample) -> float:
        losses = [FIRST.of(run) for run in sample.runs(place)]
        return max(losses) - min(losses)

    return of


DIGITS = {"family": "vit", "task": "digits", "mask": "none", "seq_len": "16", "depth": "2", "init": "torch",
          "batch": "16", "steps": "200", "warmup": "20", "schedule": "linear"}  # fmt: skip

CLAIMS = (
    Claim(
        "C40",
        "LayerNorm in recurrent nets",
        "LayerNorm lowers the loss of recurrent nets, most of all over long sequences.",
        "Ba et al. 2016, arXiv:1607.06450, abstract and conclusion",
        {
            place: {"label": label, "family": "rnn", "scheme": place, "task": "digits", "seq_len": "4,32",
                    "lr": "0.001,0.003,0.01", "width": "16", "batch": "16", "steps": "300",
                    "schedule": "linear"}
            for place, label in RNN.items()
        },
        {
            **{
                key: number
                for name, place in (("none", "cell_none"), ("layer", "pre_activation"))
                for n in LENGTHS
                for key, number in tuned(
                    place, f"{RNN[place]}, {n} time steps", key=f"{name}{n}", seq_len=n
                ).items()
            },
            **{
                f"gain{n}": Number(f"how much lower LayerNorm ends, {n} time steps",
                                   Combined(sub, f"none{n}", f"layer{n}"), ".3f", NATS)
                for n in LENGTHS
            },
        },
        (
            Part("With 32 time steps LayerNorm ends lower", Less("layer32", "none32", 0.02)),
            Part("It lowers the loss more with 32 time steps than with 4", Less("gain4", "gain32", 0.02)),
        ),
        "An RNN of one layer and width 16 reads digits in 4 or 32 equal parts; 300 steps, Xavier, "
        "no warm-up, rates that fall to 0 and are chosen on the other seeds. With 32 time steps "
        "the held-out loss is {none32} without a norm and {layer32} with LayerNorm, with 4 it is "
        "{none4} and {layer4}. Losses are compared; the dynamics of the hidden state are not "
        "measured.",
        Strip("held-out loss (nats)", tuple(f"{name}{n}" for n in LENGTHS for name in ("none", "layer"))),
        changed="Runs had 150 steps at two constant rates, and most still fell. They have 300 "
        "steps and one of three rates, which falls to 0. The source says that it "
        "stabilises the hidden state's dynamics, which no part measures.",
        open_=tuple((place, {"seq_len": n}) for n in LENGTHS for place in RNN),
        question="norm",
        finding=(
            "uu",
            "At a rate of 0.01, the highest that was tried, the seeds do not decide whether "
            "LayerNorm lowers the loss: with 32 time steps an RNN ends at {none32} without a norm "
            "and {layer32} with it, with 4 at {none4} and {layer4}.",
        ),
    ),
    Claim(
        "C44",
        "LayerNorm and the size of an RNN's weights",
        "A norm on the pre-activation makes the loss of a recurrent net before training invariant "
        "to a common factor of its weights.",
        "Ba et al. 2016, arXiv:1607.06450, sections 3.1 and 5.1",
        {
            place: {"label": label, "family": "rnn", "scheme": place, "task": "digits", "seq_len": "32",
                    "weight_gain": "0.3,1,3", "lr": "0.003", "width": "16", "batch": "16", "steps": "300",
                    "schedule": "linear"}
            for place, label in RNN.items()
        },
        {
            f"{name}{i}": Number(f"held-out loss, {RNN[place]}, weights times {gain:g}",
                                 value(place, HELD_OUT, weight_gain=gain), ".2f", NATS)
            for name, place in (("none", "cell_none"), ("layer", "pre_activation"))
            for i, gain in enumerate(GAINS)
        }
        | {
            f"{name}_apart": Number(
                f"largest minus smallest loss before training over three sizes of the weights, {RNN[place]}",
                apart(place), ".2g", NATS)
            for name, place in (("none", "cell_none"), ("layer", "pre_activation"))
        },
        (
            Part("Before training its loss is the same with weights times 0.3, 1 and 3, up to 0.01 nats",
                 Between("layer_apart", high=0.01)),
            Part("Without a norm it is not", Between("none_apart", low=0.01), control=True),
            Part("With weights 3 times as large LayerNorm ends lower", Less("layer2", "none2", 0.1),
                 control=True),
            Part("With weights 0.3 times as large LayerNorm ends lower", Less("layer0", "none0", 0.1),
                 control=True),
        ),
        "An RNN of one layer and width 16 reads digits in 32 parts; 300 steps, the rate falls from "
        "0.003 to 0 without warm-up. The weights are the two matrices of the cell, multiplied by "
        "the same factor. Over Xavier's times 0.3, 1 and 3 the first loss differs by {none_apart} "
        "without a norm and by {layer_apart} with LayerNorm. After training the held-out loss, "
        "which the figure shows, is {none0}, {none1} and {none2} without a norm, and {layer0}, "
        "{layer1} and {layer2} with LayerNorm.",
        Curve("weight_gain", HELD_OUT, log_y=False),
        changed="Runs had 150 steps at a constant rate, and some still fell. They have 300 steps "
        "and a rate that falls. A part asked whether losses end equal after training, which the "
        "source does not say, and none asked about the first loss. The claim was of the net, not "
        "of its loss before training.",
        open_=tuple((place, {"weight_gain": gain}) for gain in (0.3, 3.0) for place in RNN),
        question="norm",
        finding=(
            "tttt",
            "Before training an RNN with LayerNorm has the same loss with its weights times 0.3, 1 "
            "and 3, up to 0.01 nats; without a norm the three differ by {none_apart}. After "
            "training LayerNorm's differ too: {layer0} with weights times 0.3 and {layer2} times 3.",
        ),
    ),
    Claim(
        "C41",
        "Placement in a vision transformer",
        "In a vision transformer the place of the norm matters: after the same steps without "
        "warm-up Pre-LN is at a lower loss than Post-LN, in which the last block's gradient before "
        "training is larger relative to the first's.",
        "teaching material; for language models Xiong et al. 2020, arXiv:2002.04745",
        {
            scheme: {"label": label, "family": "vit", "scheme": scheme, "task": "digits", "mask": "none",
                     "seq_len": "16", "steps": "100", "lr": "0.003"}
            for scheme, label in VIT.items()
        },
        {
            **{
                f"{scheme}_loss": final(scheme, label)
                for scheme, label in VIT.items()
            },
            **{
                f"{scheme}_ratio": Number(f"gradient of the last block over the first's at step 0, {label}",
                                          value(scheme, LAST_OVER_FIRST), ".2g")
                for scheme, label in VIT.items()
            },
            "growth": Number("RMS of the stream after the last block at step 0, Pre-LN",
                             value("pre", GROWTH)),
            "flat": Number("RMS of the stream after the last block at step 0, Post-LN",
                           value("post", GROWTH)),
        },
        (
            Part("Pre-LN ends lower", Less("pre_loss", "post_loss", 0.1)),
            Part("At step 0 the last block's gradient over the first's is greater in Post-LN",
                 Less("pre_ratio", "post_ratio", 1.2, ratio=True)),
            Part("At step 0 Pre-LN's stream has an RMS of at least 2 after the last block",
                 Between("growth", low=2.0), control=True),
        ),
        "12 blocks, Xavier, 16 patches of digits, 100 steps at 0.003 without warm-up. A loss above "
        "chance counts as chance. Pre-LN ends at {pre_loss}, Post-LN at {post_loss}. At step 0 the "
        "last block's gradient is {pre_ratio} times the first's in Pre-LN and {post_ratio} times "
        "in Post-LN, and the stream's RMS after the last block {growth} and {flat}. Whether "
        "Post-LN trains with a warm-up or at a lower rate is not tested.",
        Strip("final loss (nats)", ("pre_loss", "post_loss")),
        changed="The factor from which a gradient counts as larger was written as 0.1, and is 1.2. "
        "Parts said that Post-LN's last block has the larger share of the gradient, and that "
        "Pre-LN's stream grows to twice its size, where a quotient and an RMS at step 0 are "
        "measured. The RMS became a control, as the claim does not say it, after a result; the "
        "verdict is the same. The sentence said that language models do so, which is not measured "
        "here.",
        open_=(("pre", {}), ("post", {})),
        question="train",
        finding=(
            "ttt",
            "In a vision transformer, after 100 steps at a rate of 0.003 without warm-up Pre-LN "
            "with 12 blocks is at {pre_loss}, and Post-LN at {post_loss}, near chance or above.",
        ),
    ),
    Claim(
        "C42",
        "BatchNorm and LayerNorm over batch size",
        "In an MLP on images BatchNorm's error grows as the batch shrinks, more than LayerNorm's.",
        "Wu and He 2018, arXiv:1803.08494, abstract (beside GroupNorm; that LayerNorm's grows less "
        "is teaching material)",
        {
            norm: {"label": label, "family": "mlp", "norm": norm, "task": "digits", "depth": "4",
                   "batch": "2,8,32,128", "lr": "0.001", "steps": "200", "schedule": "linear"}
            for norm, label in MLP.items()
        },
        {
            **{
                f"{norm}{n}": Number(f"held-out loss, at most chance, {label}, batches of {n}",
                                     value(norm, HELD_OUT, batch=n), ".3f", NATS)
                for norm, label in MLP.items() for n in BATCHES
            },
            **{
                f"gap{n}": Number(f"BatchNorm minus LayerNorm, batches of {n}",
                                  minus(value("batchnorm", HELD_OUT, batch=n),
                                        value("layernorm", HELD_OUT, batch=n)), ".3f", NATS)
                for n in BATCHES
            },
        },
        (
            Part("In batches of 2 BatchNorm ends higher than LayerNorm",
                 Less("layernorm2", "batchnorm2", 0.02)),
            Part("It loses more against LayerNorm in batches of 2 than in batches of 128",
                 Less("gap128", "gap2", 0.02)),
            Part("It ends higher in batches of 2 than in batches of 128",
                 Less("batchnorm128", "batchnorm2", 0.02)),
            Part("In batches of 128 it is not worse than LayerNorm by 0.02 nats",
                 NotWorse("batchnorm128", "layernorm128", 0.02), control=True),
        ),
        "A residual MLP of 4 blocks on digits, 200 steps at a rate that falls from 0.001 to 0 "
        "without warm-up, judged by the loss of held-out images with BatchNorm's running "
        "statistics. BatchNorm minus LayerNorm is {gap2} in batches of 2, {gap8} in 8, {gap32} in "
        "32 and {gap128} in 128. A loss above chance counts as chance, so the gap at a batch of 2 "
        "is a lower bound. All runs have the same steps, so smaller batches read less data: "
        "LayerNorm goes from {layernorm128} in batches of 128 to {layernorm2} in 2. Whether it "
        "depends on the batch at equal data is not tested. The claim's error is a loss here.",
        Curve("batch", HELD_OUT, log_y=False),
        changed="The rate was constant, and on a second set of seeds a run that still fell left a "
        "part undecided; now it falls to 0. The claim also said that LayerNorm does not depend on "
        "the batch, which no part tests, and says nothing of batches of 128: that part became a "
        "control. It said how fast, and of any network: no part tests a speed, and runs are of an "
        "MLP on images.",
        open_=(("batchnorm", {"batch": 2}), ("layernorm", {"batch": 2}), ("batchnorm", {"batch": 128}),
               ("layernorm", {"batch": 128})),
        question="norm",
        finding=(
            "tttt",
            "In an MLP of 4 blocks on digits BatchNorm ends at least {gap2} above LayerNorm in "
            "batches of 2 (8 of 10 runs are at chance or above it); with 128 it is not worse.",
        ),
    ),
    Claim(
        "C43",
        "What a norm gives a graph network",
        "Normalising node features lets graph networks go deeper, to a lower loss on nodes whose "
        "labels training did not see.",
        "teaching material; for BatchNorm and LayerNorm on graphs Cai et al. 2020, arXiv:2009.03294",
        {
            arm: {"label": label, "task": "digits_graph", "depth": "2,8", "lr": "0.001", "steps": "80",
                  **settings}
            for arm, (label, settings) in GNN.items()
        },
        {
            f"{arm}{depth}": Number(f"held-out loss, at most chance, {label}, {depth} blocks",
                                    value(arm, HELD_OUT, depth=depth), ".2f", NATS)
            for arm, (label, _) in GNN.items() for depth in (2, 8)
        },
        (
            Part("With 8 blocks LayerNorm ends lower than no norm", Less("layernorm8", "none8", 0.05)),
            Part("With LayerNorm 8 blocks are not worse than 2 by 0.05 nats",
                 NotWorse("layernorm8", "layernorm2", 0.05)),
            Part("The GNN ends lower than an MLP that does not read the edges",
                 LessInMost("layernorm2", "mlp2"), control=True),
        ),
        "500 digits joined with their 5 nearest, 5 of each digit shown; 80 steps at a constant "
        "0.001 without warm-up, loss of the others, where one above chance counts as chance. With "
        "8 blocks the GNN ends at {none8} without a norm, {layernorm8} with LayerNorm and "
        "{batchnorm8} with BatchNorm; with 2 blocks at {none2}, {layernorm2} and {batchnorm2}. An "
        "MLP that reads no edges ends at {mlp2} with 2 blocks. No part compares with the loss of "
        "training, so that a model without a norm may end higher because it trains less, at this "
        "one rate; none compares the two with 2 blocks, where the difference is not clear. "
        "Features and edges of all nodes are read in training.",
        Curve("depth", HELD_OUT, log_y=False),
        changed="Runs had 40 steps, and some still fell; they have 80. The "
                "part about an MLP became a control, since the claim says nothing of one.",
        open_=(("none", {"depth": 8}), ("layernorm", {"depth": 8}), ("batchnorm", {"depth": 8}),
               ("mlp", {"depth": 8})),
        question="norm",
        finding=(
            "ttt",
            "A graph network of 8 blocks ends at {layernorm8} with LayerNorm and at {none8} "
            "without a norm, where some seeds are at chance or above it, on nodes whose labels it "
            "did not train on; with 2 blocks at {layernorm2} and {none2}.",
        ),
    ),
    Claim(
        "C50",
        "Post-LN generalises better",
        "Pre-LN overfits more than Post-LN, which does better on data that training did not see.",
        "Mao et al. 2023, arXiv:2305.09312, abstract (zero-shot translation, after Xu et al. 2019, "
        "arXiv:1911.07013)",
        {
            arm: {"label": label, "scheme": arm, "lr": "0.0025,0.005,0.01,0.02", **DIGITS}
            for arm, label in VIT.items()
        },
        {
            name: number
            for arm, label in VIT.items()
            for name, number in {
                **tuned(arm, label),
                f"{arm}_train": at_rate_of(arm, arm, label, FINAL),
                f"{arm}_gap": Number(f"held-out loss minus training loss, {label}",
                                     Combined(sub, arm, f"{arm}_train"), ".3f", NATS),
            }.items()
        },
        (
            Part("The held-out loss is closer to that of training", Less("post_gap", "pre_gap", SMALL)),
            Part("The held-out loss is lower", Less("post", "pre", SMALL)),
        ),
        "Images of digits, each drawn about twice on average in 200 steps, a vision transformer of "
        "2 blocks, PyTorch's initialisation, warm-up and a falling rate. At the rates whose "
        "held-out loss is lowest on the other seeds Post-LN ends at {post} on images that training "
        "did not see and {post_train} in training (rate {post_rate}), Pre-LN at {pre} and "
        "{pre_train} ({pre_rate}); the differences are {post_gap} and {pre_gap}. The held-out "
        "images are the last fifth of a file that goes writer by writer, so part of the gap may "
        "come from other handwriting. The source is about translation between languages that were "
        "not paired in training, which is not tested.",
        Curve("lr", HELD_OUT, log_y=False),
        seeds=6,
        question="quality",
        finding=(
            "uu",
            "On images of digits the held-out loss is {post_gap} above that of training in Post-LN "
            "and {pre_gap} in Pre-LN. Whether that is less, and whether Post-LN's held-out loss is "
            "lower ({post} and {pre}), is undecided.",
        ),
    ),
)  # fmt: skip
