"""No norm, as the baseline of all norms."""

from __future__ import annotations

from ..norm import Norm

NORMS = (
    Norm(
        "none",
        "No norm",
        "x",
        "Leaves the token as it is: every norm of the scheme becomes the identity.",
        0.0,
        "the ablation",
        order=180,
        code="nn.Identity()",
        oracle="torch.nn.Identity",
    ),
)
