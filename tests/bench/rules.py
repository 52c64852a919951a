"""How often the checks of claims are wrong and how often they decide, on simulated seeds (`rules_kit`)."""

from __future__ import annotations

import typer
from rules_kit import CASES, shares, wrong

from .kit import table

SEEDS = (3, 5, 8, 12, 20)


def main(draws: int = 4000) -> None:
    """Print, of so many draws of each distribution, the shares called true, called false, and wrong."""
    rows = [("distribution", "check", "truth", *(f"{n} seeds" for n in SEEDS))]
    for case in CASES:
        cells = []
        for n in SEEDS:
            found = shares(case, n, draws)
            words = (found.get("true", 0.0), found.get("false", 0.0), wrong(case, found))
            cells.append("/".join(f"{100 * share:.0f}" for share in words))
        rows.append((case.label, type(case.check).__name__, case.truth, *cells))
    print(f"{draws:,} draws; of each number of seeds: called true, false, wrong, in %")
    print(table(rows))


if __name__ == "__main__":
    typer.run(main)
