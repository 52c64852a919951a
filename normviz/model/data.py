"""Tasks as deterministic batches: the batch of a step depends on the data seed and the step alone.

Chance is the loss of the best guess that ignores the context; the floor is the lowest reachable
loss, where it is known. Both are computed here, in nats, and not hard-coded.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from copy import copy
from typing import TypeAlias

import numpy as np
import torch

from .. import catalog
from ..catalog.tasks import COPIED, ENTRIES
from ..config import RunConfig
from . import batches, draws, texts
from .batches import IGNORED, Features
from .characters import entropy, trained
from .corpora import STATES, SUCCESSOR_P, Tokens, masked_floor, prose, stationary
from .graphs import GRAPHS
from .images import PIXELS, standardised

Inputs: TypeAlias = "Tokens | Features"


class Task(ABC):
    """Batches of (inputs, targets), both [B, T] int64; a target of -100 is not counted.

    A task whose examples have `features` instead of tokens has inputs [B, features] float32 and targets [B].

    `chance` and `floor` are losses in nats, `floor` None where unknown. `text` is the SHA-256 of the
    text that a task reads, or None for a synthetic one; `alphabet` has the character of each of its symbols.
    """

    vocabulary: int
    chance: float
    floor: float | None
    text: str | None = None
    alphabet: str = ""
    features: int = 0

    def __init__(self, config: RunConfig) -> None:
        self.batch_size, self.seq_len, self.seed = config.batch, config.seq_len, config.data_seed

    def batch(self, step: int) -> tuple[Inputs, Tokens]:
        """Inputs and targets [B, T] of a step, a function of (data seed, step)."""
        return self._make(draws.generator("batch", self.seed, step))

    def tensors(self, step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets [B, T] of a step, on a device."""
        return placed(self.batch(step), device)

    def held_out(self) -> tuple[Inputs, Tokens] | None:
        """Inputs and targets [B, T] of one batch that training never reads, the same for every seed; None
        where training reads everything."""
        return self._make(draws.generator("held out", 0))

    def held_out_tensors(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Inputs and targets [B, T] of the held-out batch, on a device."""
        batch = self.held_out()
        return None if batch is None else placed(batch, device)

    def last_held_out(self, batches: int) -> list[tuple[Inputs, Tokens]]:
        """What the held-out loss of the last step reads: so many batches, each as large as one of training;
        the held-out batch where there is no more than that, and none where training reads everything."""
        usual = self.held_out()
        if usual is None or batches == 1:
            return [] if usual is None else [usual]
        more = copy(self)
        more.batch_size *= batches
        inputs, targets = more.held_out() or usual
        if len(inputs) != more.batch_size:
            return [usual]
        rows = np.split(np.arange(more.batch_size), batches)
        return [(inputs[some], targets[some]) for some in rows]

    @abstractmethod
    def _make(self, rng: np.random.Generator) -> tuple[Inputs, Tokens]: ...


def placed(batch: tuple[Inputs, Tokens], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets on a device."""
    inputs, targets = (torch.from_numpy(x).to(device, non_blocking=True) for x in batch)
    return inputs, targets


class Markov(Task):
    """An order-1 chain: each of 32 states has four successors."""

    vocabulary = STATES

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.chance, self.floor = entropy(stationary()), entropy(SUCCESSOR_P)

    def _make(self, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        return batches.markov(rng, self.batch_size, self.seq_len)


class Masked(Markov):
    """The chain with some positions replaced by a mask symbol; their states are the targets."""

    vocabulary = STATES + 1

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.floor = masked_floor(self.seq_len, config.mask == "none")

    def _make(self, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        return batches.masked(rng, self.batch_size, self.seq_len)


class Hops(Task):
    """A random permutation as a table, position i holding its entry i, then random starts. The target of a
    start is where the table leads from it in 1 hop, of later ones in up to HOPS; the table is not counted.

    Pointer chasing: a transformer needs depth to compose hops (Sanford et al. 2024, arXiv:2402.09268).
    """

    floor = 0.0

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.vocabulary = min(ENTRIES, self.seq_len // 2)
        self.chance = float(np.log(self.vocabulary))

    def _make(self, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        return batches.hops(rng, self.batch_size, self.seq_len, self.vocabulary)


class Copy(Task):
    """Random tokens, then the same once more; only the second half is counted."""

    vocabulary = COPIED
    floor = 0.0

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.chance = float(np.log(self.vocabulary))

    def _make(self, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        return batches.copied(rng, self.batch_size, self.seq_len, self.vocabulary)


class Characters(Task):
    """Sequences of characters, from random offsets in `codes` [n]; `unread` [m] are held out."""

    floor = None
    codes: Tokens
    unread: Tokens | None = None

    def _make(self, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        return batches.pieces(rng, self.codes, self.batch_size, self.seq_len)

    def held_out(self) -> tuple[Tokens, Tokens] | None:
        """Inputs and targets [B, T] from places that divide the unread part evenly."""
        if self.unread is None:
            return None
        room = len(self.unread) - self.seq_len
        starts = np.arange(self.batch_size) * room // self.batch_size
        return batches.cut(self.unread, starts, self.seq_len)

    @property
    def opening(self) -> Tokens:
        """The tokens [T] that a model continues, of the held-out part, else of the whole text: what
        follows its first empty line, or where there is none, its start."""
        codes = self.codes if self.unread is None else self.unread
        empty = re.search(r"\n\n\s*", "".join(self.alphabet[i] for i in codes[:5000]))
        at = empty.end() if empty and empty.end() <= len(codes) - self.seq_len else 0
        return codes[at : at + self.seq_len]


class Prose(Characters):
    """The language reference that ships with Python."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.codes, self.alphabet, self.text = prose()
        self.vocabulary = len(self.alphabet)
        self.chance = entropy(np.bincount(self.codes) / len(self.codes))


class ProseSplit(Prose):
    """The same text; batches never read its last tenth."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.codes, self.unread = trained(self.codes), self.codes[len(trained(self.codes)) :]
        self.chance = entropy(np.bincount(self.codes) / len(self.codes))


class OwnText(Characters):
    """A visitor's own text, by its hash; batches never read its last tenth.

    Raises TextError where that text is not stored here, or is too short for the sequences.
    """

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        written = texts.written(config)
        self.codes, self.unread, self.text = written.trained, written.unread, written.sha256
        self.vocabulary, self.chance = written.symbols, written.entropy
        self.alphabet = written.alphabet


class Digits(Task):
    """Images of handwritten digits, drawn with replacement from those that are not held out."""

    floor = None
    vocabulary, features = 10, PIXELS

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.images, self.labels, self.trained = standardised()
        self.chance = entropy(np.bincount(self.labels[: self.trained]) / self.trained)

    def _make(self, rng: np.random.Generator) -> tuple[Features, Tokens]:
        return batches.examples(rng, self.images, self.labels, self.trained, self.batch_size)

    def held_out(self) -> tuple[Features, Tokens]:
        """All images that training never reads, the same for every seed."""
        return self.images[self.trained :], self.labels[self.trained :]


class Nodes(Task):
    """The nodes of a graph, all in each step. The loss counts the nodes that the data seed chose, as many
    of each class, and the held-out loss the others."""

    floor = None

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.graph = graph = GRAPHS[config.task]()
        self.vocabulary, self.features = int(graph.labels.max()) + 1, graph.features.shape[1]
        self.chance = float(np.log(self.vocabulary))
        self.shown = batches.shown(graph.labels, self.seed, graph.shown)

    def _make(self, rng: np.random.Generator) -> tuple[Features, Tokens]:
        del rng  # each step reads the whole graph
        return self.graph.features, np.where(self.shown, self.graph.labels, IGNORED)

    def held_out(self) -> tuple[Features, Tokens]:
        """The same graph, with the nodes as targets that training does not count."""
        return self.graph.features, np.where(self.shown, IGNORED, self.graph.labels)


TASKS: dict[str, type[Task]] = {
    "markov": Markov, "copy": Copy, "prose": Prose, "prose_split": ProseSplit, "masked": Masked,
    "hops": Hops, "text": OwnText, "digits": Digits, "karate": Nodes, "digits_graph": Nodes,
}  # fmt: skip


def features_of(config: RunConfig) -> int:
    """How many numbers an example of the config's task has; 0 for tasks of tokens."""
    return catalog.TASKS[config.task].features


def make_task(config: RunConfig) -> Task:
    """The task of a config. Raises TextError as `OwnText` does."""
    return TASKS[config.task](config)
