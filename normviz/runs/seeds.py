"""The same settings from the next seeds: what repeats of a lane, and of a cell of a map, are."""

from __future__ import annotations

from ..config import RunConfig


def seeded(config: RunConfig, seeds: int) -> list[RunConfig]:
    """The settings from their own seeds and the next ones. Both seeds move together, so that what is
    compared (the lanes of a duel, the cells of a map) still sees the same batches. Raises ConfigError
    where there is no next seed."""
    return [
        config.replace(init_seed=config.init_seed + k, data_seed=config.data_seed + k)
        for k in range(seeds)
    ]


def named(config: RunConfig) -> str:
    """The seeds of a run, in words."""
    if config.init_seed == config.data_seed:
        return f"seed {config.init_seed}"
    return f"init seed {config.init_seed}, data seed {config.data_seed}"
