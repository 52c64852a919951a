"""Claims about Admin, DyT and attention residuals."""

from __future__ import annotations

from statistics import fmean, pstdev

from ..evidence import FINAL, Sample, recording_of
from ..numbers import HALF, final, value
from ..record import Claim, Curve, Layers, Number, Strip
from ..rule import All, Between, Less, Part, Same
from .quality import PROSE

CALM = {"depth": "48", "lr": "0.001", "steps": "150"}


def unevenness(arm: str, words: str, step: int) -> Number:
    """Standard deviation of the blocks' gradients over their mean, at a step."""

    def of(sample: Sample) -> float:
        it = recording_of(sample.run(arm))
        norms = [it.at("grad_block", step, b) for b in range(1, it.depth + 1)]
        return pstdev(norms) / fmean(norms)

    return Number(f"standard deviation over mean of the blocks' gradients, {words}", of)


def loss(arm: str, words: str) -> Number:
    """A final loss to three digits."""
    return Number(f"final loss, {words}", value(arm, FINAL), ".3f", "nats")


CLAIMS = (
    Claim(
        "C9",
        "Admin stabilises Post-LN",
        "Skip gains that start from the branches' variances stabilise Post-LN, which trains with 18 "
        "layers and more where it diverged without.",
        "Liu et al. 2020, arXiv:2004.08249",
        {
            arm: {"label": label, "scheme": arm, "depth": "18,48", "lr": "0.001"}
            for arm, label in (("admin", "Admin"), ("post", "Post-LN"))
        },
        {
            f"{arm}{depth}": final(arm, f"{label}, {depth} blocks", depth=depth)
            for arm, label in (("admin", "Admin"), ("post", "Post-LN"))
            for depth in (18, 48)
        },
        tuple(
            Part(f"with {depth} blocks",
                 All((Between(f"admin{depth}", high=HALF), Between(f"post{depth}", low=HALF))))
            for depth in (18, 48)
        ),
        "Xavier, rate 0.001, no warm-up. With 18 blocks Admin ends at {admin18} and Post-LN at {post18}, "
        "with 48 at {admin48} and {post48}. Post-LN does not diverge here, it stays at chance.",
        Curve("depth", FINAL, log_y=False),
        open_=(("admin", {"depth": 48}), ("post", {"depth": 48})),
        question="depth",
        finding=(
            "tt",
            "With 48 blocks Admin ends at {admin48} and Post-LN at {post48}.",
        ),
    ),
    Claim(
        "C19",
        "DyT matches norms",
        "A learned tanh of each channel, without any statistics, matches LayerNorm.",
        "Zhu et al. 2025, arXiv:2503.10622; that it is fragile at depth: Byun 2026, arXiv:2601.09719",
        {
            "dyt": {"label": "DyT, Markov", "norm": "dyt"},
            "norm": {"label": "LayerNorm, Markov", "norm": "layernorm"},
            "dyt_prose": {"label": "DyT, prose", "norm": "dyt", "lr": "0.008", **PROSE},
            "norm_prose": {"label": "LayerNorm, prose", "norm": "layernorm", "lr": "0.008", **PROSE},
            "dyt_deep": {"label": "DyT, 48 blocks", "norm": "dyt", **CALM},
            "norm_deep": {"label": "LayerNorm, 48 blocks", "norm": "layernorm", **CALM},
        },
        {
            "dyt": loss("dyt", "Markov, DyT"),
            "norm": loss("norm", "Markov, LayerNorm"),
            "dyt_prose": loss("dyt_prose", "prose, DyT"),
            "norm_prose": loss("norm_prose", "prose, LayerNorm"),
            "dyt_deep": loss("dyt_deep", "48 blocks, DyT"),
            "norm_deep": loss("norm_deep", "48 blocks, LayerNorm"),
        },
        (
            Part("on the Markov task, up to 0.03 nats", Same("dyt", "norm", 0.03)),
            Part("on prose, up to 0.03 nats", Same("dyt_prose", "norm_prose", 0.03)),
            Part("with 48 blocks, up to 0.03 nats", Same("dyt_deep", "norm_deep", 0.03)),
        ),
        "Pre-LN with 12 blocks on the Markov task ends at {dyt} with DyT and {norm} with LayerNorm; with "
        "4 blocks on prose at {dyt_prose} and {norm_prose}; with 48 blocks at {dyt_deep} and "
        "{norm_deep}. So DyT's loss is lower on the first and "
        "higher with many blocks. The differences vary too much between seeds to show or refute the "
        "rule's equality. All at LayerNorm's rate, and with DyT's usual start of 0.5.",
        Strip("final loss (nats)"),
        open_=(("dyt", {}), ("norm", {}), ("dyt_deep", {}), ("norm_deep", {})),
        question="norm",
        finding=(
            "ooo",
            "With 12 blocks DyT ends at {dyt} and LayerNorm at {norm}, with 48 at {dyt_deep} and "
            "{norm_deep}. The seeds differ too much to show or to refute a match.",
        ),
    ),
    Claim(
        "C28",
        "Attention residuals even out gradients",
        "Where each block attends over all earlier outputs, gradients are spread more evenly over the "
        "blocks than in Pre-LN, and the loss ends lower.",
        "Kimi 2026, arXiv:2603.15031, figure 5 and table 2",
        {
            "attnres": {"label": "Attention residuals", "scheme": "attnres", "depth": "16"},
            "pre": {"label": "Pre-LN", "scheme": "pre", "depth": "16"},
        },
        {
            "start": unevenness("attnres", "attention residuals, step 0", 0),
            "pre_start": unevenness("pre", "Pre-LN, step 0", 0),
            "later": unevenness("attnres", "attention residuals, step 128", 128),
            "pre_later": unevenness("pre", "Pre-LN, step 128", 128),
            "loss": loss("attnres", "attention residuals"),
            "pre_loss": loss("pre", "Pre-LN"),
        },
        (
            Part("at step 0", Less("start", "pre_start")),
            Part("after 128 steps", Less("later", "pre_later")),
            Part("in that the loss ends lower", Less("loss", "pre_loss")),
        ),
        "Over 16 blocks the gradients' standard deviation is {start} of their mean at step 0 and {later} "
        "after 128 steps; in Pre-LN {pre_start} and {pre_later}. The losses end at {loss} and "
        "{pre_loss}, each at Pre-LN's rate of 0.003.",
        Layers("grad_block", 128),
        question="gradient",
        finding=(
            "oft",
            "The loss ends lower, at {loss} instead of {pre_loss}. But after 128 steps the "
            "gradients are less even than in Pre-LN.",
        ),
    ),
)  # fmt: skip
