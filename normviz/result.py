"""A recording for notebooks and the terminal: as JSON, tables, files and a script. Torch-free.

from normviz import RunConfig, train
from normviz.result import collect

result = collect(train(RunConfig(scheme="post")))
print(result.verdict.sentence)
result.to_parquet("post.zip")

A notebook shows a result as the player: `result` on the last line of a cell, or several side by side
with `Duel(pre, post)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import runs
from .catalog import PROBES
from .limits import MAX_LANES
from .observed import Observed, label
from .runs import Recording
from .runs.lane import LETTERS
from .runs.recording import SOMETIMES
from .training.events import Event

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .export.tables import Table
    from .runs.lane import Lane

FRAME_HEIGHT = 960
"""Pixels of the player in a notebook. A reader can drag its lower edge; what does not fit scrolls."""


class Result(Recording):
    """A recording as JSON, tables, files, a script and the player."""

    def __repr__(self) -> str:
        return f"Result({label(self.config)}: {self.verdict.sentence})"

    def as_json(self, at: Collection[int]) -> dict[str, Any]:
        """The result as plain JSON values, with the layers of some steps; numbers that are not finite
        are None."""
        n, bad = len(self.steps), self.first_bad
        return {
            "id": self.key,
            "config": self.config.model_dump(mode="json"),
            "status": self.status,
            "verdict": self.verdict.sentence,
            "first_bad": {"step": bad.step, "layer": bad.layer} if bad else None,
            "chance": finite(self.chance),
            "floor": self.floor,
            "first_loss": finite(self.losses[0]) if n else None,
            "final_loss": finite(self.final),
            "held_out_loss": None if self.held_out is None else finite(self.held_out),
            "steps": n if self.config.steps or isinstance(self.config, Observed) else 0,
            "clipped": self.clipped,
            "seconds": self.seconds,
            "steps_per_second": n / self.seconds if self.seconds else None,
            "losses": [finite(x) for x in self.losses],
            "held_out_losses": {
                step.step: finite(step.held_out) for step in self.steps if step.held_out is not None
            },
            "logit_rms": {
                step.step: finite(step.logit_rms)
                for step in self.steps
                if step.logit_rms is not None
            },
            "writings": [
                {"step": step, "prompt": w.prompt, "text": w.text, "attention": w.weights()}
                for step, w in self.writings
            ],
            "layers": [
                {"step": step, "layer": layer, "probe": probe, "value": finite(value)}
                for step, layer, probe, value in self._layer_rows(at)
            ],
        }

    def tidy(self) -> pd.DataFrame:
        """Long table: step, layer (0 embedding, 1..L blocks; empty for the whole model), probe, value.

        The whole-model probes are loss (nats), lr, grad_norm (L2, before clipping), and where they were
        measured held_out (nats, after the update) and logit_rms (RMS of the logits).
        """
        import pandas as pd

        rows = list[tuple[int, int | None, str, float]]()
        for step in self.steps:
            rows += [
                (step.step, None, name, getattr(step, name)) for name in ("loss", "lr", "grad_norm")
            ]
            some = {name: getattr(step, name) for name in SOMETIMES}
            rows += [(step.step, None, name, x) for name, x in some.items() if x is not None]
            rows += self._layer_rows((step.step,))
        return pd.DataFrame(rows, columns=["step", "layer", "probe", "value"]).astype(
            {"layer": "Int64", "value": "float64"}
        )

    def _layer_rows(self, at: Collection[int]) -> Iterator[tuple[int, int, str, float]]:
        """Step, layer, probe and value of what was recorded at some steps."""
        for step, probes in zip(self.steps.layer_steps.tolist(), self.steps.layers, strict=True):
            if step in at:
                for key, values in zip(self.probes, probes.tolist(), strict=True):
                    for layer in range(PROBES[key].first_layer, len(values)):
                        yield step, layer, key, values[layer]

    # What makes files imports pandas, PyArrow and Altair, so it is imported on use.

    def lane(self, name: str = "A") -> Lane:
        """The run as `normviz.export` reads it, under the name of a lane."""

        from .runs.lane import Lane

        return Lane(name, self.config, (self,))

    def tables(self) -> dict[Table, pa.Table]:
        """Arrow tables runs, steps, layers, probes and columns; `.to_pandas()` makes DataFrames."""

        from .export import tables

        return tables([self.lane()])

    def to_csv(self, path: str | Path) -> None:
        """Write all tables as CSV files, with their dictionary and the config, into one zip."""

        from .export import archive

        Path(path).write_bytes(archive([self.lane()], "csv"))

    def to_parquet(self, path: str | Path) -> None:
        """Write all tables as Parquet files, with their dictionary and the config, into one zip."""

        from .export import archive

        Path(path).write_bytes(archive([self.lane()], "parquet"))

    def to_json(self, path: str | Path) -> None:
        """Write the config, as `normviz run --config` reads it."""

        from .export import write_configs

        Path(path).write_text(write_configs([self.lane()]))

    def script(self) -> str:
        """Source of a script in plain PyTorch that repeats the run."""

        from .export import script

        return script(self.lane())

    def html(self) -> str:
        """The player as one HTML file, which replays the run without server and network.

        Raises ValueError where it has no steps.
        """
        return Duel(self).html()

    def _repr_html_(self) -> str:
        """The player, as a notebook shows it."""
        return Duel(self)._repr_html_()


class Duel:
    """Up to four results side by side: a notebook shows them in one player, with one cursor."""

    def __init__(self, *results: Result) -> None:
        """Raises ValueError for no result, or for more than four."""
        if not 1 <= len(results) <= MAX_LANES:
            raise ValueError(f"a duel has 1 to {MAX_LANES} results, got {len(results)}")
        self.results = results

    def __repr__(self) -> str:
        return f"Duel({self._words()})"

    def _words(self) -> str:
        """Each lane's name, placement and verdict."""
        named = zip(LETTERS, self.results, strict=False)
        return "; ".join(
            f"{name} {label(result.config)}: {result.verdict.sentence}" for name, result in named
        )

    def html(self) -> str:
        """The player as one HTML file, which replays the duel without server and network.

        Raises ValueError where a result has no steps.
        """
        from .export.replay import replay

        for result in self.results:
            if not len(result.steps):
                raise ValueError(
                    f"a result has no steps ({result.verdict.sentence}), so there is nothing to draw"
                )
        lanes = [result.lane(name) for name, result in zip(LETTERS, self.results, strict=False)]
        return replay(lanes)

    def _repr_html_(self) -> str:
        """The file in a frame of its own: it can neither change the notebook nor read from it."""
        try:
            page = self.html()
        except ValueError:
            return f"<p>{escape(self._words())}</p>"
        return (
            f'<iframe srcdoc="{escape(page)}" title="{escape(self._words())}" '
            'sandbox="allow-scripts allow-downloads allow-popups" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0; resize: vertical"></iframe>'
        )


def result_of(recording: Recording) -> Result:
    """A recording as a `Result`."""
    return Result.of(recording, recording.steps)


def collect(events: Iterable[Event]) -> Result:
    """Read a run's events to their end."""
    return result_of(runs.collect(events))


def finite(value: float) -> float | None:
    """The number, or None where it is not finite."""
    return float(value) if np.isfinite(value) else None
