"""What placements of residual stacks differ in, in words, from their records: in norms, and in all else."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import get_args

from ...catalog import CONSTRAINTS, NORMS, SCHEMES, STREAMS
from ...catalog.scheme import BRANCHES, NORMED, Gain, Matrix, Place, Scheme, Slots
from ...formats import listed, number

WIDTH = 64
"""The width at which the initial sizes of embeddings are compared."""
BESIDE = {
    "stream_gain": "scales the stream before it splits by {}",
    "embed_gain": "adds the embedding times {}",
    "input_gain": "scales a branch's input by {}",
    "qk_gain": "scales queries and keys by {}",
    "hidden_gain": "scales the FFN's hidden layer by {}",
    "skip_gain": "scales the skip path by {}",
    "block_gain": "adds what entered the block times {}",
    "branch_gain": "scales a branch's output by {}",
    "main_gain": "scales the sum by {}",
    "gamma_in": "starts the norms before a branch at a scale of {}",
    "gamma_out": "starts the norms after a branch at a scale of {}",
    "first_value": "takes a share of {} of attention's values from the first block",
    "mix": "mixes skip path and branch in learned shares",
    "head_gain": "learns a gain for each head",
    "unit_qk": "gives queries and keys one length",
    "spectral": "divides its matrices by their largest singular value",
    "branch_reads": "has attention and FFN side by side",
    "shares_norm": "has one norm for both",
    "shifts": "learns shifts",
    "gate": "scales the stream by a learned gate",
}
"""What a sublayer does beside norming, by the slot; {} is its value."""
Trait = tuple[Hashable, str]
"""What a placement has, to compare it with others', and in words."""


def beside(keys: Sequence[str], depth: int) -> list[list[str]]:
    """What each placement of stacks of this depth has beside norms that not all have so, in words; of one
    alone all of it."""
    every = [_beside(SCHEMES[key], depth) for key in keys]
    return _differing(every if len(every) > 1 else [*every, {}])[: len(every)]


def moved(keys: Sequence[str], depth: int) -> str:
    """A sentence on whether placements of stacks of this depth differ in norms alone."""
    if any(beside(keys, depth)):
        return "Not only the norm moved."
    schemes = [SCHEMES[key] for key in dict.fromkeys(keys)]
    more = [
        f"{scheme.label} {listed(words)}"
        for scheme, words in zip(schemes, _differing([*map(_ends, schemes)]), strict=True)
        if words
    ]
    counts = {sum(_norms(scheme, depth)) for scheme in schemes}
    first = "Only the norm moved" if len(counts) == 1 else "Only the norms differ"
    return f"{'; '.join([first, *more])}."


def _differing(all_traits: Sequence[dict[str, Trait]]) -> list[list[str]]:
    """Of each its traits, in words, that others do not have so."""
    names = [
        name
        for name in dict.fromkeys(name for traits in all_traits for name in traits)
        if len({traits.get(name, (None, ""))[0] for traits in all_traits}) > 1
    ]
    return [[traits[name][1] for name in names if name in traits] for traits in all_traits]


def _norms(scheme: Scheme, depth: int) -> Iterator[int]:
    """The norms of each sublayer."""
    for place in _places(depth):
        slots = scheme.slots(place)
        yield sum(getattr(slots, name) for name in NORMED) - slots.shares_norm


def _ends(scheme: Scheme) -> dict[str, Trait]:
    """The norms outside of the blocks that `in_a_sublayer` does not name."""
    embedding = scheme.embed_norm and not scheme.in_a_sublayer
    ends = {"norms the embedding": embedding, "has a final norm": scheme.final_norm}
    return {words: (True, words) for words, there in ends.items() if there}


@cache
def _beside(scheme: Scheme, depth: int) -> dict[str, Trait]:
    """What a placement has beside norms."""
    places = _places(depth)
    sublayers, plain = [scheme.slots(place) for place in places], Slots()
    traits: dict[str, Trait] = {}
    for name, words in BESIDE.items():
        values = tuple(getattr(slots, name) for slots in sublayers)
        if any(value != getattr(plain, name) for value in values):
            traits[name] = values, words.format(_said(values))
    if sublayers[0].mix != "sum":  # the gain is in the shares
        traits["mix"] = (
            (traits["mix"][0], traits.pop("branch_gain", (None, ""))[0]),
            traits["mix"][1],
        )
    sizes = tuple(scheme.weight_gain(p, matrix) for p in places for matrix in get_args(Matrix))
    if set(sizes) != {1.0}:
        size = "smaller" if max(sizes) <= 1 else "larger" if min(sizes) >= 1 else "scaled"
        traits["weight_gain"] = sizes, f"starts with {size} matrices"
    if scheme.embedding_std is not None:
        size = scheme.embedding_std(WIDTH, depth)
        traits["embedding_std"] = size, "starts with embeddings of its own size"
    if not scheme.logit_gain.is_one:
        traits["logit_gain"] = (
            scheme.logit_gain,
            f"scales the logits by {_said([scheme.logit_gain])}",
        )
    if scheme.profiled:
        traits["profiled"] = True, "sets its gains by one forward pass"
    if scheme.norm is not None:
        traits["norm"] = scheme.norm, f"brings its own norm, {NORMS.label(scheme.norm)}"
    if scheme.constraint != "none":
        label = CONSTRAINTS.label(scheme.constraint).lower()
        traits["constraint"] = scheme.constraint, f"keeps its weights at {label}"
    if scheme.streams != "one":
        label = STREAMS.label(scheme.streams)
        traits["streams"] = scheme.streams, f"has {label[0].lower()}{label[1:]}"
    return traits


def _places(depth: int) -> list[Place]:
    return [Place(block, depth, branch) for block in range(1, depth + 1) for branch in BRANCHES]


def _said(values: Iterable[Gain | float | str | bool]) -> str:
    """ "0.319 or 1", "0.289 to 1", "a learned gain from 1": the values of all sublayers."""
    gains = [
        value if isinstance(value, Gain) else Gain(float(value))
        for value in values
        if not isinstance(value, str)
    ]
    own = [gain for gain in gains if gain.learned] or gains
    numbers = sorted({gain.value / gain.over for gain in own})
    text = (
        " to ".join(number(n) for n in (numbers[0], numbers[-1]))
        if len(numbers) > 2
        else " or ".join(map(number, numbers))
    )
    if any(gain.unit != "1" for gain in own):
        text += " sqrt(d)"
    if any(gain.learned for gain in own):
        return f"a learned gain from {text}"
    return f"a gain that rises from 0 to {text}" if any(gain.ramp for gain in own) else text
