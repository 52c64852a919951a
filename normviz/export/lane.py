"""One run under the name it has in a duel: what every export is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..duel.outcome import DuelOutcome, outcome
from ..observed import Observed, Settings, label
from ..runs import Recording
from ..runs.frames import Frames
from ..runs.store import Run
from ..runs.verdict import of_seeds


@dataclass(frozen=True)
class ExportLane:
    """A lane to take away: its name, its config, and what its run recorded, if it was run.

    `repeats` are the runs of the same settings
    from other seeds, under the same name and without repeats of their own. With `hides_text` no file
    names the text that the run read.
    """

    name: str
    config: Settings
    recording: Recording | None = None
    repeats: tuple[ExportLane, ...] = ()
    hides_text: bool = False

    @property
    def seeds(self) -> tuple[ExportLane, ...]:
        """All its runs, a seed each, its own first."""
        return self, *self.repeats

    @property
    def verdict(self) -> str:
        """What came of the lane, in words: of its run, or of all seeds."""
        if self.repeats:
            runs = [one.recording for one in self.seeds if one.recording and one.is_done]
            return of_seeds([it.result for it in runs], len(self.seeds))
        return self.recording.verdict.sentence if self.recording else "nobody has trained it here"

    @property
    def key(self) -> str:
        """Name of its result."""
        return self.config.key

    @property
    def is_done(self) -> bool:
        """Whether its run reached its end, diverged or not."""
        return self.recording is not None and self.recording.is_done

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as plain values; the hash of a text only where files may name it."""
        values = self.config.model_dump(mode="json")
        return {k: v for k, v in values.items() if k != "text" or not self.hides_text}

    @property
    def recorded(self) -> Recording:
        """What its run recorded. Raises ValueError for a lane that was never run."""
        if self.recording is None:
            raise ValueError(
                f"lane {self.name!r} ({self.config.key}) has no run, so there is no data of it: "
                "train it first"
            )
        return self.recording

    @property
    def final_loss(self) -> float | None:
        """Mean loss of the last tenth of the steps, in nats; None before the first step."""
        return self.recording.final if self.recording and len(self.recording.steps) else None

    @property
    def device(self) -> str | None:
        """Where it was trained; None where it was not."""
        started = self.recording.started if self.recording else None
        return started.device if started else None

    @property
    def engines(self) -> list[str]:
        """The engine of each of its runs, "tape" or "eager"; none of a run that has not begun."""
        recordings = [one.recording for one in self.seeds if one.recording]
        return [
            it.started.engine
            for it in recordings
            if it.started and not isinstance(it.config, Observed)
        ]


def stored_lane(name: str, run: Run, frames: Frames, repeats: Sequence[Run] = ()) -> ExportLane:
    """A run of a store, finished or not, as it is now; `repeats` are its runs from other seeds."""
    others = tuple(stored_lane(name, other, frames) for other in repeats)
    return ExportLane(name, run.config, frames.recording(run), others)


def came_out(lanes: Sequence[ExportLane]) -> DuelOutcome:
    """What came out of these lanes over all their seeds, compared with the first."""
    runs = {
        f"{lane.name} {label(lane.config)}": [one.recording for one in lane.seeds if one.recording]
        for lane in lanes
    }
    return outcome(runs)
