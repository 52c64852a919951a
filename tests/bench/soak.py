"""Hostile links through every page's state, and through some whole pages.

    python -m tests.bench.soak

Exit code 1 where a page shows a traceback, changes a setting without a word, or writes outside of its folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from urllib.parse import parse_qs

import typer
from hostile_kit import link, query

from normviz.home import VARIABLE

from .kit import cores, table

DRAWN = 100
"""One link in so many also renders its whole page; at least ten links do, one per page."""


def main(links: int = 10_000, seed: int = 0) -> None:
    """Open so many links."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        wrong = opened(Path(name), [link(random) for _ in range(links)])
    print(f"seed {seed}, {cores()}; violations: {len(wrong)}")
    for why in wrong[:20]:
        print(f"  {why}")
    raise typer.Exit(int(bool(wrong)))


def opened(folder: Path, links: list[dict[str, list[str]]]) -> list[str]:
    """What is wrong with the pages' own code on the links, in a process of its own (`links.py`)."""
    began = time.monotonic()
    (folder / "tmp").mkdir(parents=True)
    every = max(1, len(links) // max(10, len(links) // DRAWN))
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.links", str(every)], stdout=subprocess.PIPE, text=True,
        check=True, input="\n".join(map(_arrived, links)),
        env={**os.environ, VARIABLE: str(folder), "TMPDIR": str(folder / "tmp"),
             "PYTHONDONTWRITEBYTECODE": "1", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"},
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    counts: dict[str, int] = found["counts"]
    print(
        f"{len(links):,} hostile links, each through the states of five pages, "
        f"{time.monotonic() - began:.0f} s"
    )
    rows = [
        (name, *(f"{counts.get(f'{name} {what}', 0):,}" for what in ("taken", "told")))
        for name in ("duel", "maps", "catalogue", "hand", "choose")
    ]
    print(table([("page", "taken", "told"), *rows]))
    print(f"whole pages drawn: {counts.get('pages drawn', 0):,} (the ten views alternate)")
    print(
        f"tracebacks, silent changes, writes outside the store: {len(found['wrong'])}", flush=True
    )
    return found["wrong"]


def _arrived(params: dict[str, list[str]]) -> str:
    """A link's parameters as the server receives them, as JSON."""
    return json.dumps(parse_qs(query(params), keep_blank_values=True))


if __name__ == "__main__":
    typer.run(main)
