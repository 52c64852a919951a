"""What the public losses of a run tell of a private text, to an attacker who knows everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hosted_kit import turn_on
from torch.nn import functional as F

from normviz import RunConfig, train
from normviz.hosted import Refused
from normviz.model import draws, texts
from normviz.model.transformer import Transformer
from normviz.runs.store import Store
from normviz.runs.store.queue import enqueue
from normviz.training import text_privacy
from normviz.training.events import Step
from normviz.training.loop import begin

TEXT = (
    "whoever puts the norm behind the sum must bring a gentle rate, and a careful start, or watch the "
    "gradient fade on its way down. whoever puts it ahead may sleep at night; yet the stream then grows, "
    "quietly, with each block that it passes, and the last ones do little."
)
STRETCH = (len(TEXT) - len(TEXT) // 10 - 2) // 2
"""Half as many steps as the text has rows of three characters."""
TREND = 3
"""Powers of time that the attack allows for weights that move."""
BEAM = 16


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMVIZ_HOME", str(tmp_path))
    turn_on(monkeypatch)


def config(**settings: Any) -> RunConfig:
    """A run of the giver, a, on TEXT."""
    small = {"depth": 1, "width": 16, "seq_len": 2, "batch": 24, "steps": 500, "lr": 1e-30}
    key = texts.add(TEXT, giver="a")
    return RunConfig(task="text", text=key, **{**small, **settings})


def losses(of: RunConfig) -> list[float]:
    return [event.loss for event in train(of, record=()) if isinstance(event, Step)]


def recovered(of: RunConfig, seen: list[float]) -> float:
    """The share of characters that the attack reads from the losses `seen` of a run.

    It is generous to the attacker, who knows the length and the symbols of the text.
    """
    codes = texts.written(of).trained
    rows = len(codes) - of.seq_len
    batches = np.zeros((len(seen), rows))
    for step in range(len(seen)):
        offsets = draws.below(draws.generator("batch", of.data_seed, step), rows, of.batch)
        np.add.at(batches[step], offsets, 1)
    time = np.linspace(-1, 1, len(seen))[:, None] ** np.arange(1, TREND + 1) * of.batch
    sums = np.array(seen) * of.batch * of.seq_len
    of_rows = np.linalg.lstsq(np.hstack([batches, time]), sums, rcond=None)[0][:rows]
    return float((_read(of, of_rows) == codes).mean())


def _read(of: RunConfig, of_rows: np.ndarray) -> np.ndarray:
    """The text whose rows have these losses under the initial weights, by beam search."""
    model, task = begin(of)
    symbols, seq_len = task.vocabulary, of.seq_len
    found = np.stack(np.meshgrid(*[np.arange(symbols)] * seq_len, indexing="ij"), -1)
    found, cost = found.reshape(-1, seq_len), np.zeros(symbols**seq_len)
    for loss in of_rows:
        last = np.tile(np.arange(symbols), len(found))[:, None]
        tried = np.concatenate([np.repeat(found[:, -seq_len:], symbols, 0), last], 1)
        total = np.repeat(cost, symbols) + (_losses(model, tried) - loss) ** 2
        best = np.argsort(total)[:BEAM]
        found = np.concatenate([found[best // symbols], best[:, None] % symbols], 1)
        cost = total[best]
    return found[0]


def _losses(model: Transformer, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        given = torch.from_numpy(rows)
        logits = model(given[:, :-1]).transpose(1, 2)
        return F.cross_entropy(logits, given[:, 1:], reduction="none").sum(1).double().numpy()


def by_counts() -> float:
    """The share that somebody reads who knows the symbols' counts alone: the most frequent one each time,
    and what chance adds to it (three standard deviations)."""
    key = texts.add(TEXT, giver="a")
    codes = texts.written(RunConfig(task="text", text=key, seq_len=2)).trained
    share = np.bincount(codes).max() / len(codes)
    return float(share + 3 * np.sqrt(share * (1 - share) / len(codes)))


def refused(of: RunConfig, store: Store) -> str:
    with pytest.raises(Refused) as why:
        enqueue(store, [of], "a")
    assert store.queued() == []
    return str(why.value)


def test_two_tokens_a_step_tell_the_text_and_are_refused(store: Store) -> None:
    """Row by row: each loss is one entry of a table over all triples of symbols."""
    telling = config(batch=1, steps=1500)
    assert recovered(telling, losses(telling)) > 0.9
    assert refused(telling, store).startswith("a step reads 2 tokens (batch times seq_len)")


def test_larger_batches_of_weights_that_stand_still_tell_it_too_and_are_refused(
    store: Store,
) -> None:
    """By linear algebra, whatever the batch."""
    telling = config()
    assert recovered(telling, losses(telling)) > 0.9
    assert f"hardly moves the weights during {STRETCH} steps" in refused(telling, store)


def test_the_smallest_run_that_is_allowed_tells_no_more_than_symbol_counts(store: Store) -> None:
    least = text_privacy.MOVED / (STRETCH * 16) * 1.001
    quiet = config(lr=least)
    refused(quiet.replace(lr=0.99 * least), store)
    assert len(enqueue(store, [quiet], "a")) == 1
    assert recovered(quiet, losses(quiet)) < by_counts()


@pytest.mark.parametrize(
    "change",
    [
        {"softcap": 0.5}, {"tied": "on"}, {"parametrisation": "mup", "width": 64},
        {"optimizer": "muon", "clip": 1e-6},
    ],
    ids=str,
)  # fmt: skip
def test_what_holds_the_logits_still_is_counted(store: Store, change: dict[str, Any]) -> None:
    """Each halves the logits' moves at least, so what was just enough is not."""
    width = change.get("width", 16)
    least = config(lr=text_privacy.MOVED / (STRETCH * width) * 1.001, **{"width": width})
    assert len(enqueue(store, [least], "a")) == 1
    refused_for = least.replace(**change)
    with pytest.raises(Refused, match="hardly moves the weights"):
        enqueue(store, [refused_for], "a")
