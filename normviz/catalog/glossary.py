"""Words of the trade, each with one sentence that a student reads once."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Registry


@dataclass(frozen=True)
class Word:
    """A word: its key, as it is written in a sentence, and what it means in one sentence."""

    key: str
    label: str
    sentence: str


WORDS: Registry[Word] = Registry(
    "word",
    (
        # The task and its loss
        Word(
            "token",
            "token",
            "A piece of text that the model reads as one: here a symbol or character.",
        ),
        Word(
            "loss",
            "loss",
            "How badly the model predicts the next token: minus the natural logarithm of the "
            "probability that it gave to the right one, averaged over tokens (cross-entropy).",
        ),
        Word(
            "nat",
            "nat",
            "The unit of the loss: at 1 nat the right token has a probability of 1/e, about 37 %, and "
            "at 0 nats the model is certain and right.",
        ),
        Word(
            "chance",
            "chance",
            "The loss of the best guess that ignores all earlier tokens: a model at chance has learned "
            "nothing from them.",
        ),
        Word(
            "floor",
            "floor",
            "The lowest loss that any model can reach, known where the task's own rules are random: "
            "what is left is chance alone.",
        ),
        # The model
        Word(
            "block",
            "block",
            "One layer of the transformer: attention, then a small network (FFN), each added to the "
            "residual stream.",
        ),
        Word("depth", "depth", "The number of blocks that follow one another."),
        Word(
            "stream",
            "residual stream",
            "The vector of each token on its way through all blocks: every block adds its output to it.",
        ),
        Word(
            "branch",
            "branch",
            "What is added to the residual stream: attention or FFN, with the norms that belong to it.",
        ),
        Word(
            "norm",
            "norm",
            "A layer that brings numbers to a standard size, for example by dividing them by their RMS.",
        ),
        Word(
            "placement",
            "placement",
            "Where the norms are in a block: before attention and FFN, after the addition, or elsewhere.",
        ),
        Word("pre", "Pre-LN", "The norm is at the start of each branch, and the stream has none."),
        Word("post", "Post-LN", "The norm is on the residual stream, after each addition."),
        Word(
            "final",
            "final norm",
            "A norm after the last block, before the model gives its prediction.",
        ),
        Word(
            "qk",
            "QK-norm",
            "A norm on the queries and keys inside attention, which limits how large logits can get.",
        ),
        Word(
            "logit",
            "attention logit",
            "The product of a query and a key: the larger it is, the more a token attends to another.",
        ),
        Word(
            "init",
            "initialisation",
            "How the weights are drawn before the first step: Xavier, the default here, draws each matrix "
            "evenly from a range that its height and width set.",
        ),
        Word(
            "gain",
            "constant",
            "A fixed number by which a placement multiplies the stream, a branch or its first weights.",
        ),
        Word(
            "width",
            "width",
            "How many numbers the residual stream has for each token: its channels.",
        ),
        # Training
        Word("step", "step", "One change of all weights, computed from one batch."),
        Word("batch", "batch", "The sequences of tokens that one step learns from."),
        Word(
            "rate",
            "learning rate",
            "How far a step moves the weights: too low and learning is slow, too high and it fails.",
        ),
        Word(
            "warmup",
            "warm-up",
            "The first steps of a run, in which the learning rate rises from near zero to its full value.",
        ),
        Word(
            "seed",
            "seed",
            "The number that a random generator starts from: the same seed gives the same weights and "
            "the same batches.",
        ),
        Word(
            "gradient",
            "gradient",
            "How fast the loss changes with each weight: a step moves the weights against it.",
        ),
        Word(
            "backward",
            "backward pass",
            "The way back from the loss through all blocks, which gives every weight its gradient.",
        ),
        Word(
            "diverged",
            "diverged",
            "A run diverged if a number in it became infinite or undefined, or if its loss stayed above "
            "100 times chance.",
        ),
        Word(
            "lane",
            "lane",
            "One of the models side by side, with its own settings, curves and verdict.",
        ),
        # Measures
        Word(
            "rms",
            "RMS",
            "Root mean square, the typical size of numbers: the root of the mean of their squares.",
        ),
        Word(
            "l2", "L2 norm", "The length of a vector: the root of the sum of its squared numbers."
        ),
        Word(
            "cosine",
            "token cosine",
            "How alike the vectors of different tokens are: 1 if they point the same way, 0 if they are "
            "unrelated.",
        ),
        Word(
            "entropy",
            "attention entropy",
            "How evenly attention is spread: 1 if over all visible tokens alike, 0 if on one of them.",
        ),
        Word(
            "jacobian",
            "Jacobian",
            "The table of the derivatives of all outputs of a layer by all its inputs: on the way back "
            "the gradient is multiplied by it.",
        ),
        Word("median", "median", "The middle one of the sorted values: half lie below it."),
        Word(
            "interval",
            "95 % interval",
            "A range that is computed so that it holds the true value in 95 of 100 such measurements.",
        ),
        # Maps
        Word("cell", "cell", "One field of a map: the runs with one combination of settings."),
        Word(
            "frontier",
            "frontier",
            "The line of a map: the largest learning rate at which half of the seeds train in its steps.",
        ),
        Word(
            "sensitivity",
            "sensitivity",
            "How much worse the loss gets, on average, when the learning rate is not the best one.",
        ),
        # Norms by hand, and their cost
        Word("feature", "feature", "One column of the table: one of the numbers of every token."),
        Word(
            "gamma",
            "γ",
            "The number by which a norm multiplies a feature at the end: it is learned.",
        ),
        Word("beta", "β", "The number that a norm adds to a feature at the end: it is learned."),
        Word("eps", "ε", "A small number under the root, so that a norm never divides by zero."),
        Word(
            "running",
            "running statistics",
            "Averages over the batches seen in training, which BatchNorm uses in eval mode.",
        ),
        Word(
            "eval",
            "eval mode",
            "The mode of a model that is used and no longer trained: BatchNorm then ignores the batch.",
        ),
        Word("padding", "padding", "Empty rows that make all sequences of a batch equally long."),
        Word(
            "kernel",
            "kernel",
            "One piece of work that PyTorch starts: each reads its numbers from memory and writes them "
            "back.",
        ),
    ),
)
