"""Final losses of placements, norms and initialisations."""

from __future__ import annotations

import math

import numpy as np

from ...runs.verdict import WINDOW, running_mean
from ..evidence import FINAL, CellResult, Quantity, Sample, at, recording_of
from ..numbers import HALF, best, final, over, value
from ..record import Claim, Curve, Number, Strip
from ..rule import Between, Less, Part, Same

PROSE = {"task": "prose", "depth": "4", "width": "64", "steps": "600", "warmup": "60",
         "schedule": "linear"}  # fmt: skip
GOAL = 1.6
"""An intermediate loss in nats; the Markov task's floor is 1.11."""


def _steps_to(one: CellResult) -> float:
    """The first step at which the mean of ten losses is at most GOAL; infinite where none is."""
    losses = recording_of(one).losses
    below = np.flatnonzero(running_mean(losses)[WINDOW - 1 :] <= GOAL)
    return float(below[0]) + WINDOW if len(below) else math.inf


STEPS_TO = Quantity(f"steps until the mean of ten losses is {GOAL}", "steps", _steps_to)


def fastest(arm: str):
    """The fewest steps over the arm's rates."""
    return lambda sample: min(_steps_to(one) for one in sample.runs(arm))


def spread(arm: str, depth: int):
    """The largest minus the smallest final loss over the initialisations, in nats."""

    def of(sample: Sample) -> float:
        finals = [FINAL.of(one) for one in sample.runs(arm, depth=depth)]
        return max(finals) - min(finals)

    return of


def pair(prefix: str, arms: dict[str, str]) -> dict[str, Number]:
    """Final losses of a pair of norms to three digits."""
    return {
        name: Number(f"final loss, {prefix}, {label}", value(name, FINAL), ".3f", "nats")
        for name, label in arms.items()
    }


NORMS = {"layernorm": "LayerNorm", "layernorm_nobias": "LayerNorm without shift",
         "rmsnorm": "RMSNorm"}  # fmt: skip

CLAIMS = (
    Claim(
        "C24",
        "nGPT needs fewer steps",
        "nGPT reaches the same loss in 4 times fewer steps or less.",
        "Loshchilov et al. 2024, arXiv:2410.01131 (4 times at 1k tokens of context, up to 20 at 8k)",
        {
            "ngpt": {"label": "nGPT", "scheme": "ngpt", "lr": "0.003,0.01,0.03,0.1"},
            "pre": {"label": "Pre-LN", "scheme": "pre", "lr": "0.003,0.01,0.03,0.1"},
        },
        {
            "ngpt": Number(f"steps to a loss of {GOAL} at the best rate, nGPT", fastest("ngpt"), ".0f"),
            "pre": Number(f"steps to a loss of {GOAL} at the best rate, Pre-LN", fastest("pre"), ".0f"),
            "times": Number("how many times fewer", over(fastest("pre"), fastest("ngpt"))),
        },
        (
            Part("in being 4 times as fast", Between("times", low=4)),
            Part("in being faster at all", Less("ngpt", "pre")),
        ),
        "On the Markov task, each at the best of four rates, nGPT reaches a loss of 1.6 in {ngpt} steps "
        "and Pre-LN in {pre}: {times} times fewer. The authors expect a smaller gain in short runs, "
        "and this one is very short.",
        Curve("lr", STEPS_TO),
        open_=(("ngpt", {"lr": 0.03}), ("pre", {"lr": 0.01})),
        question="quality",
        finding=(
            "ft",
            "nGPT needs {times} times fewer steps than Pre-LN here, not 4 times fewer.",
        ),
    ),
    Claim(
        "E5",
        "Only Post-LN depends on its initialisation",
        "Post-LN is sensitive to the initialisation and Pre-LN is not.",
        "teaching material",
        {
            arm: {"label": label, "scheme": arm, "init": "xavier,torch,gpt2,gpt2_width",
                  "depth": "4,16", "lr": "0.003", "steps": "150"}
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
        },
        {
            f"{arm}{depth}": Number(
                f"spread of the final loss over four initialisations, {label}, {depth} blocks",
                spread(arm, depth), unit="nats")
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            for depth in (4, 16)
        },
        (
            Part("in that Post-LN depends on it more, 16 blocks", Less("pre16", "post16")),
            Part("in that Post-LN depends on it more, 4 blocks", Less("pre4", "post4")),
            Part("in that Pre-LN hardly depends on it, 16 blocks", Between("pre16", high=0.2)),
        ),
        "Over Xavier, PyTorch's, GPT-2's and GPT-2's scaled by width, at a rate of 0.003, the final loss "
        "spreads by {post4} with 4 blocks and {post16} with 16 in Post-LN, and by {pre4} and {pre16} in "
        "Pre-LN.",
        Strip("spread of the final loss (nats)"),
        everyday=True,
        open_=(("post", {"depth": 16, "init": "xavier"}), ("post", {"depth": 16, "init": "torch"}),
               ("pre", {"depth": 16, "init": "xavier"})),
        question="train",
        finding=(
            "ttt",
            "With 16 blocks the initialisation moves Post-LN's final loss by {post16} and "
            "Pre-LN's by {pre16}.",
        ),
    ),
    Claim(
        "E6",
        "Pre-LN needs its final norm",
        "Pre-LN's stream grows with depth and therefore needs a final norm.",
        "teaching material",
        {
            "pre": {"label": "Pre-LN", "scheme": "pre", "depth": "16"},
            "bare": {"label": "no final norm", "scheme": "pre_nofinal", "depth": "16"},
            "pre_high": {"label": "Pre-LN, 0.1", "scheme": "pre", "lr": "0.1", "steps": "150"},
            "bare_high": {"label": "no final norm, 0.1", "scheme": "pre_nofinal", "lr": "0.1",
                          "steps": "150"},
            "pre_prose": {"label": "Pre-LN, prose", "scheme": "pre", "lr": "0.008", **PROSE},
            "bare_prose": {"label": "no final norm, prose", "scheme": "pre_nofinal", "lr": "0.008",
                           **PROSE},
        },
        {
            "growth": Number("the stream's RMS after the last of 16 blocks over that of the embedding",
                             over(value("pre", at("stream_rms", 0, -1)),
                                  value("pre", at("stream_rms", 0, 0)))),
            **{
                arm: Number(f"final loss, {words}", value(arm, FINAL), ".3f", "nats")
                for arm, words in (
                    ("pre", "16 blocks, Pre-LN"), ("bare", "16 blocks, no final norm"),
                    ("pre_high", "rate 0.1, Pre-LN"), ("bare_high", "rate 0.1, no final norm"),
                    ("pre_prose", "prose, 4 blocks, Pre-LN"),
                    ("bare_prose", "prose, 4 blocks, no final norm"),
                )
            },
        },
        (
            Part("in that the stream grows", Between("growth", low=2)),
            Part("with 16 blocks at a rate of 0.003", Less("pre", "bare")),
            Part("with 12 blocks at a rate of 0.1", Less("pre_high", "bare_high")),
            Part("with 4 blocks on prose", Less("pre_prose", "bare_prose")),
        ),
        "The stream grows {growth} times over 16 blocks at step 0. Without the final norm their loss ends at "
        "{bare} instead of {pre}, and at a rate of 0.1 at {bare_high} (at most chance) instead of "
        "{pre_high}. On prose with 4 blocks and a warmed-up, falling rate it ends at {bare_prose} "
        "instead of {pre_prose}.",
        Strip("final loss, at most chance (nats)",
              ("pre", "bare", "pre_high", "bare_high", "pre_prose", "bare_prose")),
        everyday=True,
        open_=(("pre_high", {}), ("bare_high", {}), ("pre_prose", {}), ("bare_prose", {})),
        question="stream",
        finding=(
            "tttf",
            "The stream grows, and without the final norm 16 blocks end at {bare} instead of "
            "{pre}. But 4 blocks on prose end lower without it.",
        ),
    ),
    Claim(
        "E7",
        "Post-LN ends better when tuned",
        "Pre-LN is easier to train, but Post-LN ends slightly better when it is tuned.",
        "teaching material; Liu et al. 2020, arXiv:2004.08249, section 2",
        {
            f"{arm}_{init}": {"label": f"{label}, {words}", "scheme": arm, "init": init, "lr": rates,
                              **PROSE}
            for init, words, post, pre in (
                ("torch", "PyTorch's init", "0.002,0.004,0.008", "0.004,0.008,0.016"),
                ("xavier", "Xavier", "0.001,0.002,0.004", "0.004,0.008,0.016"),
            )
            for arm, label, rates in (("post", "Post-LN", post), ("pre", "Pre-LN", pre))
        },
        {
            f"{arm}_{init}": Number(f"lowest final loss of three rates, {label}, {words}",
                                    best(f"{arm}_{init}"), ".3f", "nats")
            for init, words in (("torch", "PyTorch's init"), ("xavier", "Xavier"))
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
        },
        (
            Part("with PyTorch's initialisation", Less("post_torch", "pre_torch")),
            Part("with Xavier", Less("post_xavier", "pre_xavier")),
        ),
        "Prose, 4 blocks, 600 steps, warm-up and a falling rate, each at the best of three rates. With "
        "PyTorch's initialisation Post-LN ends at {post_torch} and Pre-LN at {pre_torch}; with Xavier "
        "at {post_xavier} and {pre_xavier}. So the first two are not distinguishable, and with Xavier "
        "Pre-LN ends better. This holds for a small model and three rates each.",
        Curve("lr", FINAL, log_y=False),
        seeds=5,
        everyday=True,
        open_=(("post_torch", {"lr": 0.004}), ("pre_torch", {"lr": 0.008}),
               ("post_xavier", {"lr": 0.002}), ("pre_xavier", {"lr": 0.008})),
        question="quality",
        finding=(
            "of",
            "Post-LN does not end better: with Xavier it ends at {post_xavier} and Pre-LN at "
            "{pre_xavier}. With PyTorch's initialisation they are not distinguishable.",
        ),
    ),
    Claim(
        "E10",
        "No norm, no training",
        "Without any norm training is unstable, wherever the norm would have been.",
        "teaching material",
        {
            "xavier": {"label": "No norm, Xavier", "scheme": "none", "depth": "12"},
            "torch": {"label": "No norm, PyTorch's init", "scheme": "none", "init": "torch",
                      "depth": "12,32"},
            "pre": {"label": "Pre-LN, PyTorch's init", "scheme": "pre", "init": "torch", "depth": "12"},
        },
        {
            "xavier": final("xavier", "no norm, Xavier, 12 blocks"),
            "torch12": final("torch", "no norm, PyTorch's init, 12 blocks", depth=12),
            "torch32": final("torch", "no norm, PyTorch's init, 32 blocks", depth=32),
            "pre": final("pre", "Pre-LN, PyTorch's init, 12 blocks"),
        },
        (
            Part("with Xavier and 12 blocks", Between("xavier", low=HALF)),
            Part("with PyTorch's initialisation and 12 blocks", Between("torch12", low=HALF)),
            Part("with PyTorch's initialisation and 32 blocks", Between("torch32", low=HALF)),
        ),
        "At a rate of 0.003, losses at most chance: with Xavier and 12 blocks it ends at {xavier}; with "
        "PyTorch's smaller weights at {torch12}, where Pre-LN ends at {pre}, and with 32 blocks at "
        "{torch32}. A norm buys depth and rate; it is not what makes training possible.",
        Curve("depth", FINAL, log_y=False),
        everyday=True,
        open_=(("xavier", {}), ("torch", {"depth": 12}), ("torch", {"depth": 32}), ("pre", {})),
        question="train",
        finding=(
            "tft",
            "It depends on initialisation and depth: without norms 12 blocks end at {torch12} "
            "with PyTorch's small weights and at {xavier} with Xavier's. 32 blocks fail even with "
            "PyTorch's.",
        ),
    ),
    Claim(
        "E11",
        "RMSNorm loses nothing",
        "RMSNorm reaches the same loss as LayerNorm.",
        "Zhang and Sennrich 2019, arXiv:1910.07467; teaching material",
        {
            **{norm: {"label": f"{label}, Markov", "norm": norm} for norm, label in NORMS.items()
               if norm != "layernorm_nobias"},
            **{f"{norm}_prose": {"label": f"{label}, prose", "norm": norm, "lr": "0.008", **PROSE}
               for norm, label in NORMS.items() if norm != "layernorm_nobias"},
        },
        {
            **pair("Markov", {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}),
            **pair("prose", {"layernorm_prose": "LayerNorm", "rmsnorm_prose": "RMSNorm"}),
        },
        (
            Part("on the Markov task, up to 0.01 nats", Same("rmsnorm", "layernorm", 0.01)),
            Part("on prose, up to 0.02 nats", Same("rmsnorm_prose", "layernorm_prose", 0.02)),
        ),
        "Pre-LN with 12 blocks on the Markov task ends at {layernorm} with LayerNorm and {rmsnorm} with "
        "RMSNorm; with 4 blocks on prose at {layernorm_prose} and {rmsnorm_prose}. Both norms see the "
        "same data and start from the same weights.",
        Strip("final loss (nats)"),
        seeds=5,
        everyday=True,
        open_=(("layernorm", {}), ("rmsnorm", {})),
        question="norm",
        finding=(
            "to",
            "On the Markov task RMSNorm and LayerNorm end equal up to 0.01 nats. On prose the "
            "seeds differ too much to tell.",
        ),
    ),
    Claim(
        "E12",
        "Re-centring contributes little",
        "Of LayerNorm's two parts, re-scaling does the work and re-centring contributes little.",
        "Zhang and Sennrich 2019, arXiv:1910.07467",
        {
            **{norm: {"label": f"{label}, Markov", "norm": norm} for norm, label in NORMS.items()
               if norm != "layernorm"},
            **{f"{norm}_post": {"label": f"{label}, Post-LN", "norm": norm, "scheme": "post",
                                "init": "torch"}
               for norm, label in NORMS.items() if norm != "layernorm"},
        },
        {
            **pair("Pre-LN", {"layernorm_nobias": "re-centred", "rmsnorm": "not re-centred"}),
            **pair("Post-LN", {"layernorm_nobias_post": "re-centred",
                               "rmsnorm_post": "not re-centred"}),
        },
        (
            Part("in Pre-LN, up to 0.01 nats", Same("rmsnorm", "layernorm_nobias", 0.01)),
            Part("in Post-LN, up to 0.01 nats", Same("rmsnorm_post", "layernorm_nobias_post", 0.01)),
        ),
        "Both norms lack a shift, so they differ in re-centring alone. Pre-LN with 12 blocks ends "
        "at {layernorm_nobias} with it and {rmsnorm} without; Post-LN with PyTorch's initialisation at "
        "{layernorm_nobias_post} and {rmsnorm_post}.",
        Strip("final loss (nats)"),
        seeds=5,
        everyday=True,
        open_=(("layernorm_nobias", {}), ("rmsnorm", {}), ("layernorm_nobias_post", {}),
               ("rmsnorm_post", {})),
        question="norm",
        finding=(
            "tt",
            "Without re-centring the loss is the same up to 0.01 nats, in Pre-LN and in Post-LN.",
        ),
    ),
)  # fmt: skip
