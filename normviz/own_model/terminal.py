"""A watch in a terminal: one screen of 80 x 24 that is drawn anew, or plain lines where the output is a pipe.

Nothing depends on colour. A bar that is a character longer is of a value twice as large.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import IO, Protocol

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..formats import number
from ..observed import Observed
from ..result import Result
from ..training.events import Diverged, Step

WIDTH, ROWS = 80, 12
"""Columns of the screen, and blocks that it lists; of more blocks it lists evenly spaced ones."""
SHOWN = ("grad_block", "stream_rms", "branch_ratio", "update_ratio", "attn_logit_max")
HEADS = ("grad", "stream", "branch", "update", "logit")
LINE_SECONDS = 2.0
BAR = 14
SPARK = "_.-=*#"


class Watched(Protocol):
    """What is shown of a watch: its settings, quantities, steps so far, and what ended it or is missing."""

    settings: Observed
    keys: tuple[str, ...]
    bad: Diverged | None

    @property
    def steps(self) -> Sequence[Step]:
        """The steps so far."""
        ...

    @property
    def missing_so_far(self) -> Sequence[str]:
        """What is not recorded of the steps so far, a sentence each."""
        ...

    @property
    def result_words(self) -> str:
        """What became of it, in words."""
        ...

    @property
    def recording(self) -> Result:
        """What was read so far."""
        ...

    def flush(self) -> None:
        """Read what the device has."""
        ...


class Terminal:
    """Shows a watch. `update` is called when there is something new, `end` once."""

    def __init__(self, watch: Watched, file: IO[str] | None = None) -> None:
        self.watch = watch
        self.file = file or sys.stdout
        self.console = Console(file=self.file, width=WIDTH if not self._is_terminal() else None)
        self.live: Live | None = None
        self.said_at = -math.inf

    def _is_terminal(self) -> bool:
        return bool(getattr(self.file, "isatty", lambda: False)())

    def update(self) -> None:
        """Draw the screen anew, or write a line if the last one is some seconds old."""
        if self._is_terminal():
            if self.live is None:
                self.live = Live(console=self.console, auto_refresh=False, transient=False)
                self.live.start()
            self.live.update(screen(self.watch), refresh=True)
        elif time.monotonic() - self.said_at >= LINE_SECONDS:
            self.said_at = time.monotonic()
            self.console.print(Text(line(self.watch)), soft_wrap=True)

    def end(self) -> None:
        """Draw or write the end."""
        if self.live is not None:
            self.live.update(screen(self.watch), refresh=True)
            self.live.stop()
            self.live = None
        else:
            self.console.print(Text(line(self.watch)), soft_wrap=True)
        for words in self.watch.missing_so_far:
            self.console.print(Text(words), soft_wrap=True)


def line(watch: Watched) -> str:
    """The newest step in one line."""
    steps = watch.steps
    if not steps:
        return f"{watch.settings.label}: no step yet"
    last = steps[-1]
    words = [f"step {last.step}", f"loss {_number(last.loss)}", f"lr {number(last.lr)}"]
    layers = next((step for step in reversed(steps) if step.layers is not None), None)
    if layers is not None and layers.layers is not None and "grad_block" in watch.keys:
        of = layers.layers[watch.keys.index("grad_block"), 1:]
        words.append(
            f"block gradient first {_number(of[0])} last {_number(of[-1])} (step {layers.step})"
        )
    if watch.bad is not None:
        words.append(watch.result_words)
    return "  ".join(words)


def screen(watch: Watched) -> Group:
    """At most 24 rows of 80 columns."""
    steps, settings = watch.steps, watch.settings
    head = f"{settings.label}: {settings.blocks} blocks at {settings.where}, width {settings.width}"
    parts: list[Text | Table] = [Text(head[: WIDTH - 1]), Text(line(watch)[: WIDTH - 1])]
    losses = np.array([step.loss for step in steps])
    parts.append(Text(f"loss {spark(losses, 60)}"))
    recorded = next((step for step in reversed(steps) if step.layers is not None), None)
    if recorded is not None and recorded.layers is not None:
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        shown = [(key, head) for key, head in zip(SHOWN, HEADS, strict=True) if key in watch.keys]
        table.add_column(f"block (step {recorded.step})")
        for _, name in shown:
            table.add_column(name, justify="right")
        table.add_column("grad, a char is x2")
        rows = {key: recorded.layers[watch.keys.index(key)] for key, _ in shown}
        gradient = rows.get("grad_block")
        blocks = np.unique(
            np.linspace(1, settings.blocks, min(settings.blocks, ROWS)).round().astype(int)
        )
        for block in blocks.tolist():
            bar = "" if gradient is None else _bar(gradient, block)
            cells = [_number(rows[key][block]) for key, _ in shown]
            table.add_row(str(block), *cells, bar)
        parts.append(table)
    parts += [Text(words[: WIDTH - 1]) for words in watch.missing_so_far[:3]]
    return Group(*parts)


def _bar(values: np.ndarray, block: int) -> str:
    """The value of a block beside the largest one: a character less is half as much."""
    finite = values[1:][np.isfinite(values[1:]) & (values[1:] > 0)]
    value = values[block]
    if not math.isfinite(value):
        return "" if math.isnan(value) else "not finite"
    if not len(finite) or value <= 0:
        return ""
    return "#" * max(1, BAR + round(math.log2(value / finite.max())))


def spark(values: np.ndarray, width: int) -> str:
    """Values as one line of characters from low to high; the mean of each piece of at most `width`."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ""
    pieces = [piece.mean() for piece in np.array_split(finite, min(width, len(finite)))]
    low, high = min(pieces), max(pieces)
    scale = (len(SPARK) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARK[round((piece - low) * scale)] for piece in pieces)


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return number(value) if math.isfinite(value) else "inf"
