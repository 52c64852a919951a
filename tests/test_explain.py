"""What the page explains is what the model computes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import torch

from normviz import RunConfig, explain
from normviz.catalog import SCHEMES
from normviz.nn.init import initialise
from normviz.nn.sites import untapped
from normviz.nn.transformer import build

DEPTH = 4


@pytest.mark.parametrize("scheme", SCHEMES.keys())
def test_the_code_shown_computes_what_the_model_does(scheme: str) -> None:
    config = RunConfig(scheme=scheme, depth=DEPTH, width=16)
    model = build(config, 8)
    initialise(model, config)
    wire = model.blocks[DEPTH // 2 - 1].ffn
    norms = {slot: getattr(wire, f"norm_{slot}") for slot in ("in", "out", "skip", "main")}
    shown: dict = {}
    exec(explain.code(scheme, DEPTH), shown)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))
    branch = lambda z: wire.branch(z, untapped)  # noqa: E731
    assert torch.equal(shown["sublayer"](x, branch, norms), wire(x, 0, untapped))


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("pre", r"x^{+} = x + F\left(\mathrm{N}\left(x\right)\right)"),
        ("post", r"x^{+} = \mathrm{N}\left(x + F\left(x\right)\right)"),
        ("peri", r"x^{+} = x + \mathrm{N}\left(F\left(\mathrm{N}\left(x\right)\right)\right)"),
        ("deepnorm", r"x^{+} = \mathrm{N}\left(\alpha\,x + F\left(x\right)\right)"),
        ("none", r"x^{+} = x + F\left(x\right)"),
    ],
)
def test_formulas(scheme: str, expected: str) -> None:
    assert explain.formula(scheme, 12) == expected


def test_deepnorm_constants() -> None:
    assert explain.constants("deepnorm", 12) == [
        r"\alpha = (2L)^{1/4} = 2.213",
        r"\beta = (8L)^{-1/4} = 0.3195",
    ]


@pytest.mark.parametrize("scheme", SCHEMES.keys())
def test_the_diagram_has_a_box_for_every_norm(scheme: str) -> None:
    svg = explain.diagram(scheme, 12, "LayerNorm", "#3b7dd8")
    ElementTree.fromstring(svg)
    slots = SCHEMES[scheme].slots(explain_place())
    there = slots.norm_in + slots.norm_out + slots.norm_skip + slots.norm_main
    assert svg.count(">LayerNorm<") == there


def explain_place():
    from normviz.catalog.scheme import Place

    return Place(6, 12, "ffn")
