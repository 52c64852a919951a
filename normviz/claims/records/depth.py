"""How deep each placement trains, and remedies for Post-LN."""

from __future__ import annotations

import math

from ..evidence import FINAL, at, lab, quotient, squared
from ..numbers import HALF, final, largest_rate, slope, training, value
from ..record import Claim, Curve, Number, Strip, Theory
from ..rule import All, Between, Less, Part

NATS = "nats"
END = squared(at("stream_rms", -1, -1), "variance of the stream after the last block, last step")
START = squared(at("stream_rms", 0, -1), "variance of the stream after the last block, step 0")
FIRST_LAST = quotient("grad_block", 0, 1, -1)
CALM = {"lr": "0.001", "steps": "150"}
THIN = {
    "depth": "1000",
    "width": "16",
    "heads": "2",
    "seq_len": "16",
    "steps": "150",
    "lr": "0.003",
    "warmup": "20",
}
LEARNS = 3.22
"""Chance on the Markov task minus 3 %, in nats. A run above it counts as stuck."""


CLAIMS = (
    Claim(
        "C10",
        "B2T keeps Post-LN's gradients",
        "The norms are where Post-LN's gradient vanishes; a connection from bottom to top that passes "
        "them by keeps it, and deep models train.",
        "Takase et al. 2023, arXiv:2206.00330",
        {
            "b2t": {"label": "B2T at step 0", "scheme": "b2t", "depth": "24,48", "steps": "0"},
            "b2t_run": {"label": "B2T, 18 blocks", "scheme": "b2t", "depth": "18", "lr": "0.001"},
            "post_run": {"label": "Post-LN, 18 blocks", "scheme": "post", "depth": "18", "lr": "0.001"},
        },
        {
            "half": Number("gradient, first over last of 24 blocks, at step 0",
                           value("b2t", FIRST_LAST, depth=24)),
            "whole": Number("gradient, first over last of 48 blocks, at step 0",
                            value("b2t", FIRST_LAST, depth=48)),
            "b2t": final("b2t_run", "B2T, 18 blocks"),
            "post": final("post_run", "Post-LN, 18 blocks"),
        },
        (
            Part("in that gradients stay even, 24 blocks", Between("half", 0.5, 2)),
            Part("in that gradients stay even, 48 blocks", Between("whole", 0.5, 2)),
            Part("in that 18 blocks train where Post-LN does not",
                 All((Between("b2t", high=HALF), Between("post", low=HALF)))),
        ),
        "At step 0 B2T's first block gets {half} times the last one's gradient with 24 blocks and "
        "{whole} times with 48. With 18 blocks it ends at {b2t}, Post-LN at {post}. Gradients inside "
        "a block, on either side of a norm, are not recorded here. So the place where they vanish "
        "is not tested.",
        Strip("final loss (nats)", ("b2t", "post")),
        open_=(("b2t_run", {}), ("post_run", {})),
        question="depth",
        finding=(
            "ttt",
            "With B2T the gradients stay even, and 18 blocks end at {b2t}. Post-LN ends at "
            "{post}.",
        ),
    ),
    Claim(
        "C11",
        "The curse of depth",
        "The variance of Pre-LN's output grows exponentially with depth; dividing the norm's output by "
        "the square root of the depth (LayerNorm Scaling) tames it.",
        "Sun et al. 2025, arXiv:2502.05795, lemma 3.2 and figure 4 (between linear and exponential)",
        {
            "start": {"label": "Pre-LN, step 0", "scheme": "pre", "depth": "6,12,24,48", "steps": "0"},
            "pre": {"label": "Pre-LN, trained", "scheme": "pre", "depth": "6,12,24,48", **CALM},
            "lns": {"label": "LayerNorm Scaling, trained", "scheme": "lns", "depth": "6,12,24,48",
                    **CALM},
        },
        {
            "start": Number("the exponent over depth, Pre-LN at step 0",
                            slope("start", "depth", START)),
            "pre": Number("the exponent over depth, Pre-LN after 150 steps",
                          slope("pre", "depth", END)),
            "lns": Number("the exponent over depth, LayerNorm Scaling after 150 steps",
                          slope("lns", "depth", END)),
            "pre_end": Number("the variance after 150 steps, 48 blocks, Pre-LN",
                              value("pre", END, depth=48), ".1f"),
            "lns_end": Number("the variance after 150 steps, 48 blocks, LayerNorm Scaling",
                              value("lns", END, depth=48), ".1f"),
        },
        (
            Part("before training, in growing faster than linearly", Between("start", low=1.3)),
            Part("after training, in growing faster than linearly", Between("pre", low=1.3)),
            Part("in that LayerNorm Scaling tames it", Less("lns_end", "pre_end")),
        ),
        "At step 0 the variance after the last block grows as L to the power of {start}: about a "
        "straight line. After 150 steps the exponent is {pre}, with LayerNorm Scaling {lns}. With 48 blocks "
        "Pre-LN ends at {pre_end} and LayerNorm Scaling at {lns_end}. If the growth were exponential, "
        "the exponent would keep rising with L.",
        Curve("depth", END),
        (
            Theory("L", "from Pre-LN's first point: branches of constant variance",
                   lambda x, x0, y0: y0 * x / x0, "pre"),
            Theory("1 + ln L", "from LayerNorm Scaling's first point: branches of variance 1/l",
                   lambda x, x0, y0: y0 * (1 + math.log(x)) / (1 + math.log(x0)), "lns"),
        ),
        open_=(("pre", {"depth": 48}), ("lns", {"depth": 48})),
        question="stream",
        finding=(
            "ftt",
            "Pre-LN's variance grows faster than linearly after training, not before. LayerNorm "
            "Scaling tames it: {lns_end} instead of {pre_end} with 48 blocks.",
        ),
    ),
    Claim(
        "C12",
        "Deep layers can be left out",
        "In Pre-LN the deep layers can be removed at little cost, in Post-LN the early ones.",
        "Sun et al. 2025, arXiv:2502.05795; Gromov et al. 2024, arXiv:2403.17887",
        {
            arm: {"label": label, "scheme": arm, "init": "torch", "task": "prose", "depth": "8",
                  "steps": "500", "lr": "0.002", "warmup": "60", "schedule": "linear"}
            for arm, label in (("pre", "Pre-LN"), ("post", "Post-LN"))
        },
        {
            "pre": Number("rank correlation of a block's cost with its place, Pre-LN",
                          value("pre", lab("rank", "rank"))),
            "post": Number("rank correlation of a block's cost with its place, Post-LN",
                           value("post", lab("rank", "rank"))),
            "pre_loss": Number("loss on other batches of the training text, Pre-LN",
                               value("pre", lab("loss", "loss")), unit=NATS),
            "post_loss": Number("loss on other batches of the training text, Post-LN",
                                value("post", lab("loss", "loss")), unit=NATS),
            "pre_first": Number("cost of the first block, Pre-LN",
                                value("pre", lab("first", "cost")), ".3f", NATS),
            "pre_last": Number("cost of the last block, Pre-LN",
                               value("pre", lab("last", "cost")), ".3f", NATS),
            "post_first": Number("cost of the first block, Post-LN",
                                 value("post", lab("first", "cost")), ".3f", NATS),
            "post_last": Number("cost of the last block, Post-LN",
                                value("post", lab("last", "cost")), ".3f", NATS),
        },
        (
            Part("for Pre-LN, whose cost falls with the block", Between("pre", high=-0.3)),
            Part("for Post-LN, whose cost rises with the block", Between("post", low=0.3)),
        ),
        "The cost of leaving out one of 8 blocks, on batches that training did not draw. They come from "
        "the text that it was trained on, so this is no held-out text. In Pre-LN the "
        "cost's rank correlation with the block is {pre}: {pre_first} for the first, {pre_last} for "
        "the last. In Post-LN it is {post}: {post_first} and {post_last}, so the last block stands out "
        "and the others hardly rank. With all blocks Pre-LN's loss "
        "is {pre_loss} and Post-LN's {post_loss}. Both train with these settings, which were found "
        "on another seed.",
        Strip("cost of leaving out a block (nats)",
              ("pre_first", "pre_last", "post_first", "post_last")),
        seeds=5,
        lab="drop",
        question="stream",
        finding=(
            "to",
            "In Pre-LN later blocks cost less to leave out. In Post-LN these seeds show no clear "
            "order.",
        ),
    ),
    Claim(
        "C25",
        "Training without a norm",
        "With the right gains or initialisation a transformer trains without any norm and without "
        "warm-up, where a plain one without norms does not.",
        "Bachlechner et al. 2020, arXiv:2003.04887; Huang et al. 2020 (T-Fixup); Touvron et al. 2021, "
        "arXiv:2103.17239 (LayerScale, which keeps its norms)",
        {
            arm: {"label": label, "scheme": arm, "depth": "12,48", "steps": "150"}
            for arm, label in (("none", "No norm"), ("rezero", "ReZero"), ("tfixup", "T-Fixup"),
                               ("layerscale", "LayerScale"))
        },
        {
            **{
                arm: Number(f"share of 12 and 48 blocks that train, {label}", training(arm))
                for arm, label in (("none", "no norm"), ("rezero", "ReZero"),
                                   ("tfixup", "T-Fixup"), ("layerscale", "LayerScale"))
            },
            "rezero_loss": final("rezero", "ReZero, 48 blocks", depth=48),
            "layerscale_loss": final("layerscale", "LayerScale, 48 blocks", depth=48),
            "tfixup_loss": final("tfixup", "T-Fixup, 48 blocks", depth=48),
        },
        (
            Part("for ReZero", All((Between("rezero", 1, 1), Between("none", 0, 0)))),
            Part("for T-Fixup", All((Between("tfixup", 1, 1), Between("none", 0, 0)))),
            Part("for LayerScale", All((Between("layerscale", 1, 1), Between("none", 0, 0)))),
        ),
        "Of 12 and 48 blocks at a rate of 0.003 without warm-up, this share trains: no norm {none}, "
        "ReZero {rezero}, T-Fixup {tfixup}, LayerScale {layerscale}. With 48 blocks they end at "
        "{rezero_loss}, {tfixup_loss} and {layerscale_loss}.",
        Curve("depth", FINAL, log_y=False),
        open_=(("none", {"depth": 12}), ("rezero", {"depth": 48}), ("tfixup", {"depth": 48})),
        question="train",
        finding=(
            "ttt",
            "ReZero, T-Fixup and LayerScale train 12 and 48 blocks, where a plain model without "
            "norms does not.",
        ),
    ),
    Claim(
        "C27",
        "KEEL tolerates high rates at depth",
        "KEEL trains very deep stacks, at learning rates at least as high as Pre-LN's.",
        "Chen and Wei 2026, arXiv:2601.19895 (alpha = 2L is from re-implementations)",
        {
            arm: {"label": label, "scheme": arm, "depth": "64", "lr": "0.001,0.003,0.01,0.03",
                  "steps": "150"}
            for arm, label in (("keel", "KEEL"), ("pre", "Pre-LN"), ("post", "Post-LN"))
        },
        {
            "keel": Number("the largest rate that trains, KEEL", largest_rate("keel"), "g"),
            "pre": Number("the largest rate that trains, Pre-LN", largest_rate("pre"), "g"),
            "post": Number("the largest rate that trains, Post-LN", largest_rate("post"), "g"),
            "behind": Number("the largest rate of Pre-LN over that of KEEL",
                             lambda s: largest_rate("pre")(s) / (largest_rate("keel")(s) or 1e-9),
                             ".3g"),
        },
        (
            Part("in that 64 blocks train", Between("keel", low=0.001)),
            Part("in that its highest rate is at least Pre-LN's", Between("behind", high=1.001)),
        ),
        "With 64 blocks and rates from 0.001 to 0.03, the largest rate that trains is {keel} for KEEL, "
        "{pre} for Pre-LN and {post} for Post-LN (0: none).",
        Curve("lr", FINAL, log_y=False),
        open_=(("keel", {"lr": 0.01}), ("pre", {"lr": 0.01}), ("post", {"lr": 0.01})),
        question="depth",
        finding=(
            "tf",
            "KEEL trains 64 blocks, at rates up to {keel}. Pre-LN trains them up to {pre}.",
        ),
    ),
    Claim(
        "E2",
        "How deep each placement trains",
        "Post-LN trains to 12 to 24 layers without tricks, 48 and more fail even with warm-up; Pre-LN "
        "trains at 96 and beyond.",
        "teaching material, after Wang et al. 2019, arXiv:1906.01787, and Wang et al. 2022",
        {
            "post": {"label": "Post-LN", "scheme": "post", "init": "torch", "depth": "12,24",
                     "lr": "0.001"},
            "warm": {"label": "Post-LN, warm-up", "scheme": "post", "init": "torch", "lr": "0.001",
                     "depth": "48,96", "warmup": "100"},
            "pre": {"label": "Pre-LN", "scheme": "pre", "init": "torch", "depth": "96", "lr": "0.001"},
        },
        {
            "p12": final("post", "Post-LN, 12 blocks", depth=12),
            "p24": final("post", "Post-LN, 24 blocks", depth=24),
            "p48": final("warm", "Post-LN, 48 blocks, warm-up", depth=48),
            "p96": final("warm", "Post-LN, 96 blocks, warm-up", depth=96),
            "pre": final("pre", "Pre-LN, 96 blocks"),
        },
        (
            Part("for Post-LN with 12 blocks", Between("p12", high=HALF)),
            Part("for Post-LN with 24 blocks", Between("p24", high=HALF)),
            Part("in that 48 blocks fail with warm-up", Between("p48", low=HALF)),
            Part("in that 96 blocks fail with warm-up", Between("p96", low=HALF)),
            Part("for Pre-LN with 96 blocks", Between("pre", high=HALF)),
        ),
        "PyTorch's initialisation, rate 0.001, 200 steps. Without warm-up Post-LN ends at {p12} with 12 "
        "blocks and {p24} with 24; with 100 steps of warm-up at {p48} with 48 and {p96} with 96. "
        "Pre-LN with 96 blocks ends at {pre}. The depth limit depends on rate and initialisation: see the "
        "maps.",
        Curve("depth", FINAL, log_y=False),
        everyday=True,
        open_=(("post", {"depth": 24}), ("warm", {"depth": 48}), ("pre", {})),
        question="depth",
        finding=(
            "ttttt",
            "Post-LN trains with 12 and 24 blocks, and with 48 and 96 it fails even with warm-up. "
            "Pre-LN trains with 96.",
        ),
    ),
    Claim(
        "E3",
        "A thousand layers",
        "DeepNorm trains at 1000 layers, where Post-LN does not.",
        "Wang et al. 2022, arXiv:2203.00555",
        {
            arm: {"label": label, "scheme": arm, **THIN}
            for arm, label in (("deepnorm", "DeepNorm"), ("pre", "Pre-LN"), ("post", "Post-LN"))
        },
        {
            "deepnorm": final("deepnorm", "DeepNorm, 1000 blocks"),
            "pre": final("pre", "Pre-LN, 1000 blocks"),
            "post": final("post", "Post-LN, 1000 blocks"),
        },
        (
            Part("in that DeepNorm learns", Between("deepnorm", high=LEARNS)),
            Part("in that Post-LN does not", Between("post", low=LEARNS)),
        ),
        "Thin models (width 16), 150 steps at a rate of 0.003 with 20 steps of warm-up; chance is 3.32. "
        "DeepNorm with 1000 blocks ends at {deepnorm}, Post-LN at {post}. Pre-LN, which the claim "
        "does not mention, ends at {pre}. The settings were chosen with DeepNorm on another seed, and "
        "chosen twice: without warm-up, at a third of the rate and with fewer steps, one of three "
        "seeds had stayed at chance.",
        Strip("final loss (nats)"),
        everyday=True,
        question="depth",
        finding=(
            "tt",
            "With 1000 blocks DeepNorm leaves chance and ends at {deepnorm}, Post-LN stays there "
            "at {post}. Pre-LN ends at {pre}.",
        ),
    ),
    Claim(
        "E9",
        "Scaled branches mend Post-LN",
        "Scaling the sublayers' outputs by 1/sqrt(2L) mends Post-LN.",
        "teaching material; GPT-2's factor moved to Post-LN",
        {
            "scaled": {"label": "Post-LN, branch / sqrt(2L)", "scheme": "post_scaled",
                       "depth": "12,24,48", "lr": "0.001"},
            "post": {"label": "Post-LN", "scheme": "post", "depth": "12,24,48", "lr": "0.001"},
        },
        {
            f"{arm}{depth}": final(arm, f"{label}, {depth} blocks", depth=depth)
            for arm, label in (("scaled", "scaled Post-LN"), ("post", "Post-LN"))
            for depth in (12, 24, 48)
        },
        tuple(
            Part(f"with {depth} blocks",
                 All((Between(f"scaled{depth}", high=HALF), Between(f"post{depth}", low=HALF))))
            for depth in (12, 24, 48)
        ),
        "Xavier, rate 0.001, no warm-up. With 12, 24 and 48 blocks Post-LN ends at {post12}, {post24} and "
        "{post48}; with its branches divided by sqrt(2L) at {scaled12}, {scaled24} and {scaled48}.",
        Curve("depth", FINAL, log_y=False),
        everyday=True,
        open_=(("scaled", {"depth": 48}), ("post", {"depth": 48})),
        question="depth",
        finding=(
            "ttt",
            "With 48 blocks Post-LN ends at {post48}, and at {scaled48} with its branches divided "
            "by sqrt(2L).",
        ),
    ),
)  # fmt: skip
