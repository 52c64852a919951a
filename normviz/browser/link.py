"""The link of a duel on a live page (`browser.page`): which settings the page has. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import RunConfig
from ..links import encode

DEPTHS = (2, 4, 6, 8, 10, 12, 16, 24)
USUAL_NORMS = ("layernorm", "rmsnorm")
BROWSER_NORMS = (
    *USUAL_NORMS, "layernorm_nobias", "layernorm_nonparam", "layernorm_1p", "groupnorm", "rmsnorm_1p",
    "rmsnorm_noaffine", "prmsnorm", "crmsnorm", "preaffine", "scalenorm", "l2", "dyt", "derf", "bhyt", "none",
)  # fmt: skip
BROWSER_TASKS = ("markov", "copy", "prose")
MOST_STEPS = 2000
FIELDS = (
    "scheme", "norm", "init", "depth", "lr", "warmup", "steps", "task", "dropout", "init_seed",
    "data_seed",
)  # fmt: skip
FEW = dict.fromkeys(USUAL_NORMS, (4, 12, 16))
VARIANTS = {
    "": dict.fromkeys(BROWSER_NORMS, (4, 12)) | dict.fromkeys(USUAL_NORMS, DEPTHS),
    "-prose": FEW, "-dropout": FEW, "-prose-dropout": FEW,
}  # fmt: skip
"""The kinds of models of a placement: of each its norms, and the depths of each norm. A page of all pairs
would take three times as long to write."""


def live_link(lanes: Sequence[RunConfig]) -> str | None:
    """The query of two lanes, as of the app; None where a setting is one that the page does not have. Which
    placements the page has is not checked."""
    default = RunConfig()
    rest = {name: getattr(default, name) for name in FIELDS}
    for lane in lanes:
        is_offered = (
            lane.depth in VARIANTS[variant(lane)].get(lane.norm, ()) and lane.task in BROWSER_TASKS
            and lane.init_seed == lane.data_seed and 1 <= lane.steps <= MOST_STEPS
        )  # fmt: skip
        if not is_offered or lane.replace(**rest) != default:
            return None
    shared = {(lane.steps, lane.task, lane.init_seed) for lane in lanes}
    return encode(lanes) if len(lanes) == 2 and len(shared) == 1 else None


def variant(lane: RunConfig) -> str:
    """Which of VARIANTS a lane is: prose has more symbols, and dropout has operations of its own."""
    return "-prose" * (lane.task == "prose") + "-dropout" * (lane.dropout > 0)


def model_file(lane: RunConfig) -> str:
    """The name of the file beside the page that has a lane's model."""
    return f"model-{lane.scheme}-{lane.norm}{variant(lane)}.bin"
