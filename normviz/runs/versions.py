"""Which version of the engine trained what is shown, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from ..config import ENGINE


def made_by(versions: Iterable[int], what: str = "runs") -> str:
    """A sentence if some of these versions of the engine are older than this release's; else empty."""
    each = list(versions)
    older = sorted({version for version in each if version < ENGINE})
    if not older:
        return ""
    named = " and ".join(map(str, older))
    n = sum(version < ENGINE for version in each)
    some = "Made" if n == len(each) else f"{n} of these {len(each)} {what} were made"
    return (
        f"{some} by version {named} of the engine. Training again uses version {ENGINE}, which draws other "
        "numbers from the same distributions."
    )
