"""One run under the name it has in a duel: what every export is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import RunConfig
from ..frames import Frames
from ..store import DONE, Run, Steps
from ..verdict import final_loss, of_seeds


@dataclass(frozen=True)
class Facts:
    """What a run said when it started, and how it ended.

    Losses in nats. `text` is the SHA-256 of the text a task reads. `bad_step` and `bad_layer` are
    where the run diverged (layer None: in no block alone), else None.
    """

    status: str
    verdict: str
    device: str | None = None
    threads: int | None = None
    parameters: int | None = None
    chance: float | None = None
    floor: float | None = None
    text: str | None = None
    bad_step: int | None = None
    bad_layer: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether the run reached its end, diverged or not."""
        return self.status in DONE


NOT_RUN = Facts("not run", "nobody has trained it here")


@dataclass(frozen=True)
class ExportLane:
    """A lane to take away: its name, its config, and what its run recorded, if it was run.

    `probes` are the keys of the rows of `steps.layers`. `repeats` are the runs of the same settings
    from other seeds, under the same name and without repeats of their own. With `hides_text` no file
    names the text that the run read.
    """

    name: str
    config: RunConfig
    facts: Facts = NOT_RUN
    probes: tuple[str, ...] = ()
    steps: Steps | None = None
    repeats: tuple[ExportLane, ...] = ()
    hides_text: bool = False

    @property
    def seeds(self) -> tuple[ExportLane, ...]:
        """All its runs, a seed each, its own first."""
        return self, *self.repeats

    @property
    def verdict(self) -> str:
        """What came of the lane, in words: of its run, or of all seeds."""
        if not self.repeats:
            return self.facts.verdict
        ended = [(one.facts.verdict, one.recorded.loss) for one in self.seeds if one.facts.is_done]
        return of_seeds(ended, len(self.seeds))

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as plain values; the hash of a text only where files may name it."""
        values = self.config.model_dump(mode="json")
        return {k: v for k, v in values.items() if k != "text" or not self.hides_text}

    @property
    def recorded(self) -> Steps:
        """The steps there are. Raises ValueError for a lane that was never run."""
        if self.steps is None:
            raise ValueError(
                f"lane {self.name!r} ({self.config.key}) has no run, so there is no data of it: "
                "train it first"
            )
        return self.steps

    @property
    def final_loss(self) -> float | None:
        """Mean loss of the last tenth of the steps, in nats; None before the first step."""
        if self.steps is None or not len(self.steps.loss):
            return None
        with np.errstate(over="ignore"):
            return final_loss(self.steps.loss)


def stored_lane(name: str, run: Run, frames: Frames, repeats: Sequence[Run] = ()) -> ExportLane:
    """A run of a store, finished or not, as it is now; `repeats` are its runs from other seeds."""
    facts = Facts(
        run.status, frames.verdict(run).sentence, run.device, run.threads, run.parameters,
        run.chance, run.floor, run.text, run.bad_step, run.bad_layer,
    )  # fmt: skip
    others = tuple(stored_lane(name, other, frames) for other in repeats)
    return ExportLane(name, run.config, facts, run.probes, frames.steps(run), others)
