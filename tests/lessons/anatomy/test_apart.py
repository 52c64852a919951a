"""What the duel says that placements differ in, for all pairs of placements."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from itertools import combinations
from typing import get_args

import pytest

from normviz.catalog import SCHEMES
from normviz.catalog.scheme import BRANCHES, NORMED, Matrix, Place, Scheme, Slots
from normviz.lessons.anatomy.apart import BESIDE, beside, moved

IN_WORDS = {
    "key", "label", "order", "family", "sentence", "trouble", "source", "used_by", "oracle",
    "slots", "weight_gain", "embedding_std", "constants", "equations", "history",
}  # fmt: skip
"""Fields of a record that are words about it, or functions."""


def beside_norms(scheme: Scheme, depth: int) -> object:
    """A placement's record as values, without its norms."""
    places = [Place(b, depth, branch) for b in range(1, depth + 1) for branch in BRANCHES]
    without = dict.fromkeys(NORMED, False)
    plain = asdict(replace(scheme, final_norm=False, embed_norm=False))
    return (
        {name: value for name, value in plain.items() if name not in IN_WORDS},
        [replace(scheme.slots(place), **without) for place in places],
        [scheme.weight_gain(place, matrix) for place in places for matrix in get_args(Matrix)],
        scheme.embedding_std and scheme.embedding_std(48, depth),
    )


@pytest.mark.parametrize("depth", [3, 5])
def test_only_the_norm_moved_is_said_where_nothing_else_differs(depth: int) -> None:
    records = {scheme.key: beside_norms(scheme, depth) for scheme in SCHEMES}
    for a, b in combinations(SCHEMES.keys(), 2):
        said = moved((a, b), depth)
        assert said.startswith("Only") == (records[a] == records[b]), (a, b, said)
        assert any(beside((a, b), depth)) == said.startswith("Not only"), (a, b, said)


def test_what_differs_is_named() -> None:
    assert moved(("pre", "post"), 12) == "Only the norm moved; Pre-LN has a final norm."
    assert moved(("pre", "peri"), 12) == "Only the norms differ."
    assert SCHEMES["peri"].in_a_sublayer == "norms the embedding and a branch's input and output"
    assert moved(("pre", "mixln"), 3) == "Only the norm moved."
    deepnorm = ["scales the skip path by 2.21", "starts with smaller matrices"]
    assert beside(("post", "deepnorm"), 12) == [[], deepnorm]
    assert beside(("deepnorm",), 12) == [deepnorm]
    assert beside(("deepnorm", "keel", "pre"), 12) == [
        deepnorm, ["scales the skip path by 1 or 24"], []
    ]  # fmt: skip


def test_all_that_a_sublayer_has_is_a_norm_or_has_words() -> None:
    assert {field.name for field in fields(Slots)} == {*NORMED, *BESIDE}
