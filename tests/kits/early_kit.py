"""The runs that the early stop was made with, and where it would stop a recorded run."""

from __future__ import annotations

from normviz import RunConfig
from normviz.observed import configured
from normviz.runs import Recording
from normviz.studies.maps import Grid, make
from normviz.studies.maps.early import FlatDetector


def grids() -> list[Grid]:
    """Grids where Post-LN nearly fails, where it leaves chance late, and where other schemes fail."""
    post = RunConfig(scheme="post", steps=150)
    return [
        make(post, {"depth": (6, 8, 10, 12), "lr": (1e-3, 3e-3)}, seeds=2),
        make(post.replace(init="torch"), {"depth": (8, 16, 24), "lr": (3e-3, 1e-2)}, seeds=2),
        make(post.replace(steps=400), {"depth": (7, 8, 9)}, seeds=3),
        make(post.replace(lr=3e-2, depth=8), {"scheme": ("deepnorm", "b2t", "mixln", "pre")}),
    ]


def stops(it: Recording) -> int | None:
    """How many steps a recorded run would have made."""
    flat = FlatDetector(configured(it.config), it.chance)
    return next((step.step + 1 for step in it.steps if flat.check(step)), None)
