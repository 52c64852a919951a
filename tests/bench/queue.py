"""How long an honest visitor waits while new cookies ask a shared server without end, in simulated time."""

from __future__ import annotations

from statistics import median

import typer
from queue_kit import A_SECOND, EVERY, SimulatedQueue, simulate

from normviz.config import estimated_seconds
from normviz.lessons.presets import PRESETS
from normviz.policy import SHARED


def main(minutes: float = 20.0) -> None:
    """Print the time until an honest visitor's hero begins, over simulated minutes of each attack."""
    hero = sum(map(estimated_seconds, PRESETS["hero"].lanes()))
    print(
        f"queue: {A_SECOND} new cookies a second for {minutes:g} minutes, {SHARED.slots} runs at once; an "
        f"honest visitor every {EVERY:g} s asks for the hero ({hero:.1f} s of a core)"
    )
    for addresses, known in ((1, True), (20, True), (1, False)):
        for longest in (False, True):
            where = (
                f"from {addresses} address{'es' * (addresses > 1)}"
                if known
                else "addresses unknown"
            )
            asked = "for the longest run" if longest else "for the hero"
            found = simulate(addresses, minutes, longest, known)
            print(f"  {where:18} {asked:20} begins after {_words(found)}")


def _words(found: SimulatedQueue) -> str:
    missing = sum(one.began is None for one in found.visitors)
    never = f", {missing} not by the end" if missing else ""
    return (
        f"{median(found.waits):6.0f} s, worst {max(found.waits):5.0f} s of {len(found.waits)}{never}; "
        f"refused {sum(one.refused for one in found.visitors)} times"
    )


if __name__ == "__main__":
    typer.run(main)
