"""What these benchmarks share: a plain page, a browser, rounds, and tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import TypeVar

import psutil
from browser_kit import chromium
from playwright.sync_api import Page

from normviz.cli.bench_server import serving

SIZE = "headless Chromium at 1280 x 900"
T = TypeVar("T")


def plain() -> AbstractContextManager[tuple[str, psutil.Process]]:
    """The plain Streamlit page to compare ours with; yields its address and its process."""
    page = str(Path(__file__).with_name("plain_page.py"))
    command = [sys.executable, "-m", "streamlit", "run", page, "--server.headless=true"]
    return serving([*command, "--server.address=127.0.0.1"], "--server.port")


@contextmanager
def visited() -> Iterator[Page]:
    """A blank page in a new browser."""
    with chromium() as browser:
        size = {"width": 1280, "height": 900}
        yield browser.new_page(viewport=size, reduced_motion="no-preference")


def interleaved(kinds: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """What each kind gives in each round, one kind after another; the order turns from round to round."""
    found: dict[str, list[T]] = {name: [] for name in kinds}
    names = list(kinds)
    for k in range(rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            found[name].append(kinds[name]())
    return found


def median_range(values: Sequence[float], digits: int) -> str:
    """Median, lowest and highest."""
    middle, low, high = (f"{x:.{digits}f}" for x in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells; the first row is the head, and the first column is aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{row[0]:{widths[0]}}  "
        + "  ".join(f"{cell:>{n}}" for cell, n in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )


def medians(units: Mapping[str, str], found: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A row for each quantity, named with its format, and a column for each kind: medians of its rounds."""
    rows = [
        (name, *(unit.format(median(one[name] for one in rounds)) for rounds in found.values()))
        for name, unit in units.items()
    ]
    return table([("", *found), *rows])


def cores() -> str:
    """How many cores there are, and how busy they are."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
