"""Configs as JSON: every setting of every lane and the engine's version; `run` reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..config import ENGINE, WRITTEN, ConfigError, RunConfig
from ..limits import MAX_LANES
from ..links import FIELDS, cut
from ..observed import configured
from ..runs import Recording
from ..runs.lane import Lane

FORMS = (
    "what `normviz export --as json` writes, the object of `normviz run --json`, or the settings "
    "of one run"
)


@dataclass(frozen=True)
class Configs:
    """Lanes that were read, and notices for the reader."""

    lanes: tuple[RunConfig, ...]
    notices: tuple[str, ...] = ()


def write_configs(lanes: Sequence[Lane]) -> str:
    """JSON of {normviz, engine, lanes: [{name, run, config}]} with sorted keys, so equal lanes give
    equal text.

    A lane of several seeds also has `repeats`: [{run, init_seed, data_seed}], with the same settings.
    """
    listed = [
        {
            "name": lane.letter,
            "run": lane.key,
            "config": lane.config.model_dump(mode="json"),
            **(
                {"repeats": [_seeds(repeat) for repeat in lane.repeats[1:]]} if lane.repeats else {}
            ),
        }
        for lane in lanes
    ]
    whole = {"normviz": __version__, "engine": ENGINE, "lanes": listed}
    return json.dumps(whole, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _seeds(recording: Recording) -> dict[str, str | int]:
    config = configured(recording.config)
    return {"run": recording.key, "init_seed": config.init_seed, "data_seed": config.data_seed}


def read_configs(text: str) -> Configs:
    """The lanes of a file of configs. Raises ValueError with a sentence for any other content."""
    try:
        read = json.loads(text, object_pairs_hook=_once)
    except ConfigError:
        raise
    except RecursionError:
        raise ValueError(
            "the configs can't be read as JSON: its brackets are nested too deeply"
        ) from None
    except ValueError as error:
        raise ValueError(f"the configs can't be read as JSON: {error}") from None
    configs = _configs(read)
    if not configs or not all(isinstance(config, dict) for config in configs):
        raise ValueError(f"the JSON holds no config: allowed is {FORMS}")
    if len(configs) > MAX_LANES:
        raise ValueError(f"the JSON has {len(configs)} lanes, allowed are up to {MAX_LANES}")
    lanes = tuple(
        RunConfig(**{str(k): _frozen(v) for k, v in config.items()}) for config in configs
    )
    return Configs(lanes, tuple(_notices(read, configs)))


def _configs(read: Any) -> list[Any]:
    if not isinstance(read, dict):
        return []
    if "lanes" in read:
        lanes = read["lanes"]
        known = isinstance(lanes, list) and all(isinstance(lane, dict) for lane in lanes)
        return [lane.get("config") for lane in lanes] if known else []
    return [read.get("config", read)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON without duplicate names, of which Python would keep the last."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ConfigError(f"the JSON names {cut(name)} twice in one object: name it once")
        members[name] = value
    return members


def _frozen(value: Any) -> Any:
    """Lists as tuples, because learning-rate changes are pairs. No setting is nested deeper."""
    if not isinstance(value, list):
        return value
    return tuple(tuple(x) if isinstance(x, list) else x for x in value)


def _outer(read: dict[str, Any]) -> set[str]:
    """Names outside of the configs."""
    if "lanes" in read:
        return {*read}.union(*read["lanes"]) - {"config"} | ({"config"} & {*read})
    if "config" not in read:
        return set()
    own = {"steps"} if "verdict" in read else set()  # the number of steps in a result
    return {*read} - {"config"} - own


def _version(given: Any) -> str:
    return (
        f"version {given} of the engine"
        if isinstance(given, int)
        else "an engine that is no number"
    )


def _notices(read: dict[str, Any], configs: list[dict[str, Any]]) -> list[str]:
    notices = []
    given = read.get("engine", ENGINE)
    if given != ENGINE:
        notices.append(
            f"the configs come from {_version(given)} and this is version {ENGINE}: the same "
            "settings may give other numbers"
        )
    if unread := [name for name in ("config", *FIELDS) if name in _outer(read)]:
        notices.append(
            f"the JSON names {', '.join(unread[:5])} outside of the configs: not used, only settings "
            "inside a config are"
        )
    settings = [name for name in FIELDS if name in WRITTEN]
    missing = [name for name in settings if any(name not in config for config in configs)]
    if missing:
        named = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
        notices.append(f"the configs do not name {named}: today's defaults fill in")
    return notices
