"""measure(setting): rounds that time all variants, and the resulting measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import torch
from numpy.typing import NDArray

from ..training import find_device
from .contexts import calls
from .counts import arithmetic, count
from .machine import describe, load
from .paired import ratio
from .result import Counts, Measurement, Round, Row
from .setting import MAX_ROUNDS, MIN_ROUNDS, Setting
from .timing import Call, calibrate, one_round
from .variants import BOTH, CASES, KEYS, REFERENCE


def measure(setting: Setting) -> Iterator[Round | Measurement]:
    """Yields a Round before each round, and the Measurement at the end.

    Raises ConfigError if the GPU is missing.
    """
    device, before = find_device(setting.device), load()
    torch.set_num_threads(setting.threads)
    made = {key: calls(key, setting, device) for key in KEYS}
    table = [[made[key][case] for key in KEYS] for case in CASES]
    counted = {
        (key, *case): _counted(setting, key, case, made[key][case])
        for key in KEYS
        for case in CASES
    }
    repeats = [[calibrate(call, device) for call in group] for group in table]
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    one_round(table, repeats, device, rng)  # warms up and gives the time of a round
    each = time.perf_counter() - began
    total = int(np.clip(setting.seconds / each, MIN_ROUNDS, MAX_ROUNDS))
    found = []
    for done in range(total):
        yield Round(done, total, each * (total - done))
        found.append(one_round(table, repeats, device, rng))
    seconds = np.array(found).transpose(1, 2, 0)  # [cases, variants, rounds]
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    yield Measurement(
        setting=setting,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe(gpu),
        load=before,
        torch=torch.__version__,
        rounds=total,
        rows=tuple(_rows(seconds, counted)),
    )


def _counted(setting: Setting, key: str, case: tuple[str, str], call: Call) -> tuple[Counts, float]:
    """The counts of one call, and for a norm alone the formula's operations per number."""
    context, passes = case
    operations = 0.0
    if context == "alone":
        whole = arithmetic(key, setting.tokens, setting.width, passes == BOTH)
        operations = whole / (setting.tokens * setting.width)
    return count(call), operations


def _rows(
    seconds: NDArray[np.float64], counted: dict[tuple[str, str, str], tuple[Counts, float]]
) -> Iterator[Row]:
    """Rows from seconds [cases, variants, rounds]."""
    for (context, passes), group in zip(CASES, seconds, strict=True):
        reference = group[KEYS.index(REFERENCE)]
        for key, series in zip(KEYS, group, strict=True):
            counts, operations = counted[key, context, passes]
            yield Row(
                key, context, passes, float(np.median(series)), ratio(series, reference),
                counts.kernels, counts.bytes, operations,
            )  # fmt: skip
