"""A claim of tiny runs, and one of a lab, for the tests of the engine."""

from __future__ import annotations

from normviz.studies.claims import Claim
from normviz.studies.claims.evidence import FINAL, HELD_OUT, at, lab
from normviz.studies.claims.numbers import slope, tuned, value
from normviz.studies.claims.record import Curve, Number, Strip, Theory
from normviz.studies.claims.rule import Between, Fact, Less, Part

TINY = {
    "width": "16",
    "heads": "2",
    "seq_len": "8",
    "batch": "4",
    "steps": "30",
    "schedule": "linear",
}

SMALL = Claim(
    "T1",
    "A tiny claim",
    "With a rate of 0.03 it learns more than with 0.0001.",
    "the tests",
    {
        "slow": {"label": "Pre-LN, slow", "scheme": "pre", "depth": "1,2", "lr": "0.0001", **TINY},
        "fast": {"label": "Pre-LN, fast", "scheme": "pre", "depth": "1,2", "lr": "0.03", **TINY},
    },
    {
        "slow": Number("final loss, slow", value("slow", FINAL, depth=2), unit="nats"),
        "fast": Number("final loss, fast", value("fast", FINAL, depth=2), unit="nats"),
        "power": Number(
            "the exponent over depth", slope("slow", "depth", at("grad_w2", 0, -1)), ".3f"
        ),
    },
    (
        Part("2 blocks learn more", Less("fast", "slow")),
        Part("Its gradients vanish", Between("power", high=-5)),
    ),
    "Slow ends at {slow}, fast at {fast}; the exponent is {power}.",
    Curve("depth", FINAL, log_y=False),
    (Theory("half", "from the first point", lambda x, x0, y0: y0 * (x0 / x) ** 0.5, "slow"),),
    open_=(("slow", {"depth": 2}), ("fast", {"depth": 2})),
    seeds=3,
)

TUNED = Claim(
    "T5",
    "A tuned claim",
    "One block learns at the rate that is chosen on the other seeds.",
    "the tests",
    {"pre": {"label": "Pre-LN", "scheme": "pre", **TINY, "depth": "1", "lr": "0.0001,0.03"}},
    tuned("pre", "Pre-LN"),
    (Part("It learns", Between("pre", high=3)),),
    "At {pre_rate} it ends at {pre}.",
    Curve("lr", HELD_OUT, log_y=False),
    seeds=3,
)

COUNTED = Claim(
    "T2",
    "A counted claim",
    "Two blocks of Post-LN have four norms.",
    "the tests",
    {"post": {"label": "Post-LN", "scheme": "post", **TINY, "depth": "2", "steps": "0"}},
    {"norms": Number("norms", value("post", lab("norms", "calls")), ".0f")},
    (Part("Post-LN has four", Fact("norms", 4, 4)),),
    "It has {norms}.",
    Strip("norms"),
    lab="norms",
    seeds=3,
)
