"""The learning rates that each placement tolerates, with and without QK-norm."""

from __future__ import annotations

from ..evidence import FINAL, at, greatest, quotient
from ..numbers import HALF, best, final, over, rate, sensitivity, value
from ..record import Claim, Curve, Number, Strip
from ..rule import All, Between, Less, Part, Same

RATES = "0.001,0.003,0.01,0.03,0.1,0.3"
SHORT = {"lr": RATES, "steps": "150"}
FIRST_LAST = quotient("grad_block", 0, 1, -1)
MAP = {"init": "torch", "depth": "2,16,64", "lr": "0.0001,0.0003,0.001,0.003,0.01,0.03",
       "steps": "150"}  # fmt: skip
LOGIT = greatest("attn_logit_max")


CLAIMS = (
    Claim(
        "C14",
        "QK-norm makes rates matter less",
        "Normalising queries and keys lowers the sensitivity to the learning rate.",
        "Wortsman et al. 2023, arXiv:2309.14322, section 3.1",
        {
            "off": {"label": "Pre-LN", "scheme": "pre", **SHORT},
            "on": {"label": "Pre-LN with QK-norm", "scheme": "pre", "qk_norm": "on", **SHORT},
        },
        {
            "off": sensitivity("off"),
            "on": sensitivity("on"),
            "best_off": Number("lowest final loss, without QK-norm", best("off"), ".3f", "nats"),
            "best_on": Number("lowest final loss, with QK-norm", best("on"), ".3f", "nats"),
        },
        (Part("over rates from 0.001 to 0.3", Less("on", "off")),),
        "Six rates from 0.001 to 0.3 at a constant rate, 12 blocks. Sensitivity is {off} without and "
        "{on} with QK-norm; the best losses are {best_off} and {best_on}. The paper averages over "
        "rates with warm-up and a cosine; here the rate is constant.",
        Curve("lr", FINAL, log_y=False),
        open_=(("off", {"lr": 0.1}), ("on", {"lr": 0.1})),
        question="rate",
        finding=(
            "t",
            "QK-norm lowers the sensitivity to the learning rate from {off} to {on}.",
        ),
    ),
    Claim(
        "C15",
        "Logit growth at high rates",
        "At high learning rates the attention logits of Pre-LN grow without bound and training breaks; "
        "with QK-norm they stay bounded and higher rates train.",
        "Wortsman et al. 2023, arXiv:2309.14322, section 3.1 and figure 2",
        {
            "off": {"label": "Pre-LN", "scheme": "pre", **SHORT},
            "on": {"label": "Pre-LN with QK-norm", "scheme": "pre", "qk_norm": "on", **SHORT},
            "peri": {"label": "Peri-LN", "scheme": "peri", **SHORT},
        },
        {
            "off": Number("the largest logit at a rate of 0.1, without",
                          value("off", LOGIT, lr=0.1), ",.0f"),
            "on": Number("the largest logit at a rate of 0.1, with QK-norm",
                         value("on", LOGIT, lr=0.1), ".1f"),
            "peri": Number("the largest logit at a rate of 0.1, Peri-LN",
                           value("peri", LOGIT, lr=0.1), ",.0f"),
            "rate_off": rate("off", "without QK-norm"),
            "rate_on": rate("on", "with QK-norm"),
            "loss_off": final("off", "rate 0.1, without", lr=0.1),
            "loss_on": final("on", "rate 0.1, with QK-norm", lr=0.1),
            "loss_peri": final("peri", "rate 0.1, Peri-LN", lr=0.1),
        },
        (
            Part("in that logits grow beyond 100 without", Between("off", low=100)),
            Part("in that they stay below 10 with QK-norm", Between("on", high=10)),
            Part("in that a higher rate trains with it", Less("rate_off", "rate_on")),
            Part("in that large logits and failure go together: Peri-LN, which trains, has small ones",
                 All((Between("loss_peri", high=HALF), Between("peri", high=100)))),
        ),
        "At a rate of 0.1 Pre-LN's largest logit ends at {off} and its loss at {loss_off}; with QK-norm "
        "at {on} and {loss_on}. The largest rate that trains is {rate_off} without and {rate_on} "
        "with. But Peri-LN has logits of {peri} and a loss of {loss_peri}: large logits accompany "
        "the failure of Pre-LN, but they are not enough to cause one.",
        Curve("lr", LOGIT),
        open_=(("off", {"lr": 0.1}), ("on", {"lr": 0.1}), ("peri", {"lr": 0.1})),
        question="rate",
        finding=(
            "tttf",
            "QK-norm bounds the logits, and a rate of {rate_on} trains instead of {rate_off}. But "
            "Peri-LN trains with logits of {peri}: large logits alone do not break training.",
        ),
    ),
    Claim(
        "C16",
        "Peri-LN is steadier than Pre-LN",
        "With a norm before and after each branch the stream grows less in training, higher learning "
        "rates train, and the loss ends lower than Pre-LN's.",
        "Kim et al. 2025, arXiv:2502.02732",
        {
            "pre": {"label": "Pre-LN", "scheme": "pre", **SHORT},
            "peri": {"label": "Peri-LN", "scheme": "peri", **SHORT},
        },
        {
            **{
                f"{arm}_growth": Number(
                    f"the stream's growth in training at a rate of 0.003, {label}",
                    over(value(arm, at("stream_rms", -1, -1), lr=0.003),
                         value(arm, at("stream_rms", 0, -1), lr=0.003)))
                for arm, label in (("pre", "Pre-LN"), ("peri", "Peri-LN"))
            },
            **{
                f"{arm}_start": Number(f"the stream's RMS at step 0, {label}",
                                       value(arm, at("stream_rms", 0, -1), lr=0.003))
                for arm, label in (("pre", "Pre-LN"), ("peri", "Peri-LN"))
            },
            "pre_rate": rate("pre", "Pre-LN"),
            "peri_rate": rate("peri", "Peri-LN"),
            "pre_best": Number("lowest final loss, Pre-LN", best("pre"), ".3f", "nats"),
            "peri_best": Number("lowest final loss, Peri-LN", best("peri"), ".3f", "nats"),
        },
        (
            Part("in that the stream grows less", Less("peri_growth", "pre_growth")),
            Part("in that higher rates train", Less("pre_rate", "peri_rate")),
            Part("in that the best loss is lower", Less("peri_best", "pre_best")),
        ),
        "From step 0 to the last the stream grows {pre_growth} times in Pre-LN and {peri_growth} times in "
        "Peri-LN; but at step 0 it is {pre_start} against {peri_start}, so Peri-LN's begins larger. The "
        "largest rate that trains is {pre_rate} and {peri_rate}. Each at its best rate, they end at "
        "{pre_best} and {peri_best}.",
        Curve("lr", FINAL, log_y=False),
        open_=(("pre", {"lr": 0.1}), ("peri", {"lr": 0.1})),
        question="rate",
        finding=(
            "tto",
            "Peri-LN's stream grows less in training, and it trains up to a rate of {peri_rate} "
            "instead of {pre_rate}. The best losses are not distinguishable.",
        ),
    ),
    Claim(
        "C17",
        "Res-post-norm needs QK-norm",
        "A norm on each branch's output alone is not stable; together with QK-norm it is.",
        "OLMo 2 2025, arXiv:2501.00656, section 3.3",
        {
            "off": {"label": "Res-post-norm", "scheme": "resp", "depth": "12,24,48", "steps": "0"},
            "on": {"label": "with QK-norm", "scheme": "resp", "qk_norm": "on", "depth": "12,24,48",
                   "steps": "0"},
            "off_run": {"label": "Res-post-norm, trained", "scheme": "resp", "depth": "16"},
            "on_run": {"label": "with QK-norm, trained", "scheme": "resp", "qk_norm": "on",
                       "depth": "16"},
        },
        {
            "off24": Number("gradient, first over last of 24 blocks",
                            value("off", FIRST_LAST, depth=24), ".0f"),
            "off48": Number("gradient, first over last of 48 blocks",
                            value("off", FIRST_LAST, depth=48), ".0f"),
            "on24": Number("gradient, first over last of 24 blocks, with QK-norm",
                           value("on", FIRST_LAST, depth=24), ".1f"),
            "on48": Number("gradient, first over last of 48 blocks, with QK-norm",
                           value("on", FIRST_LAST, depth=48), ".1f"),
            "off": Number("final loss, without", value("off_run", FINAL), ".3f", "nats"),
            "on": Number("final loss, with QK-norm", value("on_run", FINAL), ".3f", "nats"),
        },
        (
            Part("in the gradients of 24 blocks",
                 All((Between("off24", low=10), Between("on24", high=5)))),
            Part("in the final loss of 16 blocks", Less("on", "off")),
        ),
        "At step 0 the first of 24 blocks gets {off24} times the last one's gradient, of 48 {off48} "
        "times; with QK-norm {on24} and {on48}: one to three orders of magnitude less, though not "
        "below the rule's limit in every seed. With 16 blocks it trains either way and ends at {off} "
        "and {on}.",
        Curve("depth", FIRST_LAST),
        open_=(("off_run", {}), ("on_run", {})),
        question="gradient",
        finding=(
            "ot",
            "Without QK-norm res-post-norm trains too and ends at {off}. With it the loss ends "
            "lower, at {on}.",
        ),
    ),
    Claim(
        "E4",
        "Pre-LN tolerates higher rates",
        "Pre-LN tolerates higher learning rates than Post-LN.",
        "teaching material",
        {
            "post": {"label": "Post-LN", "scheme": "post", **MAP},
            "pre": {"label": "Pre-LN", "scheme": "pre", **MAP},
        },
        {
            f"{arm}{depth}": rate(arm, f"{label}, {depth} blocks", depth=depth)
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            for depth in (2, 16, 64)
        },
        tuple(
            Part(f"with {depth} blocks", Less(f"post{depth}", f"pre{depth}"))
            for depth in (2, 16, 64)
        ),
        "PyTorch's initialisation, no warm-up, rates from 0.0001 to 0.03. The largest that trains, with "
        "2, 16 and 64 blocks: Post-LN {post2}, {post16} and {post64}; Pre-LN {pre2}, {pre16} and "
        "{pre64}. If both train at the largest rate tried, they are not distinguishable.",
        Strip("largest learning rate that trains"),
        everyday=True,
        open_=(("post", {"depth": 16, "lr": 0.03}), ("pre", {"depth": 16, "lr": 0.03})),
        question="rate",
        finding=(
            "ott",
            "With 16 blocks Pre-LN trains up to a rate of {pre16} and Post-LN up to {post16}. "
            "With 2 blocks both train at the largest rate tried.",
        ),
    ),
    Claim(
        "E13",
        "Sandwich-LN combines both",
        "Sandwich-LN combines the advantages of both: stable like Pre-LN, bounded and as good as "
        "Post-LN.",
        "teaching material; Ding et al. 2021, arXiv:2105.13290",
        {
            arm: {"label": label, "scheme": arm, "lr": "0.003,0.1", "steps": "150"}
            for arm, label in (("sandwich", "Sandwich-LN"), ("pre", "Pre-LN"), ("post", "Post-LN"))
        },
        {
            "calm": Number("final loss at 0.003, Sandwich-LN", value("sandwich", FINAL, lr=0.003),
                           ".3f", "nats"),
            "pre_calm": Number("final loss at 0.003, Pre-LN", value("pre", FINAL, lr=0.003),
                               ".3f", "nats"),
            "post_calm": final("post", "0.003, Post-LN", lr=0.003),
            "high": final("sandwich", "0.1, Sandwich-LN", lr=0.1),
            "pre_high": final("pre", "0.1, Pre-LN", lr=0.1),
            "rms": Number("the stream's RMS after the last block at the end, Sandwich-LN",
                          value("sandwich", at("stream_rms", -1, -1), lr=0.003), ".1f"),
            "pre_rms": Number("the stream's RMS after the last block at the end, Pre-LN",
                              value("pre", at("stream_rms", -1, -1), lr=0.003), ".1f"),
        },
        (
            Part("in that it trains at rates where Pre-LN fails", Less("high", "pre_high")),
            Part("in that its stream stays bounded", Between("rms", high=2)),
            Part("in that it ends as low as Pre-LN at a usual rate", Same("calm", "pre_calm", 0.02)),
        ),
        "At a rate of 0.1 it ends at {high} where Pre-LN ends at {pre_high}. At 0.003 it ends at {calm}, "
        "Pre-LN at {pre_calm}, Post-LN at {post_calm}. Its stream is not bounded: it ends at {rms}, "
        "Pre-LN's at {pre_rms}, Post-LN's is 1 by construction. A norm on the branch bounds each "
        "step of the stream, not their sum.",
        Strip("final loss (nats)", ("calm", "pre_calm", "post_calm", "high", "pre_high")),
        everyday=True,
        open_=tuple((arm, {"lr": 0.1}) for arm in ("sandwich", "pre", "post")),
        question="quality",
        finding=(
            "tfo",
            "At a rate of 0.1 Sandwich-LN ends at {high} and Pre-LN at {pre_high}. But its stream "
            "is not bounded, and at a usual rate the two are not distinguishable.",
        ),
    ),
)  # fmt: skip
