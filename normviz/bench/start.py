"""Start-up time of commands: new processes, compared with one that only imports torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from ..home import VARIABLE

PEER = 'python -c "import torch"'
RUN = "normviz run hero"
COMMANDS = {
    PEER: ("-c", "import torch"),
    "normviz --help": ("-m", "normviz", "--help"),
    "normviz list": ("-m", "normviz", "list"),
    RUN: ("-m", "normviz", "run", "hero", "--json"),
}


def measure(rounds: int) -> str:
    """A table of seconds and of ratios to the peer: medians, and the range over the rounds."""
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = np.array([_round(folder, round_) for round_ in range(rounds + 1)])[
            1:
        ]  # one warms up
    seconds, training = found[..., 0], found[..., 1]
    outside = seconds - training
    ratio = outside / outside[:, :1]
    lines = [
        f"start: {rounds} rounds of interleaved new processes; {os.cpu_count()} cores, load "
        f"before {busy:.1f}"
    ]
    for i, name in enumerate(COMMANDS):
        low, middle, high = np.percentile(ratio[:, i], [0, 50, 100])
        lines.append(
            f"  {name:25}  {np.median(outside[:, i]):5.2f} s  ratio {middle:.2f} ({low:.2f} to {high:.2f})"
        )
    at = list(COMMANDS).index(RUN)
    lines.append(
        f"  {RUN}: without its training, which took {np.median(training[:, at]):.2f} s more"
    )
    return "\n".join(lines)


def _round(folder: str, round_: int) -> list[tuple[float, float]]:
    """For each command the seconds of its process, and of its training; the order changes from round to
    round."""
    found = {}
    order = list(COMMANDS)
    for name in order[round_ % len(order) :] + order[: round_ % len(order)]:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *COMMANDS[name]],
            env={**os.environ, VARIABLE: folder},
            capture_output=True,
            check=True,
        )
        seconds = time.perf_counter() - began
        found[name] = seconds, json.loads(done.stdout)["seconds"] if name == RUN else 0.0
    return [found[name] for name in order]
