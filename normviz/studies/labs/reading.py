"""One reading of a lab, as a task of a process of its own."""

from __future__ import annotations

import math
import time
from importlib import import_module

from ...config import ConfigError, RunConfig
from ...execution import TaskError
from ...runs.store import StoreError


def lab_numbers(name: str, canonical: str) -> tuple[dict[str, float], float]:
    """The numbers that the lab `name` measures of a config, by name, and the CPU seconds that it took.

    Raises TaskError for what can't be measured.
    """
    lab = import_module(f"normviz.studies.labs.{name}")
    try:
        began = time.process_time()
        values = lab.measure(RunConfig.model_validate_json(canonical))
    except (ConfigError, StoreError, ValueError) as error:
        raise TaskError(str(error)) from None
    finite = {key: v if math.isfinite(v) else math.nan for key, v in values.items()}
    return finite, time.process_time() - began
