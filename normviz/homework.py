"""What a student hands in of an experiment, as a file; and what training its runs again shows. Torch-free.

Nothing in the file is signed: training the same settings again is the check. What was predicted and written
is the student's word.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from . import __version__
from .config import ENGINE
from .lessons.assignments import ASSIGNMENTS, Experiment, outcome
from .links import cut
from .result import result_of
from .runs import Recording
from .runs.verdict import final_loss

LONGEST = 2_000_000
"""Bytes of a file; nine runs of 200 steps have about 100,000."""
TOLERANCE = 0.1
"""Nats by which final losses may differ where another kind of machine or another engine computed them."""
TIMES = ("seconds", "steps_per_second")
"""What a run's record says that no second run repeats."""
LEFT_OUT = ("layers", "logit_rms", "writings")
"""What it has only at the steps whose layers are recorded, which differ between a duel and a cell."""


class HandedIn(BaseModel):
    """A file that was handed in. `runs` are what `normviz run --json` prints, each with its name, what was
    predicted of it, what was measured, and what computed it."""

    model_config = ConfigDict(strict=True)

    normviz: str
    engine: int
    assignment: str
    student: str
    question: str
    answer: str
    runs: list[dict[str, Any]]

    @property
    def experiment(self) -> Experiment:
        """The experiment of the file."""
        assignment = ASSIGNMENTS[self.assignment]
        assert isinstance(assignment, Experiment)
        return assignment

    @property
    def foretold(self) -> int:
        """Of how many runs the prediction was right."""
        return sum(run.get("predicted") == run.get("measured") for run in self.runs)


def hand_in(
    experiment: Experiment,
    student: str,
    answer: str,
    predictions: Mapping[str, str],
    runs: Mapping[str, Recording],
) -> str:
    """The file as JSON. `predictions` and `runs` are by the names of the runs."""
    whole = HandedIn(
        normviz=__version__,
        engine=ENGINE,
        assignment=experiment.key,
        student=student,
        question=experiment.question,
        answer=answer,
        runs=[record(name, run) | {"predicted": predictions[name]} for name, run in runs.items()],
    )
    return json.dumps(whole.model_dump(), indent=1, allow_nan=False) + "\n"


def record(name: str, run: Recording) -> dict[str, Any]:
    """The record of a run that reached its end, as it stands in a file but for its prediction."""
    started = run.started
    assert started is not None
    computed = {"engine": started.engine, "device": started.device, "threads": started.threads}
    result = {k: v for k, v in result_of(run).as_json(()).items() if k not in LEFT_OUT}
    whole = {"name": name, "measured": outcome(run), "computed": computed | _machine(), **result}
    return json.loads(json.dumps(whole))  # its keys are words, as in a file


def _machine() -> dict[str, str]:
    """What this machine is, as far as its kind decides how numbers are rounded."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": next(named, platform.processor()),
    }


def read(text: str) -> HandedIn:
    """A file that was handed in. Raises ValueError with a sentence for any other text, and for one of another
    version of the engine."""
    try:
        handed = HandedIn.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"it is no file that the page Assignments gives: {f'{where}: ' if where else ''}{first['msg']}"
        ) from None
    if not isinstance(ASSIGNMENTS[handed.assignment], Experiment):
        raise ValueError(f"the assignment {handed.assignment!r} has no runs to train again")
    if handed.engine != ENGINE:
        raise ValueError(
            f"its runs are of version {handed.engine} of the engine and this is version {ENGINE}: check it "
            f"with NormViz {cut(handed.normviz)}"
        )
    return handed


def differences(handed: HandedIn, again: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], int]:
    """What differs from the same runs trained again (their records by name), a sentence a run; and how many
    runs are the same bit for bit. Those that are neither are the same within TOLERANCE."""
    given = {str(run.get("name")): run for run in handed.runs}
    sentences, exact = list[str](), 0
    if len(handed.runs) != len(again) or set(given) != set(again):
        sentences.append(f"it has {len(handed.runs)} runs, the assignment has these {len(again)}: "
                         f"{', '.join(again)}")  # fmt: skip
    for name in filter(given.__contains__, again):
        there, here = given[name], again[name]
        first = _first(there, here)
        if first is None:
            exact += 1
        elif there.get("computed") == here["computed"] or (first := _beyond(there, here)):
            sentences.append(f"{name}: {first}")
    return sentences, exact


def _first(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """The first number or word of a record that the same run does not have here, as a sentence."""
    for key, value in here.items():
        if key in (*TIMES, "computed") or there.get(key) == value:
            continue
        return _says(key, there.get(key), value)
    return None


def _says(what: str, there: Any, here: Any) -> str:
    """Where two values of a record differ."""
    if isinstance(here, dict) and isinstance(there, dict):
        key = next(key for key in (*here, *there) if there.get(key) != here.get(key))
        return _says(f"{what} {key}", there.get(key), here.get(key))
    if isinstance(here, list) and isinstance(there, list):
        if len(there) != len(here):
            return f"the file has {len(there)} {what}, here there are {len(here)}"
        at = next(n for n, pair in enumerate(zip(there, here, strict=True)) if pair[0] != pair[1])
        return f"number {at} of its {what} is {cut(str(there[at]))} in the file and {here[at]} here"
    return f"{what.replace('_', ' ')} is {cut(str(there))} in the file and {cut(str(here))} here"


def _beyond(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """What of a run that another kind of machine computed differs by more than rounding explains."""
    for key in ("config", "measured", "status"):
        if there.get(key) != here[key]:
            return _says(key, there.get(key), here[key])
    own = _final(there.get("losses"))
    stated = math.nan if there.get("final_loss") is None else there["final_loss"]
    if own is None or not isinstance(stated, int | float):
        return "its losses are no numbers"
    if not np.isclose(own, stated, rtol=1e-9, equal_nan=True):
        return f"its final loss is {stated} in the file, and its losses there give {own}"
    ends = here["final_loss"]
    if here["status"] == "finished" and not abs(own - ends) <= TOLERANCE:
        return f"its final loss is {own:.4g} in the file and {ends:.4g} here"
    return None


def _final(losses: Any) -> float | None:
    """The final loss of what a file has as losses; None where these are no numbers."""
    if not isinstance(losses, Sequence) or any(
        not isinstance(loss, int | float | None) or isinstance(loss, bool) for loss in losses
    ):
        return None
    return final_loss(np.array([math.nan if loss is None else loss for loss in losses], float))
