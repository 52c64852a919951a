"""The soak test: hostile links through every page's state, and random kills while runs train."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

from ..home import VARIABLE, shipped
from .hostile import link, query
from .soak_kills import TRUE_SECONDS, Fell, kills

DRAWN = 100
"""One link in so many also renders its whole page; at least eight links do, one per page."""


@dataclass(frozen=True)
class Soaked:
    """`table` is the report; `wrong` has a sentence for each violation."""

    table: str
    wrong: list[str]


def soak(n_links: int, n_kills: int, seconds: float, seed: int = 0) -> Soaked:
    """Open the links first, then kill processes for the rest of the seconds."""
    until, random = time.monotonic() + seconds, Random(seed)
    lines: list[str] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if n_links:
            began = time.monotonic()
            found = _links(folder / "links", [link(random) for _ in range(n_links)])
            lines += _told(found, n_links, time.monotonic() - began)
            wrong += found["wrong"]
        if n_kills:
            began = time.monotonic()
            (folder / "kills").mkdir()
            fell = kills(folder / "kills", n_kills, random, until)
            lines += _felled(fell, n_kills, time.monotonic() - began)
            wrong += [f"{kind}: {why}" for kind, one in fell.items() for why in one.wrong]
    lines.append(f"seed {seed}, {os.cpu_count()} cores; violations: {len(wrong)}")
    return Soaked("\n".join([*lines, *(f"  {why}" for why in wrong[:20])]), wrong)


def _links(folder: Path, links: list[dict[str, list[str]]]) -> dict[str, Any]:
    """Results of the page's own code on the links, in a process of its own."""
    (folder / "tmp").mkdir(parents=True)
    script = shipped("app") / "bench" / "fuzzed.py"
    every = max(1, len(links) // max(8, len(links) // DRAWN))
    path = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script), str(every)], capture_output=True, text=True, check=False,
        input="\n".join(map(_arrived, links)), cwd=script.parent,
        env={**os.environ, VARIABLE: str(folder), "PYTHONPATH": path, "TMPDIR": str(folder / "tmp"),
             "PYTHONDONTWRITEBYTECODE": "1", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"},
    )  # fmt: skip
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return {"counts": {}, "wrong": [f"the pages' process ended with {done.returncode}: {last}"]}
    return json.loads(done.stdout.splitlines()[-1])


def _arrived(params: dict[str, list[str]]) -> str:
    """A link's parameters as the server receives them, as JSON."""
    return json.dumps(parse_qs(query(params), keep_blank_values=True))


def _told(found: dict[str, Any], n: int, seconds: float) -> list[str]:
    counts = found["counts"]
    lines = [
        f"{n:,} hostile links, each through the states of four pages, {seconds:.0f} s",
        f"  {'page':12}{'taken':>10}{'told':>10}",
    ]
    for name in ("duel", "maps", "anatomy", "hand"):
        taken, told = (counts.get(f"{name} {what}", 0) for what in ("taken", "told"))
        lines.append(f"  {name:12}{taken:>10,}{told:>10,}")
    lines.append(
        f"  whole pages drawn: {counts.get('pages drawn', 0):,} (the eight views alternate)"
    )
    lines.append(f"  tracebacks, silent changes, writes outside the store: {len(found['wrong'])}")
    return lines


def _felled(fell: dict[str, Fell], asked: int, seconds: float) -> list[str]:
    done = sum(one.kills for one in fell.values())
    lines = [
        f"{done} of {asked} kills (SIGKILL) while two runs train, {seconds:.0f} s; the longest of each kind:",
        f"  {'killed':12}{'times':>8}{'rows at risk':>15}{'status true':>14}{'next run ended':>17}"
        f"{'wrong':>8}",
    ]
    for kind, one in fell.items():
        lines.append(
            f"  {kind:12}{one.kills:>8}{one.rows:>15,}{one.truth:>12.2f} s{one.again:>15.1f} s"
            f"{len(one.wrong):>8}"
        )
    lines.append(
        f"  after each: status true within {TRUE_SECONDS:g} s, no committed row gone, integrity_check ok, "
        "a new run ends with the same numbers"
    )
    return lines
