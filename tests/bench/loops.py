"""Kinds of training loops: what `normviz.watch` records in each beside what a plain loop computes, and what
`missing` says. The rows are those of tests/own_model/test_watch_kinds.py, DDP and FSDP2 in two processes.

    python -m tests.bench.loops            # all rows
    python -m tests.bench.loops scaler     # those with a word in their name

The loss, the norm of the gradient of the first block, and the size of its update over that of its weights are
of the last recorded step; `off` is the largest relative difference of all steps and blocks. The exit code is
1 if a row has a wrong number and an empty `missing`.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

FOLDERS = (Path(__file__).parents[1] / "own_model", Path(__file__).parents[1] / "kits")
Pairs = dict[str, tuple[np.ndarray, np.ndarray]]


def main(words: list[str]) -> int:
    """Print the table; 1 if a number is wrong and `missing` is empty."""
    sys.path += map(str, FOLDERS)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    columns = ["loss", "true", "gradient", "true", "update", "true", "off"]
    print(f"{'loop':46}" + "".join(f"{name:>10}" for name in columns) + "  missing")
    wrong = 0
    for name, pairs, missing, near in (*_of_one_process(words), *_of_two_processes(words)):
        numbers = [float(_last(side)) for pair in pairs.values() for side in pair]
        off = {what: _apart(*pair) for what, pair in pairs.items()}
        row = "".join(f"{value:10.5f}" for value in numbers)
        print(
            f"{name:46}{row}{max(off.values()):10.1e}  {'; '.join(missing) or 'nothing'}",
            flush=True,
        )
        wrong += not missing and any(off[what] > max(near, 1e-4) for what in off)
    print(f"{wrong} rows have a wrong number and an empty `missing`")
    return int(wrong > 0)


def _of_one_process(words: list[str]) -> Iterator[tuple[str, Pairs, list[str], float]]:
    import test_watch_kinds as rows

    for name, kind in rows.KINDS.items():
        if _asked(name, words):
            it = rows.compared(kind)
            yield name, it.pairs(), it.watch.missing, kind.near


def _of_two_processes(words: list[str]) -> Iterator[tuple[str, Pairs, list[str], float]]:
    """Gradients are compared; a loss is of rank 0's half of the batch, and updates are of all steps alike."""
    import test_watch_kinds as rows
    import test_watch_others as others

    names = {"ddp": "DDP, two processes", "fsdp2": "FSDP2, two processes"}
    if not any(_asked(name, words) for name in names.values()):
        return
    truth = rows.Truth(rows.fresh(), None)
    optimizer, losses = torch.optim.SGD(truth.model.parameters(), lr=0.1), []
    for step in range(3):
        half = [x.chunk(2)[0] for x in rows.batch(step)]
        losses.append(truth.model(*half)[1].item())
        loss = truth.model(*rows.batch(step))[1]
        loss.backward()
        truth.gradient()
        optimizer.step()
        truth.step(loss.item())
        optimizer.zero_grad()
    with tempfile.TemporaryDirectory() as folder:
        for kind, seen in others.of_two_processes(Path(folder)).items():
            pairs = {
                "loss": (seen["loss"], np.array(losses)),
                "gradient": (seen["grad_block"][:, 1:], np.array(truth.gradients)),
                "update": (seen["update_ratio"][:, 1:], np.array(truth.updates)),
            }
            yield names[kind], pairs, seen["missing"], 1e-5


def _asked(name: str, words: list[str]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


def _last(values: np.ndarray) -> np.float64:
    """The number of the last step, of the first block."""
    return values[-1] if values.ndim == 1 else values[-1, 0]


def _apart(recorded: np.ndarray, true: np.ndarray) -> float:
    """The largest relative difference; inf if one alone is not measured."""
    if recorded.shape != true.shape or (np.isnan(recorded) != np.isnan(true)).any():
        return np.inf
    return float(np.nanmax(np.abs(recorded - true) / np.abs(true)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
