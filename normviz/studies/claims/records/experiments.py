"""Six experiments of our own: what predicts, cures and bounds the failure of Post-LN."""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub

from ....catalog import SCHEMES
from ..evidence import (
    FINAL,
    GRADIENT,
    CellResult,
    Quantity,
    at,
    lab,
    lifetime,
    quotient,
    renamed,
    setting,
)
from ..numbers import (
    HALF,
    Of,
    depth_slope,
    largest,
    largest_rate,
    minus,
    separation,
    tuned,
    value,
)
from ..record import Claim, Combined, Number, Pick, Scatter, Strip, Theory
from ..rule import All, Between, Less, LessInMost, Most, Part
from .quality import HIGH, JUDGED, LOW, SMALL

NATS = "nats"
PLACEMENTS = (
    "pre", "pre_nofinal", "post", "pre_post_main", "mixln", "post_scaled", "post_init", "none", "subln",
    "normformer", "hybridnorm", "tfixup", "b2t", "spannorm", "skip_norm", "parallel", "lambda_skip",
    "sandwich", "peri", "dssn", "gated_peri", "resp", "layerscale", "resid_const", "completep", "lns", "gpas",
    "deepnorm", "admin", "keel",
)  # fmt: skip
INITS = {"xavier": "Xavier", "torch": "PyTorch's init"}


def _apart(run: CellResult) -> float:
    return 1.0 - at("token_cosine", 0, -1).of(run)


APART = Quantity("1 - token cosine of the last layer at step 0", "", _apart)
"""How far tokens point in different directions before training; 0 where they are all alike."""
UNEVEN = renamed(quotient("grad_block", 0, 1, -1), "gradient, first block over last, at step 0")
GRID = "0.0625,0.125,0.25,0.5,1,2"
DEEP = (6, 12, 24, 48)

RATES: dict[str, tuple[str, str, tuple[str, str, str]]] = {
    "post": ("Post-LN", "torch", ("0.004,0.008,0.016,0.032,0.064", "0.001,0.002,0.004,0.008,0.016",
                                  "0.00025,0.0005,0.001,0.002")),
    "pre": ("Pre-LN", "torch", ("0.016,0.032,0.064,0.128,0.256", "0.016,0.032,0.064,0.128,0.256",
                                "0.008,0.016,0.032,0.064,0.128")),
    "peri": ("Peri-LN", "torch", ("0.064,0.128,0.256,0.512,1.024", "0.064,0.128,0.256,0.512,1.024",
                                  "0.032,0.064,0.128,0.256,0.512")),
    "deepnorm": ("DeepNorm", "xavier", ("0.008,0.016,0.032,0.064,0.128", "0.004,0.008,0.016,0.032,0.064",
                                        "0.001,0.002,0.004,0.008,0.016")),
    "completep": ("Pre-LN, branches / L", "torch", ("0.032,0.064,0.128,0.256,0.512",
                                                    "0.032,0.064,0.128,0.256,0.512",
                                                    "0.032,0.064,0.128,0.256,0.512")),
}  # fmt: skip
"""Label, initialisation, and the rates of each depth."""
LADDER = (4, 12, 36)

TEXT = {**JUDGED, "init": "torch"}
TUNED = {
    2: (LOW, HIGH),
    4: (LOW, HIGH),
    8: (LOW, LOW),
}
"""Rates of Post-LN and Pre-LN for each depth."""

LONG = {"scheme": "post", "steps": "1000"}

SHARP = {"depth": "10", "steps": "100"}
OPTIMIZERS = {"sgd": ("SGD", {"optimizer": "sgd", "lr": "0.1"}), "adam": ("Adam", {"lr": "0.003"})}


def highest(arm: str, depth: int) -> Of:
    """The largest rate that trains a placement of so many blocks."""
    return largest_rate(f"{arm}{depth}")


def exponent(arm: str) -> Number:
    """Of the largest rate that trains, over depth."""
    of = depth_slope({depth: highest(arm, depth) for depth in LADDER})
    return Number(f"exponent of the largest rate over depth, {RATES[arm][0]}", of)


def largest_of(arm: str, numbers: Mapping[str, float]) -> list[Pick]:
    """The runs of an exponent: of each depth the one at the largest rate that trains."""
    rates = {f"{arm}{depth}": numbers[f"{arm}{depth}"] for depth in LADDER}
    return [(name, {"lr": rate}) for name, rate in rates.items() if rate]


def both_of(gap: str, numbers: Mapping[str, float]) -> list[Pick]:
    """The runs of a difference: both placements at the rates that were chosen."""
    arms = [f"{arm}{gap.removeprefix('gap')}" for arm in ("post", "pre")]
    return [(arm, {"lr": numbers[f"{arm}_rate"]}) for arm in arms]


PLATEAUS: dict[str, Pick] = {
    **{
        f"d{depth}_{name}": ("depth", {"depth": depth, "beta2": beta2})
        for depth in (6, 9, 12, 18)
        for name, beta2 in (("9", 0.9), ("999", 0.999))
    },
    **{
        f"r{lr}_{name}": ("rate", {"lr": rate, "beta2": beta2})
        for lr, rate in (("low", 0.00025), ("high", 0.001))
        for name, beta2 in (("9", 0.9), ("999", 0.999))
    },
}
"""The run of each number of X5."""


def lived(arm: str, where: Mapping[str, object]) -> Number:
    """Steps of a plateau."""
    named = {"depth": 12, "lr": 0.0005, **where}
    words = "{depth} blocks, rate {lr:g}, beta2 {beta2}".format(**named)
    return Number(
        f"steps to half of the way, {words}", value(arm, lifetime(HALF), **where), ".0f", "steps"
    )


def over_edge(arm: str, key: str, words: str) -> Number:
    """A sharpness over the optimizer's edge at the peak rate."""
    return Number(f"sharpness over the edge, {words}", value(arm, lab(key, words)), ".3g")


CLAIMS = (
    Claim(
        "X1",
        "One number before training",
        "How alike the tokens are in the last layer before the first step tells which runs will fail.",
        "an experiment of NormViz; that attention makes tokens alike: Dong et al. 2021, arXiv:2103.03404",
        {
            f"{scheme}_{init}": {
                "label": f"{SCHEMES.label(scheme)}, {label}", "scheme": scheme, "init": init,
                "depth": "6,24", "steps": "120", "schedule": "linear",
            }
            for scheme in PLACEMENTS
            for init, label in INITS.items()
        },
        {
            "auc": Number("AUC of 1 - token cosine", separation(APART)),
            "auc_uneven": Number("AUC of the gradient, first block over last", separation(UNEVEN)),
            "auc_gradient": Number("AUC of the size of the gradient, smaller better",
                                   minus(lambda _: 1.0, separation(GRADIENT))),
            "auc_depth": Number("AUC of the number of blocks, fewer better",
                                minus(lambda _: 1.0, separation(setting("depth")))),
        },
        (
            Part("It tells failing runs from the others with an AUC of 0.9 or more", Between("auc", low=0.9)),
            Part("It tells more than the number of blocks", Less("auc_depth", "auc"), control=True),
            Part("It tells more than the size of the gradient", Less("auc_gradient", "auc"), control=True),
        ),
        "30 placements, each with Xavier and PyTorch's initialisation and with 6 and 24 blocks; 120 steps at "
        "a rate that falls from 0.003 to 0, without warm-up. The AUC is the share of pairs, of a run that "
        "trains and one that does not, that a number before training puts in order; 0.5 is a guess. 1 - "
        "token cosine has {auc}, the gradient of the first block over the last {auc_uneven}, the size of the "
        "whole gradient {auc_gradient}, the number of blocks {auc_depth}.",
        Scatter(APART, FINAL, log_x=True, names_misfits=True),
        open_=(("pre_xavier", {"depth": 24}), ("post_xavier", {"depth": 24}), ("post_torch", {"depth": 24}),
               ("none_xavier", {"depth": 24})),
        changed="The rate was constant, and on a second set of seeds a run that still fell left the third "
        "part undecided, which was true on the first. Now the rate falls to 0.",
        question="experiment",
        finding=(
            "ttt",
            "How alike the tokens are before training tells which runs will fail, with an AUC of {auc}; the "
            "size of the gradient has {auc_gradient}, the number of blocks {auc_depth}.",
        ),
    ),
    Claim(
        "X2",
        "How small must Post-LN's branches be?",
        "Post-LN trains where its branches are multiplied by a c of at most about 1/sqrt(2L).",
        "an experiment of NormViz; 1/sqrt(2L) is GPT-2's factor (E9), (2L)^(-1/4) is the one of DeepNorm, "
        "Wang et al. 2022, arXiv:2203.00555",
        {
            "post": {"label": "N(x + c F(x))", "scheme": "post", "depth": "6,12,24,48", "steps": "300",
                     "branch_gain": GRID},
        },
        {
            **{
                f"c{depth}": Number(f"the largest c that trains, {depth} blocks",
                                    largest("post", "branch_gain", depth=depth), "g")
                for depth in DEEP
            },
            "power": Number("exponent of the largest c over depth",
                            depth_slope({d: largest("post", "branch_gain", depth=d) for d in DEEP})),
        },
        (
            Part("6, 12, 24 and 48 blocks train with the c of the grid next below 1/sqrt(2L)",
                 All(tuple(Most(f"c{depth}", low=low)
                           for depth, low in ((6, 0.25), (12, 0.125), (24, 0.125), (48, 0.0625))))),
            Part("The largest c falls with depth as 1/sqrt(L): its exponent is -0.6 to -0.4",
                 Between("power", -0.6, -0.4)),
            Part("It falls faster than DeepNorm's factor: its exponent is below -0.25",
                 Between("power", high=-0.25), control=True),
        ),
        "Post-LN with Xavier and a branch gain c, at a rate of 0.003 without warm-up, 300 steps; values of "
        "c are a factor of 2 apart. The largest that trains is {c6} with 6 blocks, {c12} with 12, {c24} "
        "with 24 and {c48} with 48; its exponent over these depths is {power}, and nothing here says that "
        "it goes on beyond 48 blocks. DeepNorm is N(x + c F(x)) with c = (2L)^(-1/4), up to the norm's eps, "
        "and besides starts with smaller matrices. Admin's factor depends on the data, so it has no line.",
        Scatter(setting("depth"), setting("branch_gain", "c"), log_x=True, log_y=True),
        (
            Theory("1/sqrt(2L)", "one over the square root of the number of sublayers",
                   lambda x, _x0, _y0: (2 * x) ** -0.5),
            Theory("(2L)^(-1/4)", "DeepNorm, whose matrices are smaller as well",
                   lambda x, _x0, _y0: (2 * x) ** -0.25),
        ),
        open_=(("post", {"depth": 24, "branch_gain": 0.125}), ("post", {"depth": 24, "branch_gain": 1.0}),
               ("post", {"depth": 48, "branch_gain": 0.0625}), ("post", {"depth": 48, "branch_gain": 1.0})),
        changed="The first part was four, one for each depth, of which each implies the next.",
        question="experiment",
        finding=(
            "tft",
            "The largest branch gain that trains Post-LN is {c6}, {c12}, {c24} and {c48} with 6, 12, "
            "24 and 48 blocks, on a grid of a factor of 2. Over these depths it falls as L to the power of "
            "{power}, faster than 1/sqrt(L). Deeper models were not run.",
        ),
    ),
    Claim(
        "X3",
        "How fast the largest rate falls with depth",
        "The largest learning rate that trains falls with depth, fastest in Post-LN, and not at all where "
        "branches are divided by L.",
        "an experiment of NormViz; that rates carry over with branches / L: Dey et al. 2025, "
        "arXiv:2505.01618",
        {
            f"{arm}{depth}": {"label": f"{label}, {depth} blocks", "scheme": arm, "init": init,
                              "depth": str(depth), "lr": rates}
            for arm, (label, init, windows) in RATES.items()
            for depth, rates in zip(LADDER, windows, strict=True)
        },
        {
            **{
                f"{arm}{depth}": Number(f"the largest rate that trains, {label}, {depth} blocks",
                                        highest(arm, depth), "g")
                for arm, (label, _, _) in RATES.items()
                for depth in LADDER
            },
            **{arm: exponent(arm) for arm in RATES},
        },
        (
            Part("Post-LN's exponent is below -0.5", Between("post", high=-0.5)),
            Part("Post-LN's falls faster than Pre-LN's", Less("post", "pre")),
            Part("Post-LN's falls faster than DeepNorm's", Less("post", "deepnorm")),
            Part("Peri-LN's falls more slowly than Pre-LN's", Less("pre", "peri"), control=True),
            Part("With branches / L its exponent is -0.2 to 0.2", Between("completep", -0.2, 0.2)),
        ),
        "Rates a factor of 2 apart, 200 steps, no warm-up; PyTorch's initialisation, for DeepNorm its own "
        "with Xavier. From 4 to 36 blocks the largest rate that trains goes as L to the power of {post} in "
        "Post-LN, {deepnorm} in DeepNorm, {pre} in Pre-LN, {peri} in Peri-LN and {completep} in Pre-LN with "
        "branches / L. The rates are in the table of all numbers.",
        Strip("exponent of the largest rate over depth", tuple(RATES), runs=largest_of),
        open_=(("post36", {"lr": 0.002}), ("pre36", {"lr": 0.016}), ("peri36", {"lr": 0.032}),
               ("completep36", {"lr": 0.032})),
        question="experiment",
        finding=(
            "tttuu",
            "From 4 to 36 blocks Post-LN's largest rate falls from {post4} to {post36}, as L to the "
            "power of {post}. Pre-LN's hardly falls: {pre4} and {pre36}.",
        ),
    ),
    Claim(
        "X4",
        "Post-LN's advantage against depth",
        "At rates that were tuned alike Post-LN ends lower than Pre-LN in shallow models, and loses this "
        "with depth.",
        "an experiment of NormViz, after E7",
        {
            f"{arm}{depth}": {"label": f"{label}, {depth} blocks", "scheme": arm, **TEXT, "depth": str(depth),
                              "lr": rates}
            for depth, both in TUNED.items()
            for (arm, label), rates in zip((("post", "Post-LN"), ("pre", "Pre-LN")), both, strict=True)
        },
        {
            **{
                name: number
                for depth in TUNED
                for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
                for name, number in tuned(f"{arm}{depth}", f"{label}, {depth} blocks").items()
            },
            **{
                f"gap{depth}": Number(f"Post-LN minus Pre-LN, {depth} blocks",
                                      Combined(sub, f"post{depth}", f"pre{depth}"), ".3f", NATS)
                for depth in TUNED
            },
        },
        (
            *(
                Part(f"With {depth} blocks Post-LN ends lower",
                     Less(f"post{depth}", f"pre{depth}", SMALL))
                for depth in TUNED if depth < 8
            ),
            Part("Post-LN minus Pre-LN is greater with 8 blocks than with 2", Less("gap2", "gap8", SMALL)),
        ),
        "Held-out loss on prose with PyTorch's initialisation, 600 steps, warm-up and a falling rate. Each "
        "has the rate of five, a factor of about 1.5 apart, that is best on the other seeds. Post-LN "
        "minus Pre-LN is {gap2} with 2 blocks ({post2} at {post2_rate} and {pre2} at "
        "{pre2_rate}), {gap4} with 4 ({post4} at {post4_rate} and {pre4} at {pre4_rate}) and "
        "{gap8} with 8 ({post8} at {post8_rate} and {pre8} at {pre8_rate}).",
        Strip("Post-LN minus Pre-LN, held-out loss (nats)", tuple(f"gap{depth}" for depth in TUNED),
              runs=both_of),
        seeds=8,
        open_=(("post2", {}), ("pre2", {}), ("post8", {}), ("pre8", {})),
        changed="Each had three rates, of which four of six arms chose the first or the last, five seeds "
        "and two to choose on. Whether Post-LN ends lower with 8 blocks was a part, and counted for a claim "
        "that says nothing of the kind.",
        question="experiment",
        finding=(
            "ftu",
            "At rates that were tuned alike Post-LN ends lower with 4 blocks and higher with 2: Post-LN "
            "minus Pre-LN is {gap2} with 2 blocks, {gap4} with 4 and {gap8} with 8. Whether it is greater "
            "with 8 than with 2 is undecided.",
        ),
    ),
    Claim(
        "X5",
        "How long Post-LN stays on its plateau",
        "Post-LN leaves chance in the end: how many steps that takes grows with depth, with the rate and "
        "with beta2.",
        "an experiment of NormViz",
        {
            "depth": {"label": "rate 0.0005", **LONG, "depth": "6,9,12,18", "lr": "0.0005",
                      "beta2": "0.9,0.999"},
            "rate": {"label": "12 blocks", **LONG, "depth": "12", "lr": "0.00025,0.001",
                     "beta2": "0.9,0.999"},
        },
        {
            name: lived(arm, where) for name, (arm, where) in PLATEAUS.items()
        },
        (
            Part("9 blocks take longer than 6", LessInMost("d6_999", "d9_999")),
            Part("12 blocks take longer than 9", LessInMost("d9_999", "d12_999")),
            Part("12 blocks take longer at 0.001 than at 0.0005", LessInMost("d12_999", "rhigh_999")),
            Part("12 blocks at 0.0005 are sooner done with a beta2 of 0.9",
                 LessInMost("d12_9", "d12_999")),
            Part("18 blocks leave it within 1000 steps", Most("d18_999", high=1000)),
        ),
        "Post-LN with Xavier and no warm-up: steps until the mean loss is half of the way from chance to the "
        "floor; infinite where 1000 were not enough. At a rate of 0.0005 it takes {d6_999} with 6 blocks, "
        "{d9_999} with 9 and {d12_999} with 12. With 12 blocks at 0.001: {rhigh_999}, with a beta2 of "
        "0.9 {rhigh_9}. The other cases are in the table of all numbers.",
        Strip("steps to half of the way; no point: more than 1000", log_y=True,
              runs=lambda name, _: [PLATEAUS[name]]),
        open_=(("depth", {"depth": 12, "beta2": 0.999}), ("depth", {"depth": 12, "beta2": 0.9}),
               ("rate", {"lr": 0.001, "beta2": 0.999}), ("rate", {"lr": 0.001, "beta2": 0.9})),
        question="experiment",
        finding=(
            "ttttf",
            "Until it is half of the way Post-LN takes {d6_999} with 6 blocks, {d9_999} with 9 and "
            "{d12_999} with 12. With 18 most runs take more than 1000.",
        ),
    ),
    Claim(
        "X6",
        "Post-LN starts beyond the edge of stability",
        "Post-LN starts in a place too sharp for its rate, and a warm-up leads to a flatter one.",
        "an experiment of NormViz, after Gilmer et al. 2021, arXiv:2110.04369; the edges are of Cohen et al. "
        "2021, arXiv:2103.00065, and 2022, arXiv:2207.14484",
        {
            f"{scheme}_{key}{warmup}": {
                "label": f"{label}, {optimizer}, warm-up {warmup}", "scheme": scheme, **SHARP, **more,
                "warmup": str(warmup),
            }
            for scheme, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            for key, (optimizer, more) in OPTIMIZERS.items()
            for warmup in (0, 100)
        },
        {
            **{
                f"{scheme}_{key}": over_edge(f"{scheme}_{key}0", "start_edge",
                                             f"{label}, {optimizer}, at the start")
                for scheme, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
                for key, (optimizer, _) in OPTIMIZERS.items()
            },
            **{
                f"{scheme}_{key}{warmup}": over_edge(
                    f"{scheme}_{key}{warmup}", "later_edge",
                    f"{label}, {optimizer}, after 100 steps {'of' if warmup else 'without'} warm-up")
                for scheme, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
                for key, (optimizer, _) in OPTIMIZERS.items()
                for warmup in (0, 100)
            },
        },
        (
            Part("With SGD at 0.1 Post-LN starts above the edge", Between("post_sgd", low=1, ratio=True)),
            Part("With Adam at 0.003 Post-LN starts above the edge", Between("post_adam", low=1, ratio=True)),
            Part("With Adam at 0.003 Pre-LN starts below it",
                 Between("pre_adam", high=1, ratio=True), control=True),
            Part("Warm-up brings Post-LN below the edge of Adam", Most("post_adam100", high=1)),
            Part("Warm-up brings Post-LN below the edge of SGD", Most("post_sgd100", high=1)),
            Part("After warm-up Post-LN is flatter than at the start, for Adam",
                 Less("post_adam100", "post_adam", ratio=True)),
        ),
        "Models of 10 blocks with Xavier. The edge is 2 / rate for SGD, of the Hessian's largest "
        "eigenvalue; for Adam it is 38 / rate, of the Hessian preconditioned by Adam's own scaling. The "
        "two may not be compared with each other, and both are of training on one fixed batch: here each "
        "step has its own. Over the edge at the peak rate, SGD at 0.1: Post-LN starts at {post_sgd} and "
        "has {post_sgd100} after 100 steps of warm-up, {post_sgd0} without; Pre-LN {pre_sgd}, {pre_sgd100} "
        "and {pre_sgd0}. Adam at 0.003: Post-LN {post_adam}, {post_adam100} and {post_adam0}; Pre-LN "
        "{pre_adam}, {pre_adam100} and {pre_adam0}.",
        Strip("sharpness over the edge of stability", log_y=True,
              runs=lambda name, _: [(name if name.endswith("0") else f"{name}0", {})]),
        lab="sharpness",
        open_=(("post_adam0", {}), ("post_adam100", {}), ("pre_adam0", {}), ("pre_adam100", {})),
        question="experiment",
        finding=(
            "tftttu",
            "With SGD at 0.1 Post-LN starts at {post_sgd} times the edge, with Adam at 0.003 below it. "
            "Warm-up ends below both edges; whether that is flatter than the start, ten seeds do not decide "
            "for Adam.",
        ),
    ),
)  # fmt: skip
