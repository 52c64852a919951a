"""Made-up measurements that the tests of the norm cost's words, charts and page share."""

from __future__ import annotations

from normviz.studies.norm_cost.result import CostSetting, Measurement, Ratio, Row
from normviz.studies.norm_cost.variants import CASES, KEYS, REFERENCE

SAME = Ratio(1.0, 0.995, 1.005)


def made(ratios: dict[tuple[str, str], Ratio] | None = None, **changes: object) -> Measurement:
    """A measurement in which all are LayerNorm's equal but for `ratios`, by (variant, context)."""
    rows = tuple(
        Row(
            key, context, passes, 1e-3,
            Ratio(1, 1, 1) if key == REFERENCE else (ratios or {}).get((key, context), SAME),
            kernels=3, bytes=4_000_000, operations=7.0,
        )
        for context, passes in CASES
        for key in KEYS
    )  # fmt: skip
    fields = {
        "setting": CostSetting(),
        "when": "2031-02-03T04:05:06+00:00",
        "machine": "2 cores of a machine that is made up",
        "load": 0.1,
        "torch": "9.9",
        "rounds": 20,
        "rows": rows,
    }
    return Measurement(**{**fields, **changes})
