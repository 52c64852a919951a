"""What this server allows, chosen when it starts."""

from __future__ import annotations

from normviz.policy import Policy, from_environment

_chosen: Policy | None = None


def policy() -> Policy:
    """What this server allows. Raises Misconfigured."""
    global _chosen
    if _chosen is None:
        _chosen = from_environment()
    return _chosen
