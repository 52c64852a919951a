"""How much less time a norm takes than LayerNorm, measured alternately while no run trains."""

from __future__ import annotations

from functools import cache

from ...config import RunConfig
from ...home import home
from ...runs.store import Store
from ..norm_cost.measure import measure as timed
from ..norm_cost.result import CostSetting, Measurement
from ..norm_cost.variants import CONTROL, LIBRARY, REFERENCE

SECONDS = 12.0
"""Of a measurement of all norms."""


def measure(config: RunConfig) -> dict[str, float]:
    """Percent of LayerNorm's time that the config's norm saves: in a whole training `step`, and
    `alone`, by itself forward and backward; with `hand_` before it, both written in elementary
    operations. LayerNorm gives the error of the measurement, and no numbers by hand.

    Of the rest only width, tokens a batch and device matter: the models are those of the norm cost.
    A seed is a repeat. Raises TaskError where a run trains for long.
    """
    tokens = config.batch * config.seq_len
    measurement = _measured(
        CostSetting(config.width, tokens, 1, config.device, SECONDS), config.init_seed
    )
    variant = CONTROL if config.norm == REFERENCE else config.norm
    saved = {
        context: 100 * (1 - measurement.row(variant, context).ratio.median)
        for context in ("step", "alone")
    }
    if variant == LIBRARY:
        for context in ("step", "alone"):
            rms, ln = (measurement.row(f"{norm}_hand", context) for norm in (LIBRARY, REFERENCE))
            saved[f"hand_{context}"] = 100 * (1 - rms.ratio.median / ln.ratio.median)
    return saved


@cache
def _measured(setting: CostSetting, _repeat: int) -> Measurement:
    """All norms are measured together, so those of one repeat share their measurement."""
    events = timed(setting, Store(home()))
    return next(event for event in events if isinstance(event, Measurement))
