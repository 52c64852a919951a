"""Which placements need warm-up, and with which initialisation and optimizer."""

from __future__ import annotations

from ..evidence import FINAL
from ..numbers import HALF, best, final
from ..record import Claim, Curve, Number, Strip
from ..rule import All, Between, Less, Part

WARM = {"depth": "10", "steps": "400", "lr": "0.001,0.003,0.01"}

CLAIMS = (
    Claim(
        "C5",
        "Warm-up for Post-LN",
        "Post-LN needs a learning-rate warm-up at usual rates; Pre-LN needs none.",
        "Xiong et al. 2020, arXiv:2002.04745, section 3 (translation, BLEU 8.45 without and 34 with)",
        {
            f"{arm}{warmup}": {"label": f"{label}, warm-up {warmup}", "scheme": arm,
                               "warmup": str(warmup), **WARM}
            for arm, label in (("post", "Post-LN"), ("pre", "Pre-LN"))
            for warmup in (0, 200)
        },
        {
            f"{arm}{warmup}_{name}": final(
                f"{arm}{warmup}", f"{label}, rate {lr:g}, warm-up {warmup}", lr=lr
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
        "{pre200_10}. So warm-up decides at one rate of three: below it Post-LN trains without warm-up, "
        "above it not even with it. Pre-LN trains at all three without it, and gains nothing by it.",
        Curve("lr", FINAL, log_y=False),
        open_=(("post0", {"lr": 0.003}), ("post200", {"lr": 0.003}), ("pre0", {"lr": 0.003})),
        question="warmup",
        finding=(
            "otot",
            "Warm-up decides at one rate of three: at 0.003 Post-LN ends at {post0_3} without it "
            "and {post200_3} with it. Pre-LN trains without it at all three.",
        ),
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
        question="warmup",
        finding=(
            "tfot",
            "It depends on the initialisation: with Xavier Post-LN ends at {x0} without warm-up "
            "and {x200} with it. With PyTorch's and 8 blocks it trains without, to {post8}.",
        ),
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
        question="warmup",
        finding=(
            "tf",
            "SGD needs warm-up here too: it ends at {sgd0} without and {sgd200} with it, at the "
            "best of four rates.",
        ),
    ),
)  # fmt: skip
