"""The plan of the signal walk: the whole stack from embedding to head, whatever the scheme and depth."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import product
from typing import Any

import pytest
from crossing_kit import case, pairs

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.catalog.scheme import Place, Slots
from normviz.player.walk import CARRIED, MOST_ROWS, walk

DEPTHS = (1, 2, 12, 30, 1000)
NORMS = (
    "norm_fork",
    "norm_in",
    "norm_out",
    "norm_skip",
    "norm_main",
    "norm_inner",
    "norm_qkv",
    "unit_qk",
)


def plan(key: str, depth: int, **more: Any) -> dict[str, Any]:
    """The plan of a narrow model."""
    small = RunConfig(depth=depth, width=4, heads=1, seq_len=2, batch=1, steps=0)
    return walk(small.replace(scheme=key, **more))


def test_a_plan_goes_from_embedding_to_head_and_back() -> None:
    for key, depth in [*pairs(SCHEMES.keys(), (1, 2, 12, 30)), ("hyper", 1000), ("mixln", 1000)]:
        with case(key, depth):
            assert_goes_there_and_back(key, depth)


def assert_goes_there_and_back(key: str, depth: int) -> None:
    found = plan(key, depth)
    assert len(json.dumps(found, allow_nan=False)) < 200_000
    nodes = {node["id"]: node for node in found["nodes"]}
    for kind, start, end in (("stream", "embed", "head"), ("gradient", "head", "embed")):
        edges = [edge for edge in found["edges"] if edge["kind"] == kind]
        steps = {edge["from"]: edge["to"] for edge in edges}
        at, way = start, [start]
        while at != end:
            at = steps.pop(at)
            way.append(at)
        assert not steps and set(way) >= {n for n in nodes if n.startswith("block")}
        assert [*layers(edges)] == list(range(depth + 1))
    branches = [edge for edge in found["edges"] if edge["kind"] == "branch"]
    assert [*layers(branches)] == list(range(1, depth + 1))
    assert {edge["probe"] for edge in found["edges"]} <= set(CARRIED)
    blocks = [node for node in found["nodes"] if node["kind"] == "block"]
    assert [*layers(blocks)] == list(range(1, depth + 1)) and len(blocks) <= MOST_ROWS


def layers(parts: list[dict[str, Any]]) -> list[int]:
    """All layers that some edges or blocks stand for, in ascending order."""
    return sorted(x for part in parts for x in range(part["first"], part["layer"] + 1))


def test_a_block_holds_the_norms_of_its_record() -> None:
    for key, depth in product(SCHEMES.keys(), (1, 12)):
        with case(key, depth):
            assert_holds_its_norms(key, depth)


def assert_holds_its_norms(key: str, depth: int) -> None:
    found, scheme = plan(key, depth), SCHEMES[key]
    for block in (node for node in found["nodes"] if node["kind"] == "block"):
        drawn: dict[str, list[str]] = defaultdict(list)
        for node in found["kinds"][block["of"]]["nodes"]:
            if node["kind"] == "norm":
                drawn[node["branch"]].append(node["slot"])
        for branch in ("attention", "ffn"):
            slots = scheme.slots(Place(block["layer"], depth, branch))
            assert sorted(drawn[branch]) == sorted(norms(slots))
    ends = {node["id"] for node in found["nodes"] if node["id"].endswith("_norm")}
    assert ends == {n for n in ("embed_norm", "final_norm") if getattr(scheme, n)}


def norms(slots: Slots) -> list[str]:
    there = [slot for slot in NORMS if getattr(slots, slot)]
    return [slot for slot in there if not (slot == "norm_in" and slots.shares_norm)]


def test_everything_stands_within_the_picture() -> None:
    for key, depth in product(("post", "hyper", "b2t", "normformer"), DEPTHS):
        found = plan(key, depth)
        assert found["height"] < 820
        bottoms = [node["y"] for node in found["nodes"] if node["kind"] == "block"]
        assert bottoms == sorted(bottoms, reverse=True)
        for node in found["nodes"]:
            assert 0 <= node["y"] <= node["y"] + node.get("height", 0) <= found["height"]
        for kind in found["kinds"]:
            for node in kind["nodes"]:
                assert 0 < node["x"] < found["width"] and -kind["height"] <= node["y"] <= 0


def test_gains_come_with_their_values() -> None:
    assert "Skip × α = 2.21." in plan("deepnorm", 12)["words"]
    blocks = [node for node in plan("lns", 12)["nodes"] if node["kind"] == "block"]
    values = [block["gains"]["input_gain"] for block in blocks if "gains" in block]
    assert values[-1] == pytest.approx([12**-0.5] * 2, rel=1e-5) and len(values) >= 11
    assert "FFN alone" in plan("spannorm", 12)["words"]
    assert "Each row is 8 blocks." in plan("pre", 1000)["words"]


def test_what_a_branch_is_added_to() -> None:
    def edge(key: str) -> dict[str, Any]:
        return [edge for edge in plan(key, 12)["edges"] if edge["kind"] == "branch"][4]

    assert (edge("pre")["below"], edge("pre")["factor"]) == (4, 1.0)
    assert edge("deepnorm")["factor"] == pytest.approx(24**0.25, rel=1e-5)
    assert edge("skip_norm")["below"] is None


def test_several_streams_and_added_norms_show() -> None:
    assert plan("hyper", 4)["streams"] == {"copies": 4, "history": 0}
    assert plan("residual_dual", 4)["streams"] == {"copies": 2, "history": 0}
    assert plan("attnres", 4)["streams"]["history"] == 2
    slots = [node["slot"] for node in plan("pre", 4, qk_norm="on")["kinds"][0]["nodes"]]
    assert "qk_norm" in slots
    assert plan("ngpt", 4)["norm"] == plan("post", 4, norm="l2")["norm"]
    assert plan("post", 4)["normed"] and not plan("post", 4, norm="none")["normed"]
