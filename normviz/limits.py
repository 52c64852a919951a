"""The limits of a run as a whole, and of what people ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .catalog import FAMILIES, SCHEMES, STREAMS
from .catalog.choices import GATED
from .catalog.scheme import Place
from .native.library import unavailable

if TYPE_CHECKING:
    from .config import RunConfig


MAX_MINUTES = 30.0
"""Estimated minutes of one CPU core that a run may take by the eager engine. The tape would allow more,
but a link must open on every machine."""

MAX_GIB = 4.0
"""Estimated memory of a run in GiB."""

MAX_LANES = 4

SEEDS = 5
"""Runs of a lane after Repeat: itself and four with the next seeds."""

MAX_CELLS = 1000
"""Runs of one sweep: cells of its grid times seeds."""

MAX_SWEEP_SEEDS = 50

MAX_FILL_MINUTES = 30.0
"""Estimated minutes of all cores to fill the maps of a page."""

MAX_MAPS = 8
"""Maps side by side on one page."""

MAX_SWEEP_HOURS = 12.0
"""Estimated hours of one CPU core for all runs of a sweep together."""

MAX_TEXT_BYTES = 1_000_000
"""Bytes of a visitor's own text, in UTF-8 with one-character line ends."""

MAX_SYMBOLS = 512
"""Symbols that encode a text. With more distinct characters the rarest share the last symbol."""

HELD_OUT = 10
"""One character in so many, at the end of a text, is held out from training."""

MAX_TEXTS = 200
"""Texts that a data folder keeps. One more deletes a text of the network address or visitor that gave
most: the least recently used one that no open run reads and no run whose link was copied."""

MAX_TEXT_GIVERS = 200
"""Visitors recorded as a text's uploaders; one more removes the least recent one."""

TEXT_DIGITS = 32
"""Hexadecimal digits of a text's SHA-256 that identify it in configs and links."""

QUICK_SECONDS, QUICK_GIB = 0.4, 0.5
"""Up to these estimates, a measurement at initialisation needs no process of its own."""


class Speed(NamedTuple):
    """Seconds of an engine for a step of one block: for its calls, an operation of a matrix product, an
    entry of the attention matrices, and a number of the stream."""

    call: float
    operation: float
    score: float
    number: float


SPEEDS = {
    "eager": Speed(0.75e-3, 1 / 6.5e10, 1.1e-8, 0.0),
    "tape": Speed(0.0, 1 / 7.5e10, 2.6e-9, 2.4e-8),
}
"""Fitted on one thread of the development CPUs (2026-11), with widths 32 to 512, sequences of 16 to 128, and
batches of 8 to 64. The tape was between 0.70 and 1.18 times as fast as this says."""
SHARE_OF_CELL = 0.35
"""A time step of a recurrent layer takes this share of a block's calls."""
SECONDS_PER_LOGIT = 6e-9
"""Term of the output head. Other tasks have thirty to a hundred symbols: too few for a term."""


def parameters_per_block(config: RunConfig) -> int:
    """Weights of one block or recurrent layer, without norms and biases."""
    if FAMILIES[config.family].is_recurrent:
        return 2 * gates(config) * config.width**2
    matrices = 3 if config.activation in GATED else 2
    around = 2 * len(STREAMS[SCHEMES[config.scheme].streams].matrices)
    return (4 + around) * config.width**2 + matrices * config.hidden * config.width


def gates(config: RunConfig) -> int:
    """How many vectors a recurrent cell computes from its inputs."""
    return 4 if config.family == "lstm" else 1


def positions(config: RunConfig) -> int:
    """Positions of all examples of a step."""
    if config.task in GRAPH_NODES:
        return GRAPH_NODES[config.task]
    if config.family == "mlp":
        return config.batch
    return config.batch * (config.seq_len + (config.family == "vit"))


GRAPH_NODES = {"karate": 34, "digits_graph": 500}
FEATURES = {"digits": 64, "karate": 34, "digits_graph": 64}
"""How many numbers an example has, of tasks without tokens."""
EAGER_NORMS = frozenset({"seednorm", "gatednorm", "tapernorm", "batchnorm", "powernorm"})
"""Norms that the tape does not have."""
NEEDED = {"sinks": "off", "rounding": "off"}
"""Settings that the tape trains with; other values are eager's."""


def engine_here() -> tuple[str, str]:
    """The engine of this machine's runs, and a sentence why it is not the tape, or "".

    A run of which the tape does not have a part uses eager anyway, and its `Started` says why.
    """
    why = unavailable()
    return ("eager", why) if why else ("tape", "")


def engine_of(config: RunConfig) -> str:
    """The engine that trains a config on this machine's CPU."""
    c = config.placed()
    if c.family != "decoder":
        return "eager"
    scheme = SCHEMES[c.scheme]
    has_tape = scheme.streams == "one" and c.norm not in EAGER_NORMS
    has_tape &= not scheme.slots(Place(1, c.depth, "attention")).spectral
    has_tape &= all(getattr(c, name) == value for name, value in NEEDED.items())
    return engine_here()[0] if has_tape else "eager"


def estimated_seconds(config: RunConfig, engine: str | None = None) -> float:
    """Estimated seconds on one CPU thread, forward and backward, by an engine; by default by the one that
    trains the config on this machine."""
    family, tokens = FAMILIES[config.family], positions(config)
    speed = SPEEDS[engine or engine_of(config)]
    cells = config.seq_len * SHARE_OF_CELL if family.is_recurrent else 1.0
    scores = 0 if "heads" in family.lacks else tokens * config.seq_len * config.heads
    scores += tokens**2 * config.width / 64 if config.family == "gnn" else 0
    block = (
        speed.call * cells
        + 6 * parameters_per_block(config) * tokens * speed.operation
        + scores * speed.score
        + tokens * config.width * speed.number
    )
    calls = 0.0
    if config.optimizer == "muon":
        block += orthogonalisations(config) * speed.operation
        calls = MUON_CALLS
    step = config.depth * block + logits(config) * SECONDS_PER_LOGIT + calls
    return (config.steps + 1) * step


MUON_CALLS = 2.5e-3
"""Seconds of a step with Muon for the calls of its operations; fitted as `SPEEDS`."""


def orthogonalisations(config: RunConfig) -> int:
    """Operations by which Muon brings the singular values of a block's matrices close to 1, at each step."""
    d, h = config.width, config.hidden
    gates = 1 + (config.activation in GATED)
    square = 4 + 2 * len(STREAMS[SCHEMES[config.scheme].streams].matrices)
    matrices = [(d, d)] * square + [(min(d, h), max(d, h))] * (gates + 1)
    return sum(5 * (4 * short**2 * long + 2 * short**3) for short, long in matrices)


def logits(config: RunConfig) -> int:
    """Upper bound on the logits of one step if the task is a visitor's text; else 0."""
    return config.batch * config.seq_len * MAX_SYMBOLS if config.task == "text" else 0


def estimated_gib(config: RunConfig) -> float:
    """Estimated memory in GiB: weights, gradients, optimizer state, and activations for backward."""
    tokens = positions(config)
    weights = 5 * parameters_per_block(config)
    activations = tokens * config.width * (16 + 3 * config.ffn_ratio)
    scores = 4 * tokens * config.seq_len * config.heads
    history = SCHEMES[config.scheme].history if config.scheme in SCHEMES else 0
    kept = history * config.depth * tokens * config.width
    blocks = config.depth * (weights + activations + scores + kept)
    return 4 * (blocks + 3 * logits(config)) / 2**30


def characters_needed(seq_len: int) -> int:
    """Least number of characters to cut sequences from; as many as one sequence needs are held out."""
    return HELD_OUT * (seq_len + 1)


def is_quick(config: RunConfig) -> bool:
    """Whether it only measures at initialisation, with little memory and in about a second."""
    return (
        config.steps == 0
        and estimated_seconds(config) <= QUICK_SECONDS
        and estimated_gib(config) <= QUICK_GIB
    )


def over_budget(config: RunConfig) -> str | None:
    """A sentence if the run exceeds the budget, else None. The time is that of eager, so that a link is
    allowed on every machine or on none."""
    minutes = estimated_seconds(config, "eager") / 60
    if minutes > MAX_MINUTES:
        return (
            f"this run would take about {minutes:,.0f} minutes of one CPU core with PyTorch's operations "
            f"and at most {MAX_MINUTES:g} are allowed: lower steps, depth, width, seq_len or batch"
        )
    gib = estimated_gib(config)
    if gib > MAX_GIB:
        return (
            f"this run would take about {gib:,.1f} GiB of memory and at most {MAX_GIB:g} are "
            "allowed: lower depth, width, seq_len or batch"
        )
    return None
