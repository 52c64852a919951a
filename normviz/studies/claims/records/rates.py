"""The learning rates that each placement tolerates, with and without QK-norm."""

from __future__ import annotations

from ..evidence import FINAL, FIRST_LAST, HELD_OUT, LATE_SPIKE, at, greatest, renamed
from ..numbers import HALF, at_rate_of, final, held_out, over, rate, sensitivity, tuned, value
from ..record import Claim, Curve, Number, Strip
from ..rule import All, Between, Less, LessInMost, Most, NotWorse, Part
from .quality import EIGHT, EIGHT_RATES, MORE

RATES = "0.001,0.003,0.01,0.03,0.1,0.3"
SHORT = {"lr": RATES, "steps": "300", **MORE}
FINE = {"lr": "0.004,0.008,0.016,0.032,0.064,0.128,0.256", "steps": "300", "schedule": "linear"}
MAP = {"init": "torch", "depth": "2,12,36", "steps": "300", "schedule": "linear",
       "lr": "0.001,0.002,0.004,0.008,0.016,0.032,0.064,0.128,0.256"}  # fmt: skip
PERI = {"pre": "Pre-LN", "peri": "Peri-LN"}
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
            "off": sensitivity("off", "without QK-norm"),
            "on": sensitivity("on", "with QK-norm"),
            **tuned("off", "without QK-norm", key="best_off"),
            **tuned("on", "with QK-norm", key="best_on"),
        },
        (
            Part("Over rates from 0.001 to 0.3 the sensitivity is lower", Less("on", "off")),
            Part("At its best rate the loss is not worse by 0.01 nats",
                 NotWorse("best_on", "best_off", 0.01), control=True),
        ),
        "Six rates from 0.001 to 0.3, 12 blocks, 300 steps. Sensitivity (the mean excess of the "
        "final training loss over the lowest one) is {off} without and {on} with QK-norm; the "
        "held-out losses at the rates chosen on the other seeds are {best_off} and {best_on}. In "
        "the paper each run has warm-up and a cosine, and QK-norm is a LayerNorm; here rates are "
        "constant without warm-up, runs that still fell at the end count with the loss that they "
        "had, with QK-norm all runs at 0.3 and most of those at 0.1, and QK-norm divides each "
        "head's queries and keys by their RMS. The duel shows a rate of 0.1, where the two differ, "
        "and not those ({best_off_rate} and {best_on_rate}).",
        Curve("lr", FINAL, log_y=False),
        changed="Runs had 150 steps, and the loss at the best rate was no part of the rule.",
        open_=(("off", {"lr": 0.1}), ("on", {"lr": 0.1})),
        question="rate",
        finding=(
            "tt",
            "QK-norm lowers the sensitivity to the learning rate from {off} to {on}, nearly all of "
            "it by the runs at 0.1 and 0.3. At its best rate the loss is not worse by 0.01 nats.",
        ),
    ),
    Claim(
        "C15",
        "Logit growth at high rates",
        "At a high learning rate the attention logits of Pre-LN become large; with QK-norm higher "
        "rates train.",
        "Wortsman et al. 2023, arXiv:2309.14322, section 3.1 and figure 2",
        {
            "off": {"label": "Pre-LN", "scheme": "pre", **FINE},
            "on": {"label": "Pre-LN with QK-norm", "scheme": "pre", "qk_norm": "on", **FINE},
            "peri": {"label": "Peri-LN", "scheme": "peri", **FINE},
        },
        {
            "off": Number("the largest logit at a rate of 0.128, without",
                          value("off", LOGIT, lr=0.128), ",.0f"),
            "calm": Number("the largest logit at a rate of 0.004, without",
                           value("off", LOGIT, lr=0.004), ",.1f"),
            "on": Number("the largest logit at a rate of 0.128, with QK-norm",
                         value("on", LOGIT, lr=0.128), ".1f"),
            "peri": Number("the largest logit at a rate of 0.128, Peri-LN",
                           value("peri", LOGIT, lr=0.128), ",.0f"),
            "rate_off": rate("off", "without QK-norm"),
            "rate_on": rate("on", "with QK-norm"),
            "loss_off": final("off", "rate 0.128, without", lr=0.128),
            "loss_on": final("on", "rate 0.128, with QK-norm", lr=0.128),
            "loss_peri": final("peri", "rate 0.128, Peri-LN", lr=0.128),
        },
        (
            Part("Without QK-norm the largest logit at 0.128 is at least 100", Most("off", low=100)),
            Part("A higher rate trains with QK-norm", LessInMost("rate_off", "rate_on")),
            Part("Large logits and failure go together: Peri-LN, which trains, has small ones",
                 All((Most("loss_peri", high=HALF), Most("peri", high=100))), control=True),
        ),
        "12 blocks, 300 steps, no warm-up, rates that fall to 0. Pre-LN's largest logit ends at "
        "{calm} at a rate of 0.004 and at {off} at 0.128, its loss there at {loss_off}; half of "
        "the way from chance to the floor is 2.21. With QK-norm they are {on} and {loss_on}: "
        "queries and keys of 8 channels have an RMS of 1 and no learned scale, so no logit can "
        "pass sqrt(8) = 2.83. The largest rate that trains is {rate_off} without and {rate_on} "
        "with; 0.256 is the highest one tried. At 0.128 Peri-LN has a largest logit of {peri} and "
        "a loss of {loss_peri}. Logits were judged at the end. At 0.128 some seeds without QK-norm "
        "train.",
        Curve("lr", renamed(LOGIT, "largest attention logit")),
        open_=(("off", {"lr": 0.128}), ("on", {"lr": 0.128}), ("peri", {"lr": 0.128})),
        changed="A part said that logits stay below 10 with QK-norm, which is true by "
        "construction; it is gone. The sentence said so too, and that logits grow without bound "
        "and training breaks, which no part tests. Rates were a factor of 3 apart. The rate was "
        "constant, and a run that still fell left a part undecided; now it falls to 0.",
        question="rate",
        finding=(
            "ttf",
            "Without QK-norm Pre-LN's largest logit ends at {off} at a rate of 0.128; with "
            "QK-norm, at most 2.83 by construction, at {on}, and higher rates train, all without "
            "warm-up: in the median up to {rate_on}, the highest one tried, instead of {rate_off}. "
            "But Peri-LN trains with a logit of {peri}: a large one need not break training.",
        ),
    ),
    Claim(
        "C16",
        "Peri-LN is steadier than Pre-LN",
        "With a norm before and after each branch the stream grows less in training, higher "
        "learning rates train, and the loss ends lower than Pre-LN's.",
        "Kim et al. 2025, arXiv:2502.02732",
        {
            "pre": {"label": "Pre-LN", "scheme": "pre", **FINE, **MORE},
            "peri": {"label": "Peri-LN", "scheme": "peri", **FINE, **MORE},
        },
        {
            **{
                f"{arm}_growth": Number(
                    f"the stream's growth in training at a rate of 0.004, {label}",
                    over(value(arm, at("stream_rms", -1, -1), lr=0.004),
                         value(arm, at("stream_rms", 0, -1), lr=0.004)))
                for arm, label in (("pre", "Pre-LN"), ("peri", "Peri-LN"))
            },
            **{
                f"{arm}_end": Number(f"the stream's RMS at the end at a rate of 0.004, {label}",
                                     value(arm, at("stream_rms", -1, -1), lr=0.004))
                for arm, label in (("pre", "Pre-LN"), ("peri", "Peri-LN"))
            },
            "pre_rate": rate("pre", "Pre-LN"),
            "peri_rate": rate("peri", "Peri-LN"),
            **tuned("pre", "Pre-LN", key="pre_best"),
            **tuned("peri", "Peri-LN", key="peri_best"),
        },
        (
            Part("The stream grows by a smaller factor", Less("peri_growth", "pre_growth", ratio=True)),
            Part("The stream ends smaller", Less("peri_end", "pre_end", ratio=True), control=True),
            Part("A higher rate trains with Peri-LN", LessInMost("pre_rate", "peri_rate")),
            Part("The loss at the best rate is lower", Less("peri_best", "pre_best", 0.005)),
        ),
        "12 blocks, no warm-up, rates that fall to 0. Peri-LN norms the embedding too; what that "
        "norm does alone was not tested. From step 0 to the last, at a rate of 0.004, the lowest "
        "one, the stream after the last block grows {pre_growth} times in Pre-LN and {peri_growth} "
        "times in Peri-LN, which starts larger; they end at {pre_end} and {peri_end}. The largest "
        "rate that trains is {pre_rate} and {peri_rate}, and 0.256 is the highest one tried. At "
        "the rates chosen on the other seeds ({pre_best_rate} and {peri_best_rate}) the held-out "
        "losses are {pre_best} and {peri_best}. The duel shows a rate of 0.256, at which only "
        "Peri-LN trains, and not the chosen rates.",
        Curve("lr", FINAL, log_y=False),
        changed="Rates were a factor of 3 apart, runs had 150 steps, and the lowest training loss "
        "of each seed was compared. The rate was constant, and a run that still fell left a part "
        "undecided; now it falls to 0. The sentence also said that the loss varies less over "
        "seeds, which no part judges.",
        seeds=8,
        open_=(("pre", {"lr": 0.256}), ("peri", {"lr": 0.256})),
        question="rate",
        finding=(
            "tttn",
            "At a rate of 0.004 Peri-LN's stream grows less in training and ends a little smaller, "
            "at {peri_end} instead of {pre_end}. It trains up to a rate of {peri_rate}, the "
            "highest one tried, instead of {pre_rate} in the median. At the best rates the losses "
            "differ by less than 0.005 nats on average. All is without warm-up.",
        ),
    ),
    Claim(
        "C17",
        "Res-post-norm needs QK-norm",
        "Without QK-norm a norm on each branch's output alone is not stable.",
        "after OLMo 2 2025, arXiv:2501.00656, section 3.3, which has both together",
        {
            "off": {"label": "Res-post-norm", "scheme": "resp", "depth": "12,24,48", "steps": "0"},
            "on": {"label": "with QK-norm", "scheme": "resp", "qk_norm": "on", "depth": "12,24,48",
                   "steps": "0"},
            "off_run": {"label": "16 blocks", "scheme": "resp", "depth": "16",
                        "steps": "400", **MORE},
            "on_run": {"label": "16 blocks, QK-norm", "scheme": "resp", "qk_norm": "on",
                       "depth": "16", "steps": "400", **MORE},
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
            "off": held_out("off_run", "without"),
            "on": held_out("on_run", "with QK-norm"),
            "off_final": final("off_run", "without"),
        },
        (
            Part("24 blocks start with more even gradients with QK-norm",
                 Less("on24", "off24", ratio=True), control=True),
            Part("48 blocks start with more even gradients with QK-norm",
                 Less("on48", "off48", ratio=True), control=True),
            Part("16 blocks end lower with QK-norm", Less("on", "off", 0.005), control=True),
            Part("16 blocks do not train without", Most("off_final", low=HALF)),
        ),
        "At step 0 the first of 24 blocks gets {off24} times the last one's gradient, of 48 "
        "{off48} times; with QK-norm {on24} and {on48}. After 400 steps at a rate of 0.003, 16 "
        "blocks have a held-out loss of {off} without and {on} with QK-norm. Not stable is judged "
        "as not training; spikes were not judged. Only 16 blocks were trained, at one constant "
        "rate without warm-up; 24 and 48 blocks, whose gradients are least even, were not. QK-norm "
        "here divides each head's queries and keys by their RMS; OLMo 2's is over all heads, with "
        "a learned scale.",
        Curve("depth", renamed(FIRST_LAST, "gradient, first block over last, step 0")),
        changed="The rule had limits for the quotients of gradients at 24 blocks, which three "
        "seeds straddled. Runs had 200 steps, and their training loss was compared. The "
        "claim also said that it is stable with QK-norm, which no part tests.",
        open_=(("off_run", {}), ("on_run", {})),
        seeds=8,
        question="gradient",
        finding=(
            "tttf",
            "At a rate of 0.003 without warm-up 16 blocks of Res-post-norm train without QK-norm "
            "too, to {off}; with it they end lower, at {on}. With 24 and 48 blocks the gradients "
            "start more even with it.",
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
            for depth in (2, 12, 36)
        },
        tuple(
            Part(f"With {depth} blocks Pre-LN trains at a higher rate",
                 LessInMost(f"post{depth}", f"pre{depth}"))
            for depth in (2, 12, 36)
        ),
        "PyTorch's initialisation, no warm-up, 300 steps, peak rates of 0.001 to 0.256, a factor "
        "of 2 apart, that fall to 0. The largest that trains within these steps, with 2, 12 and 36 "
        "blocks: Post-LN {post2}, {post12} and {post36} (0: none of these); Pre-LN {pre2}, {pre12} "
        "and {pre36}. The figure has no row for Post-LN with 36 blocks, which trains at none of "
        "these rates.",
        Strip("largest learning rate that trains", log_y=True),
        open_=(("post", {"depth": 12, "lr": 0.016}), ("pre", {"depth": 12, "lr": 0.016})),
        changed="Models had 2, 16 and 64 blocks, rates were a factor of 3 apart up to 0.03, where "
        "both placements still trained 2 blocks, and runs had 150 steps. The rate was constant, "
        "and a run that still fell left a part undecided; now it falls to 0. Rates up to 0.064 "
        "left 2 blocks undecided on other seeds, with one tie in five pairs.",
        question="rate",
        finding=(
            "ttt",
            "With PyTorch's initialisation and without warm-up the largest rate that trains 2, 12 "
            "and 36 blocks is {pre2}, {pre12} and {pre36} in Pre-LN, and {post2}, {post12} and "
            "{post36} in Post-LN (0: none of those tried, from 0.001 on).",
        ),
    ),
    Claim(
        "E13",
        "Sandwich-LN against both",
        "Sandwich-LN trains at rates as high as Pre-LN's, and its loss is as low as Post-LN's.",
        "teaching material; of the norm after each branch Ding et al. 2021, arXiv:2105.13290",
        {
            arm: {"label": label, "scheme": arm, "init": "torch", "lr": rates, "steps": "400",
                  "schedule": "linear", **MORE}
            for arm, label, rates in (
                ("sandwich", "Sandwich-LN", "0.004,0.008,0.016,0.032,0.064,0.128,0.256"),
                ("pre", "Pre-LN", "0.004,0.008,0.016,0.032,0.064,0.128,0.256"),
                ("post", "Post-LN", "0.001,0.002,0.004,0.008,0.016"),
            )
        },
        {
            **tuned("sandwich", "Sandwich-LN", key="sandwich_best"),
            **tuned("pre", "Pre-LN", key="pre_best"),
            **tuned("post", "Post-LN", key="post_best"),
            "sandwich": rate("sandwich", "Sandwich-LN"),
            "pre": rate("pre", "Pre-LN"),
            "post": rate("post", "Post-LN"),
            "rms": Number("the stream's RMS after the last block at the end, Sandwich-LN, rate 0.004",
                          value("sandwich", at("stream_rms", -1, -1), lr=0.004), ".1f"),
            "pre_rms": Number("the stream's RMS after the last block at the end, Pre-LN, rate 0.004",
                              value("pre", at("stream_rms", -1, -1), lr=0.004), ".1f"),
        },
        (
            Part("It trains at higher rates than Pre-LN", LessInMost("pre", "sandwich")),
            Part("Its loss is not worse than Post-LN's by 0.01 nats, each at its best rate",
                 NotWorse("sandwich_best", "post_best", 0.01)),
            Part("Its loss is not worse than Pre-LN's by 0.01 nats, each at its best rate",
                 NotWorse("sandwich_best", "pre_best", 0.01), control=True),
        ),
        "PyTorch's initialisation, with which Post-LN trains 12 blocks; no warm-up, Post-LN's "
        "neither; rates fall to 0. The largest rate that trains is {sandwich} for Sandwich-LN, the "
        "highest that was run, {pre} for Pre-LN and {post} for Post-LN. At the rates chosen on the "
        "other seeds the held-out losses are {sandwich_best}, {pre_best} and {post_best}. At a "
        "rate of 0.004 the stream ends at an RMS of {rms}, Pre-LN's at {pre_rms}. Without warm-up "
        "Post-LN ends higher than Pre-LN here.",
        Curve("lr", HELD_OUT, log_y=False),
        seeds=8,
        changed="All had Xavier. It was compared with Pre-LN at a rate where Post-LN fails, and "
        "called not bounded. The rate was constant up to 0.128, and a run that still fell "
        "left a part undecided; now it falls to 0, from up to 0.256. A part that read "
        "\"bounded\" as a stream smaller than Pre-LN's was false and is gone; "
        "\"bounded\", and that it combines the advantages of both, went from the "
        "sentence, as no part tests them.",
        question="quality",
        finding=(
            "ttt",
            "Without warm-up, each at its best rate, Sandwich-LN ends at {sandwich_best}, on "
            "average 0.005 nats above Pre-LN ({pre_best}) and 0.012 below Post-LN ({post_best}), "
            "which was given no warm-up either. In the median it trains up to a rate of "
            "{sandwich}, the highest that was run, Pre-LN up to {pre} and Post-LN up to {post}.",
        ),
    ),
    Claim(
        "C51",
        "Late spikes in Pre-LN",
        "In Pre-LN the gradient spikes late in training.",
        "after Kim et al. 2025, arXiv:2502.02732 (pre-training of up to 3.2B parameters; late is "
        "this card's word); of spikes of the loss that come with it Takase et al. 2023, "
        "arXiv:2312.16903",
        {
            **{arm: {"label": label, "scheme": arm, "lr": EIGHT_RATES[arm], **EIGHT}
               for arm, label in PERI.items()},
            **{f"{arm}_high": {"label": f"{label}, 0.045", "scheme": arm, "lr": "0.045", **EIGHT}
               for arm, label in PERI.items()},
        },
        {
            name: number
            for arm, label in PERI.items()
            for name, number in {
                **tuned(arm, label),
                f"{arm}_spike": at_rate_of(arm, arm, label, LATE_SPIKE),
                f"{arm}_high": Number(f"{LATE_SPIKE.label} at a rate of 0.045, {label}",
                                      value(f"{arm}_high", LATE_SPIKE)),
            }.items()
        },
        (
            Part("At its best rate Pre-LN's largest gradient is on average three times the median or more",
                 Between("pre_spike", low=3, ratio=True)),
            Part("At its best rate Peri-LN's is less on average",
                 Between("peri_spike", high=3, ratio=True), control=True),
            Part("At a rate of 0.045 Pre-LN's is on average three times the median or more",
                 Between("pre_high", low=3, ratio=True)),
            Part("At a rate of 0.045 Peri-LN's is less on average",
                 Between("peri_high", high=3, ratio=True), control=True),
        ),
        "Largest norm of the whole gradient over the median, both of the second half of 240 steps, "
        "on prose with 8 blocks, warm-up and a falling rate. At the rates whose held-out loss is "
        "lowest on the other seeds ({pre_rate} in Pre-LN, {peri_rate} in Peri-LN) it is "
        "{pre_spike} in Pre-LN and {peri_spike} in Peri-LN, at a rate of 0.045 it is {pre_high} "
        "and {peri_high}. The held-out losses are {pre} and {peri} at the former rates. Such short "
        "runs of small models need not spike where large ones do.",
        Strip("largest gradient over the median, second half",
              ("pre_spike", "peri_spike", "pre_high", "peri_high"), log_y=True),
        seeds=5,
        changed="Peri-LN's best rate was the highest one tried, so that a higher one was tried "
        "after a first result. That Peri-LN's is less on average became a control, as without a "
        "spike in Pre-LN it tells nothing. The sentence said of Peri-LN that it does not.",
        open_=(("pre", {}), ("peri", {})),
        question="gradient",
        finding=(
            "ftut",
            "In the second half of 240 steps the largest gradient is {pre_spike} times the median "
            "in Pre-LN at its best rate and {pre_high} times at 0.045, in Peri-LN {peri_spike} and "
            "{peri_high} times, in the median. At best rates no seed of Pre-LN reaches three times "
            "and some of Peri-LN do; at 0.045 some of Pre-LN do and none of Peri-LN, and whether "
            "Pre-LN's mean does is undecided. No part compares the two.",
        ),
    ),
)  # fmt: skip
