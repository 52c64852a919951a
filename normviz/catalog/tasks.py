"""The tasks that models learn, as torch-free records. `normviz.model.data` makes their batches."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Registry

COPIED = 32
"""Kinds of tokens of the task copy."""
GRAPH_IMAGES = 500
"""Nodes of the graph of digits."""
ENTRIES, HOPS = 8, 4
"""Pointer chasing: entries of the table, in sequences of 16 tokens and more, and the most hops."""


@dataclass(frozen=True)
class TaskRecord:
    """A task: what a sequence is, and where its chance and floor come from.

    held_out        which sequences the held-out loss reads, or why there is none
    targets_hidden  whether no input of a sequence shows a target: attention to later positions does not
                    give the answers away
    classes         how many classes an example may have; 0 for tasks of tokens
    features        how many numbers an example has; 0 for tasks of tokens
    nodes           how many nodes the graph has whose nodes are the examples; 0 without a graph
    is_finite       whether training reads the same examples again and again, so that it can memorise them
    """

    key: str
    label: str
    sentence: str
    chance: str
    floor: str
    held_out: str
    targets_hidden: bool = False
    classes: int = 0
    features: int = 0
    nodes: int = 0
    is_finite: bool = False

    @property
    def unit(self) -> str:
        """The unit of its losses."""
        return "nats per example" if self.classes else "nats per token"


TASKS: Registry[TaskRecord] = Registry(
    "task",
    (
        TaskRecord(
            "markov",
            "Markov chain",
            "32 states, each with four successors of probability .55, .25, .15 and .05: the next "
            "token depends on the last one alone.",
            "entropy of the stationary distribution",
            "entropy rate of the chain",
            "sequences from draws of their own",
        ),
        TaskRecord(
            "copy",
            "Copy",
            "Random tokens (32 kinds), then the same tokens once more; the loss counts the second "
            "half alone.",
            "ln 32",
            "0: the second half is fully determined",
            "sequences from draws of their own",
        ),
        TaskRecord(
            "prose",
            "English prose",
            "Characters of the language reference that ships with every Python "
            "(pydoc_data.topics).",
            "entropy of the character frequencies",
            "unknown",
            "none: training reads all of the text",
            is_finite=True,
        ),
        TaskRecord(
            "prose_split",
            "English prose, a tenth held out",
            "Characters of the language reference that ships with every Python (pydoc_data.topics); its last "
            "tenth is never trained on.",
            "entropy of the character frequencies of the trained part",
            "unknown",
            "the last tenth of the text",
            is_finite=True,
        ),
        TaskRecord(
            "masked",
            "Masked Markov chain",
            "The Markov chain with 15 % of its positions replaced by a mask symbol; the loss counts the "
            "hidden states alone.",
            "entropy of the stationary distribution",
            "entropy of a hidden state, given the shown states that its position attends to",
            "sequences from draws of their own",
            targets_hidden=True,
        ),
        TaskRecord(
            "hops",
            "Pointer chasing",
            f"A random table of {ENTRIES} entries, then places in it; from each place follow the table 1 to "
            f"{HOPS} times, more often in later positions.",
            f"ln {ENTRIES}; the logarithm of half the sequence length, where that is less",
            "0: the table determines every answer",
            "sequences from draws of their own",
            targets_hidden=True,
        ),
        TaskRecord(
            "text",
            "Your own text",
            "Characters of a text that you paste or upload; its last tenth is never trained on.",
            "entropy of the character frequencies",
            "unknown",
            "the last tenth of the text",
            is_finite=True,
        ),
        TaskRecord(
            "digits",
            "Handwritten digits",
            "1,797 real images of 8 x 8 pixels, by 13 writers (UCI, as scikit-learn ships them); each is "
            "one of ten digits. A support vector machine reaches 97 % of the second half, trained on the "
            "first (an example of scikit-learn's).",
            "entropy of the trained digits' frequencies, about ln 10",
            "unknown",
            "the last fifth of the images, mostly by other writers",
            classes=10,
            features=64,
            is_finite=True,
        ),
        TaskRecord(
            "karate",
            "Karate club",
            "The 34 members of a karate club and their 78 friendships; the club split in two. A node has no "
            "features but its name. 4 nodes of each side are shown, drawn by the data seed. Zachary's own "
            "rule is right about all members but one.",
            "ln 2, as many nodes of each side are shown",
            "unknown",
            "the 26 other nodes of the same graph",
            classes=2,
            features=34,
            nodes=34,
            is_finite=True,
        ),
        TaskRecord(
            "digits_graph",
            "Graph of digits",
            "500 of the digits as a graph: an image is joined with the 5 that are nearest in its pixels. 5 "
            "images of each digit are shown, drawn by the data seed.",
            "ln 10, as many images of each digit are shown",
            "unknown",
            "the 450 other images of the same graph",
            classes=10,
            features=64,
            nodes=GRAPH_IMAGES,
            is_finite=True,
        ),
    ),
)
