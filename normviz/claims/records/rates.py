"""Learning rates and warm-up: who stands how much."""

from __future__ import annotations

from ..evidence import FINAL, Sample, at, best, greatest, largest_rate, over, quotient, value
from ..record import Claim, Curve, Number, Strip
from ..rule import All, Between, Less, Part, Same
from .depth import final
from .updates import HALF

RATES = "0.001,0.003,0.01,0.03,0.1,0.3"
SHORT = {"lr": RATES, "steps": "150"}
WARM = {"depth": "10", "steps": "400", "lr": "0.001,0.003,0.01"}
FIRST_LAST = quotient("grad_block", 0, 1, -1)
MAP = {"init": "torch", "depth": "2,16,64", "lr": "0.0001,0.0003,0.001,0.003,0.01,0.03",
       "steps": "150"}  # fmt: skip
LOGIT = greatest("attn_logit_max")


def sensitivity(arm: str) -> Number:
    """Learning-rate sensitivity of Wortsman et al. 2023 over the arm's rates."""
    from ...sweep.summary import wortsman

    def of(sample: Sample) -> float:
        return wortsman([one.point for one in sample.runs(arm) if one.point is not None])[0]

    return Number(f"learning-rate sensitivity, {arm}", of, ".3f", "nats")


def rate(arm: str, words: str, **where: object) -> Number:
    return Number(f"the largest rate that trains, {words}", largest_rate(arm, **where), "g")


CLAIMS = (
    Claim(
        "C5",
        "Warm-up for Post-LN",
        "Post-LN needs a learning-rate warm-up at usual rates, and the longer it is the less it loses; "
        "Pre-LN needs none.",
        "Xiong et al. 2020, arXiv:2002.04745, section 3 (translation, BLEU 8.45 without and 34 with)",
        {
            "post": {"label": "Post-LN", "scheme": "post", "warmup": "0,200", **WARM},
            "pre": {"label": "Pre-LN", "scheme": "pre", "warmup": "0,200", **WARM},
        },
        {
            f"{arm}{warmup}_{name}": final(
                arm, f"{label}, rate {lr:g}, warm-up {warmup}", lr=lr, warmup=warmup
            )
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            for name, lr in (("1", 0.001), ("3", 0.003), ("10", 0.01))
            for warmup in (0, 200)
        },
        (
            Part("for Post-LN at a rate of 0.001", Less("post200_1", "post0_1")),
            Part("for Post-LN at a rate of 0.003", Less("post200_3", "post0_3")),
            Part("for Post-LN at a rate of 0.01", Less("post200_10", "post0_10")),
            Part("for Pre-LN, which trains without at all three",
                 All(tuple(Between(f"pre0_{name}", high=HALF) for name in ("1", "3", "10")))),
        ),
        "Ten blocks, Xavier, 400 steps. Post-LN without and with 200 steps of warm-up: at 0.001 "
        "{post0_1} and {post200_1}, at 0.003 {post0_3} and {post200_3}, at 0.01 {post0_10} and "
        "{post200_10}. Pre-LN: {pre0_1} and {pre200_1}, {pre0_3} and {pre200_3}, {pre0_10} and "
        "{pre200_10}.",
        Curve("lr", FINAL, log_y=False),
        open_=(("post", {"lr": 0.003, "warmup": 0}), ("post", {"lr": 0.003, "warmup": 200}),
               ("pre", {"lr": 0.003, "warmup": 0})),
    ),
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
                          value("off", LOGIT, lr=0.1), ".0f"),
            "on": Number("the largest logit at a rate of 0.1, with QK-norm",
                         value("on", LOGIT, lr=0.1), ".1f"),
            "peri": Number("the largest logit at a rate of 0.1, Peri-LN",
                           value("peri", LOGIT, lr=0.1), ".0f"),
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
        "with. But Peri-LN has logits of {peri} and a loss of {loss_peri}: large logits go with "
        "the failure of Pre-LN, they are not enough to cause one.",
        Curve("lr", LOGIT),
        open_=(("off", {"lr": 0.1}), ("on", {"lr": 0.1}), ("peri", {"lr": 0.1})),
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
        "times; with QK-norm {on24} and {on48}. With 16 blocks it trains either way and ends at {off} "
        "and {on}.",
        Curve("depth", FIRST_LAST),
        open_=(("off_run", {}), ("on_run", {})),
    ),
    Claim(
        "E1",
        "Post-LN needs warm-up, Pre-LN does not",
        "Post-LN cannot be trained without warm-up; Pre-LN needs none.",
        "teaching material",
        {
            "post": {"label": "Post-LN, PyTorch's init", "scheme": "post", "init": "torch",
                     "depth": "8,16", "lr": "0.003", "steps": "150"},
            "xavier": {"label": "Post-LN, Xavier", "scheme": "post", "depth": "10", "lr": "0.003",
                       "steps": "400", "warmup": "0,200"},
            "pre": {"label": "Pre-LN, Xavier", "scheme": "pre", "depth": "10", "lr": "0.003",
                    "steps": "400"},
        },
        {
            "post8": final("post", "Post-LN, PyTorch's init, 8 blocks, no warm-up", depth=8),
            "post16": final("post", "Post-LN, PyTorch's init, 16 blocks, no warm-up", depth=16),
            "x0": final("xavier", "Post-LN, Xavier, 10 blocks, no warm-up", warmup=0),
            "x200": final("xavier", "Post-LN, Xavier, 10 blocks, warm-up 200", warmup=200),
            "pre": final("pre", "Pre-LN, Xavier, 10 blocks, no warm-up"),
        },
        (
            Part("with Xavier and 10 blocks",
                 All((Between("x0", low=HALF), Between("x200", high=HALF)))),
            Part("with PyTorch's initialisation and 8 blocks", Between("post8", low=HALF)),
            Part("with PyTorch's initialisation and 16 blocks", Between("post16", low=HALF)),
            Part("for Pre-LN", Between("pre", high=HALF)),
        ),
        "Rate 0.003, no warm-up: Post-LN with PyTorch's own initialisation ends at {post8} with 8 blocks "
        "and {post16} with 16. With Xavier and 10 blocks it ends at {x0}, with 200 steps of warm-up at "
        "{x200}. Pre-LN ends at {pre}. Whether Post-LN needs warm-up is a question of its "
        "initialisation.",
        Strip("final loss (nats)"),
        everyday=True,
        open_=(("post", {"depth": 16}), ("xavier", {"warmup": 0}), ("xavier", {"warmup": 200})),
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
        "{pre64}. Where both stand the largest rate tried, they can't be told apart.",
        Strip("largest learning rate that trains"),
        everyday=True,
        open_=(("post", {"depth": 16, "lr": 0.03}), ("pre", {"depth": 16, "lr": 0.03})),
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
    ),
    Claim(
        "E14",
        "Warm-up is for Adam",
        "Warm-up matters only for Adam; plain SGD does without.",
        "teaching material; against it Xiong et al. 2020, arXiv:2002.04745, section 3",
        {
            "adam": {"label": "Adam", "scheme": "post", "depth": "10", "steps": "400",
                     "lr": "0.003", "warmup": "0,200"},
            "sgd": {"label": "SGD", "scheme": "post", "depth": "10", "steps": "400",
                    "optimizer": "sgd", "momentum": "0.9", "lr": "0.01,0.03,0.1,0.3",
                    "warmup": "0,200"},
        },
        {
            "adam0": final("adam", "Adam, no warm-up", warmup=0),
            "adam200": final("adam", "Adam, warm-up 200", warmup=200),
            "sgd0": Number("lowest final loss of four rates, SGD, no warm-up",
                           best("sgd", warmup=0), unit="nats"),
            "sgd200": Number("lowest final loss of four rates, SGD, warm-up 200",
                             best("sgd", warmup=200), unit="nats"),
        },
        (
            Part("in that Adam trains with it and not without",
                 All((Between("adam200", high=HALF), Between("adam0", low=HALF)))),
            Part("in that SGD trains without", Between("sgd0", high=HALF)),
        ),
        "Post-LN, 10 blocks, Xavier. With Adam at 0.003: {adam0} without and {adam200} with warm-up. "
        "With SGD at the best of four rates: {sgd0} without and {sgd200} with. So SGD does not train "
        "this model just because it is not Adam.",
        Strip("final loss (nats)"),
        everyday=True,
        open_=(("adam", {"warmup": 0}), ("adam", {"warmup": 200}), ("sgd", {"warmup": 0, "lr": 0.1})),
    ),
)  # fmt: skip
