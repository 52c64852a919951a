"""A watch in a notebook: the player in a frame, to which the notebook posts numbers while the model trains.

Two outputs: the frame, and a short script that is replaced at a bounded rate and posts all numbers so far.
When a cell that trained has ended, and when the watch ends, the frame becomes a replay and the script goes: a
saved notebook then shows the run without a kernel.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from ..observed import label
from ..player import in_script, posted, posted_page
from ..result import FRAME_HEIGHT
from ..runs import Recording, Steps
from ..runs.lane import Lane
from ..training.events import Step
from .terminal import Watched

SHARE = 0.02
"""The updates take at most this share of the time."""
LONGEST = 10.0
"""Seconds between two updates at most."""
FRAME = (
    '<iframe id="{name}" srcdoc="{page}" title="{title}" sandbox="allow-scripts allow-downloads" '
    'style="width: 100%; height: {height}px; border: 0; resize: vertical"></iframe>'
)
POST = """<script>(() => {{
  const numbers = {numbers}, frame = document.getElementById("{name}");
  const post = () => frame?.contentWindow?.postMessage({{ normviz: numbers }}, "*");
  post();
  frame?.addEventListener("load", post);
}})();</script>"""


class Notebook:
    """Shows a watch in the outputs of a cell. `display` makes an output; IPython's does by default."""

    def __init__(self, watch: Watched, display: Callable[..., Any] | None = None) -> None:
        from IPython.core.getipython import get_ipython

        if display is None:
            from IPython.display import display
        assert display is not None
        self.watch = watch
        self.name = f"normviz-{watch.settings.run}"
        settings = watch.settings
        self.first = "grad_block" if "grad_block" in watch.keys else watch.keys[0]
        self.page = FRAME.format(
            name=self.name,
            page=escape(posted_page(settings, self.first)),
            title=escape(settings.label),
            height=FRAME_HEIGHT,
        )
        self.frame: Any = display(self._html(self.page), raw=True, display_id=True)
        self.script: Any = display(self._html(""), raw=True, display_id=True)
        self.at, self.gap = -LONGEST, 0.0
        self.is_live, self.shown, self.posts = True, 0, 0
        ones = replace(watch.recording, steps=_one_step(watch))
        self._numbers(ones, watch.keys)  # the first charts take longest
        self.shell = get_ipython()
        here = weakref.ref(self)  # the shell must not keep the watch alive

        def rested(result: object = None) -> None:
            if (it := here()) is not None:
                it.rest()

        self.rested = rested
        if self.shell is not None:
            self.shell.events.register("post_run_cell", rested)

    def _html(self, text: str) -> dict[str, str]:
        """An output: HTML, and words for what shows none."""
        return {"text/html": text, "text/plain": repr(self.watch) if text else ""}

    def update(self) -> None:
        """Post the numbers so far, if the last time is long enough ago."""
        if time.monotonic() - self.at < self.gap or not len(self.watch.steps):
            return
        began = time.thread_time()
        if not self.is_live:
            self.frame.update(self._html(self.page), raw=True)
            self.is_live = True
        self.script.update(self._html(self._post()), raw=True)
        self.posts += 1
        self.at = time.monotonic()
        self.gap = min(LONGEST, max(1.0, (time.thread_time() - began) / SHARE))

    def _post(self) -> str:
        recording = self.watch.recording
        if not len(recording.steps.layer_steps):
            return ""
        # The first charts are there sooner without those of the quantities that nobody looks at yet.
        keys = recording.probes if self.posts else (self.first,)
        numbers = in_script(self._numbers(recording, keys))
        return POST.format(numbers=numbers, name=self.name)

    def _numbers(self, recording: Recording, keys: Sequence[str]) -> dict[str, Any]:
        return posted(
            Lane(f"A  {label(recording.config)}", recording.config, (recording,)), keys, live=True
        )

    def rest(self) -> None:
        """After a cell that trained: put a replay in place of the frame."""
        self.watch.flush()
        if self.shown != (shown := len(self.watch.steps)):
            self.shown, self.is_live = shown, False
            self.frame.update(self._html(self.watch.recording._repr_html_()), raw=True)
            self.script.update(self._html(""), raw=True)

    def end(self) -> None:
        """Put the finished replay in place of the frame."""
        self.shown = -1
        self.rest()
        if self.shell is not None:
            self.shell.events.unregister("post_run_cell", self.rested)
            self.shell = None


def _one_step(watch: Watched) -> Steps:
    """A step of ones, to draw once before there is any."""
    ones = np.ones((len(watch.keys), watch.settings.blocks + 1))
    return Steps.of([Step(0, 1.0, 0.0, 1.0, ones)], watch.settings.blocks)
