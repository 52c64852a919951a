"""The link of a duel on a live page (`export.live`): which settings the page has. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import RunConfig
from ..links import encode

DEPTHS = (2, 4, 6, 8, 10, 12, 16, 24)
BROWSER_NORMS = ("layernorm", "rmsnorm")
BROWSER_TASKS = ("markov", "copy")
MOST_STEPS = 2000
FIELDS = (
    "scheme", "norm", "init", "depth", "lr", "warmup", "steps", "task", "init_seed", "data_seed",
)  # fmt: skip


def live_link(lanes: Sequence[RunConfig]) -> str | None:
    """The query of two lanes, as of the app; None where a setting is one that the page does not have. Which
    placements the page has is not checked."""
    default = RunConfig()
    rest = {name: getattr(default, name) for name in FIELDS}
    for lane in lanes:
        is_offered = (
            lane.depth in DEPTHS and lane.norm in BROWSER_NORMS and lane.task in BROWSER_TASKS
            and lane.init_seed == lane.data_seed and 1 <= lane.steps <= MOST_STEPS
        )  # fmt: skip
        if not is_offered or lane.replace(**rest) != default:
            return None
    shared = {(lane.steps, lane.task, lane.init_seed) for lane in lanes}
    return encode(lanes) if len(lanes) == 2 and len(shared) == 1 else None


def model_file(lane: RunConfig) -> str:
    """The name of the file beside the page that has a lane's model."""
    return f"model-{lane.scheme}-{lane.norm}.bin"
