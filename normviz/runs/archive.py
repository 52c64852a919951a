"""Recordings as .npz files, the format of shipped results: one run exactly, or cells of sweeps rounded.

A file of one run holds every number as it was. A file of cells holds the losses and gradient norms of
all steps as float32 (the trainer computes them as float32, so they are exact), and the layers of a few
steps, rounded to float32; learning rates follow from the settings. Both hold held-out losses and sizes of
logits where some were measured, and a file of one run what its model wrote.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalog import PROBES
from ..config import ENGINE, RunConfig
from ..training.events import Diverged, Started, Writing
from ..training.schedule import lr_at
from .recording import SOMETIMES, Recording, Steps

LAYERS = 4
"""The number of a cell's recorded steps that keep their layers, the first and the last among them."""
STARTED = ("device", "threads", "parameters", "chance", "floor", "text")
LOG = logging.getLogger(__name__)


def save(recording: Recording, path: Path) -> None:
    """Write one run to an .npz file, exactly. Raises OSError where the file can't be written."""
    steps = recording.steps
    about = {**_head(recording.probes), **_settings(recording), "bad": _bad(recording)}
    if recording.writings:
        about["writings"] = {step: writing.dumps() for step, writing in recording.writings}
    np.savez_compressed(
        path,
        about=np.array(json.dumps(about)),
        scalars=np.stack([steps.loss, steps.lr, steps.grad_norm], axis=1),
        layer_steps=steps.layer_steps,
        layers=steps.layers,
        **_sometimes([steps]),
    )


def save_cells(cells: Iterable[Recording], path: Path, layers_at: int = LAYERS) -> None:
    """Write cells of sweeps to an .npz file, each with the layers of at most `layers_at` recorded steps."""
    about, scalars, layers, all_steps = [], [], [], list[Steps]()
    shared: tuple[str, ...] = ()  # the probes of the first cell; another one names its own
    for cell in cells:
        shared = shared or cell.probes
        steps = cell.steps.with_layers_of(_few(len(cell.steps.layer_steps), layers_at))
        about.append(
            {
                "key": cell.key,
                **_settings(cell),
                "message": cell.message,
                "status": cell.status,
                "seconds": round(cell.seconds, 2),
                "bad": _bad(cell),
                "steps": len(steps),
                "layer_steps": steps.layer_steps.tolist(),
                **({} if cell.probes == shared else {"probes": cell.probes}),
            }
        )
        scalars.append(np.stack([steps.loss, steps.grad_norm]).astype(np.float32))
        layers.append(steps.layers.astype(np.float32).ravel())
        all_steps.append(steps)
    np.savez_compressed(
        path,
        about=np.frombuffer(json.dumps({**_head(shared), "runs": about}).encode(), np.uint8),
        scalars=np.concatenate(scalars, axis=1),
        layers=np.concatenate(layers),
        **_sometimes(all_steps, np.float32),
    )


def load(
    path: Path, known: Collection[str] = (), only: Collection[str] | None = None
) -> Iterator[Recording]:
    """The recordings of a file except those with a key in `known`; with `only`, of a file of cells, those
    with one of these keys. A file of another version of the engine, or with probes that this release does
    not have, gives none and a sentence in the log. Raises OSError where the file can't be read."""
    with np.load(path) as data:
        about = _about(data)
        if not _fits(about, path):
            return
        if "runs" in about:
            yield from _cells(about, data, known, only)
        elif (config := RunConfig(**about["config"])).key not in known:
            loss, lr, norm = data["scalars"].T
            layers = data["layer_steps"], data["layers"]
            written = {int(at): Writing.loads(x) for at, x in about.get("writings", {}).items()}
            writing = np.array([written.get(i) for i in range(len(loss))], object)
            some = _read_sometimes(data)
            steps = Steps(np.arange(len(loss)), loss, lr, norm, *layers, **some, writing=writing)
            status = "diverged" if about["bad"] else "finished"
            yield _recording(about, config, steps, status, about["probes"])


def keys_of(path: Path) -> frozenset[str]:
    """The keys of a file's cells; none where `load` gives none."""
    with np.load(path) as data:
        about = _about(data)
    return frozenset(cell["key"] for cell in about["runs"]) if _fits(about, path) else frozenset()


def _cells(
    file: dict[str, Any],
    data: Mapping[str, Any],
    known: Collection[str],
    only: Collection[str] | None,
) -> Iterator[Recording]:
    scalars, layers = (data[name].astype(np.float64) for name in ("scalars", "layers"))
    sometimes = _read_sometimes(data)
    at = layers_at = 0
    for about in file["runs"]:
        config = RunConfig(**about["config"])
        n, m = about["steps"], len(about["layer_steps"])
        probes = about.get("probes", file["probes"])
        shape = (m, len(probes), config.rows + 1)
        loss, norm = scalars[:, at : at + n]
        own = layers[layers_at : layers_at + int(np.prod(shape))].reshape(shape)
        some = {name: values[at : at + n] for name, values in sometimes.items()}
        at, layers_at = at + n, layers_at + own.size
        if about["key"] in known or (only is not None and about["key"] not in only):
            continue
        lr = np.array([lr_at(config, step) for step in range(n)], dtype=np.float64)
        layer_steps = np.array(about["layer_steps"], dtype=np.int64)
        steps = Steps(
            np.arange(n), loss, lr, norm, layer_steps, own, **some, writing=np.full(n, None)
        )
        yield _recording(about, config, steps, about["status"], probes)


def _sometimes(runs: Sequence[Steps], dtype: type[np.floating[Any]] = np.float64) -> dict[str, Any]:
    """The numbers that not every step has as entries of a file; none that no step has."""
    arrays = {
        name: np.concatenate([np.empty(0), *(getattr(steps, name) for steps in runs)])
        for name in SOMETIMES
    }
    return {name: x.astype(dtype) for name, x in arrays.items() if not np.isnan(x).all()}


def _read_sometimes(data: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    return {name: data[name].astype(np.float64) for name in SOMETIMES if name in data}


def _about(data: Mapping[str, Any]) -> dict[str, Any]:
    """A file's description of its runs: stored as text for one run, as bytes for cells."""
    about = data["about"]
    return json.loads(str(about) if about.dtype.kind == "U" else about.tobytes())


def _fits(about: dict[str, Any], path: Path) -> bool:
    """Whether this release reads the file; if not, the log says why."""
    if (engine := about["engine"]) != ENGINE:
        why = f"version {engine} of the engine made it and this is version {ENGINE}"
    elif unknown := set(about["probes"]) - set(PROBES.keys()):
        why = f"it has quantities that this release does not know: {', '.join(sorted(unknown))}"
    else:
        return True
    LOG.warning("%s is left out: %s", path, why)
    return False


def _head(probes: Sequence[str]) -> dict[str, Any]:
    return {"engine": ENGINE, "probes": probes}


def _settings(recording: Recording) -> dict[str, Any]:
    """The settings of a run and the values of its `Started` event."""
    assert recording.started is not None
    return {
        "config": recording.config.model_dump(mode="json"),
        **{name: getattr(recording.started, name) for name in STARTED},
        "computed_by": [recording.started.engine, recording.started.why],
    }


def _bad(recording: Recording) -> list[Any] | None:
    bad = recording.first_bad
    return [bad.step, bad.layer, bad.where] if bad else None


def _recording(
    about: dict[str, Any],
    config: RunConfig,
    steps: Steps,
    status: Any,
    probes: Sequence[str],
) -> Recording:
    return Recording(
        config, Started(config, *(about[name] for name in STARTED), *about["computed_by"]), status,
        Diverged(*about["bad"]) if about["bad"] else None, about.get("message"),
        0.0, about.get("seconds", 0.0), tuple(probes), steps=steps,
    )  # fmt: skip


def _few(n: int, most: int) -> list[int]:
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})
