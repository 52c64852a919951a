"""A new placement is one record: with it alone it trains, is explained, and travels in a link."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from model_kit import assert_the_same
from peek import at_start, steps_of

from normviz import ConfigError, RunConfig
from normviz.catalog import SCHEMES, STREAMS
from normviz.catalog.scheme import ONE, ZERO, Constant, Gain, Place, Scheme, Slots
from normviz.lessons import anatomy
from normviz.links import decode, encode
from normviz.player.walk import walk

README = (Path(__file__).parents[2] / "normviz" / "README.md").read_text()
Register = Callable[[Scheme], Scheme]


def slots(place: Place) -> Slots:
    """Several slots at once: a norm before the fork, a branch that is learned, another skip path."""
    ffn = place.branch == "ffn"
    return Slots(
        norm_fork=ffn,
        norm_in=not ffn,
        norm_out=place.block == place.depth,
        branch_gain=Gain(0.5, "channel"),
        block_gain=ONE if ffn else ZERO,
    )


MINE = Scheme(
    key="mine",
    label="My placement",
    order=1000,
    family="Norms around the branch",
    sentence="Attention reads a norm; the FFN's norm stands before the fork.",
    trouble="Nobody uses it.",
    source="this test",
    slots=slots,
    final_norm=True,
    constants=(Constant("branch_gain", r"\lambda", r"\text{learned, starts at 0.5}"),),
)


def readmes() -> Scheme:
    """The record of the module that normviz/README.md shows, as a reader would paste it."""
    (source,) = re.findall(r"```python\n(from \.\.scheme.*?)\n```", README, re.DOTALL)
    module: dict[str, Any] = {"__package__": "normviz.catalog.schemes"}
    exec(source, module)
    (record,) = module["SCHEMES"]
    return record


RECORDS = pytest.mark.parametrize("record", [MINE, readmes()], ids=["several slots", "README"])


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Puts a record into the registry for one test."""

    def put(record: Scheme) -> Scheme:
        monkeypatch.setitem(SCHEMES._records, record.key, record)
        return record

    return put


@RECORDS
def test_it_trains_and_every_probe_speaks(
    record: Scheme, register: Register, tiny: RunConfig
) -> None:
    register(record)
    config = tiny.replace(scheme="mine", depth=3, steps=200, lr=0.01)
    steps = steps_of(config)
    losses = [step.loss for step in steps]
    assert len(losses) == 200
    assert np.mean(losses[-20:]) < np.mean(losses[:5]) - 1
    for values in at_start(config).values():
        assert np.isfinite(values[1:]).all() or np.isnan(values).all()  # no update without a step


@RECORDS
def test_it_is_explained_and_the_code_shown_computes_it(
    record: Scheme, register: Register, tiny: RunConfig
) -> None:
    register(record)
    ElementTree.fromstring(anatomy.diagram("mine", 4, "LayerNorm", "#3b7dd8"))
    assert anatomy.gradient_path("mine", 4)
    assert_the_same(tiny.replace(scheme="mine", depth=4))
    assert record.label in anatomy.code(tiny.replace(scheme="mine"), 32)


def test_its_formula_says_where_blocks_differ(register: Register) -> None:
    register(MINE)
    formulas = dict(anatomy.formula("mine", 4))
    assert formulas["attention of blocks 1 to 3"] == (
        r"x^{+} = x + \lambda\,F\left(\mathrm{N}\left(x\right)\right)"
    )
    assert list(formulas) == [
        "attention of blocks 1 to 3", "FFN of blocks 1 to 3", "attention of block 4",
        "FFN of block 4",
    ]  # fmt: skip
    assert anatomy.constants("mine", 4) == [r"\lambda = \text{learned, starts at 0.5}"]


def test_registered_anew_it_is_explained_anew(register: Register) -> None:
    before, lane = register(MINE), RunConfig(scheme="mine", depth=4)
    formula, picture = anatomy.formula("mine", 4), walk(lane)
    register(replace(before, label="Mine again", slots=lambda place: Slots(norm_in=True)))
    assert anatomy.formula("mine", 4) != formula
    assert len(picture["kinds"]) > len(walk(lane)["kinds"]) == 1


@RECORDS
def test_it_travels_in_a_config_and_a_link(record: Scheme, register: Register) -> None:
    register(record)
    config = RunConfig(scheme="mine", norm="rmsnorm")
    assert RunConfig(**json.loads(config.canonical())) == config
    assert decode(encode((config, RunConfig()))).lanes == (config, RunConfig())


def test_a_kind_of_stream_is_one_record_too(
    register: Register, monkeypatch: pytest.MonkeyPatch, tiny: RunConfig
) -> None:
    kind = replace(STREAMS["dual"], key="my_kind", drawn="drawn so", sentence="Told so.", copies=3)
    monkeypatch.setitem(STREAMS._records, kind.key, kind)
    dual = SCHEMES["residual_dual"]
    register(replace(dual, key="mine", streams=kind.key))
    config = tiny.replace(scheme="mine")
    theirs = tiny.replace(scheme=dual.key)
    assert [s.loss for s in steps_of(config)] == [s.loss for s in steps_of(theirs)]
    assert_the_same(config)
    assert anatomy.added(config, 32) == anatomy.added(theirs, 32)
    assert "drawn so" in anatomy.diagram("mine", 4, "LayerNorm", "#3b7dd8")
    picture = walk(config)
    assert "Told so." in picture["words"] and picture["streams"]["copies"] == 3


def test_without_its_record_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no test here changes what others see."""
    before = SCHEMES.keys()
    with monkeypatch.context() as patch:
        patch.setitem(SCHEMES._records, "passing", replace(MINE, key="passing"))
        config = RunConfig(scheme="passing")
    assert SCHEMES.keys() == before
    with pytest.raises(ConfigError, match=r"^scheme is 'passing', allowed is one of pre, post, "):
        config.replace(depth=3)
