"""What the page explains is what the model computes."""

from __future__ import annotations

from itertools import cycle, product
from xml.etree import ElementTree

import pytest
import torch
from crossing_kit import case, changes, pairs
from model_kit import assert_the_same

from normviz import RunConfig
from normviz.catalog import NORMS, QK_NORMS, SCHEMES, V_NORMS
from normviz.catalog.patterns import GAINS, patterns
from normviz.catalog.scheme import Gain, Slots
from normviz.config import SETTINGS
from normviz.lessons import anatomy
from normviz.lessons.anatomy.block import LEAST, layout

PRACTICE: list[dict[str, object]] = [
    *changes("task", "dropout", *(name for name, one in SETTINGS.items() if one.training)),
    {"task": "masked", "mask": "none", "positions": "rope"},
    {"tied": "on", "softcap": 2.0},
    {"parametrisation": "mup", "width": 48, "heads": 4},
    {"parametrisation": "completep", "width": 48, "heads": 4},
    {"branch_gain": 0.3, "weight_gain": 2.0},
]


@pytest.mark.slow
def test_the_code_shown_computes_what_the_model_does(tiny: RunConfig) -> None:
    for scheme, norm in pairs(SCHEMES.keys(), NORMS.keys(), 1):
        with case(scheme, norm):
            assert_the_same(tiny.replace(scheme=scheme, norm=norm, depth=4))


@pytest.mark.slow
def test_so_does_the_code_of_every_attention(tiny: RunConfig) -> None:
    attention = [*product(QK_NORMS.keys(), V_NORMS.keys())]
    for scheme, (qk_norm, v_norm) in pairs(("peri", "hybridnorm", "normformer"), attention):
        with case(scheme, qk_norm, v_norm):
            assert_the_same(tiny.replace(scheme=scheme, qk_norm=qk_norm, v_norm=v_norm))


@pytest.mark.slow
def test_so_does_the_code_of_every_setting(tiny: RunConfig) -> None:
    for scheme, change in zip(cycle(("subln", "layerscale")), PRACTICE):
        with case(scheme, change):
            assert_the_same(tiny.replace(scheme=scheme, **change))


@pytest.mark.slow
def test_the_code_shown_starts_gains_and_norms_as_the_model_does() -> None:
    from normviz.model.families import build
    from normviz.model.marks import AS_IS, mark_of

    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        config, pasted = RunConfig(scheme=scheme, depth=4, width=16), {}
        exec(anatomy.code(config, 32), pasted)
        theirs = dict(pasted["Model"]().named_parameters())
        for name, p in build(config, 32).named_parameters():
            if mark_of(p) == AS_IS:
                with case(scheme, name):
                    torch.testing.assert_close(theirs[anatomy.our_name(name)], p)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("pre", r"x^{+} = x + F\left(\mathrm{N}\left(x\right)\right)"),
        ("post", r"x^{+} = \mathrm{N}\left(x + F\left(x\right)\right)"),
        ("peri", r"x^{+} = x + \mathrm{N}\left(F\left(\mathrm{N}\left(x\right)\right)\right)"),
        ("deepnorm", r"x^{+} = \mathrm{N}\left(\alpha\,x + F\left(x\right)\right)"),
        ("none", r"x^{+} = x + F\left(x\right)"),
        ("lns", r"x^{+} = x + F\left(s\,\mathrm{N}\left(x\right)\right)"),
        ("skip_norm", r"u = \mathrm{N}\left(x\right),\quad x^{+} = u + F\left(u\right)"),
    ],
)
def test_formulas(scheme: str, expected: str) -> None:
    assert anatomy.formula(scheme, 12) == [("attention and FFN", expected)]


def test_a_formula_says_where_blocks_differ() -> None:
    assert [where for where, _ in anatomy.formula("mixln", 12)] == [
        "attention and FFN of blocks 1 to 3",
        "attention and FFN of blocks 4 to 12",
    ]
    assert [where for where, _ in anatomy.formula("b2t", 12)] == ["attention", "FFN"]


def test_a_gradient_passes_every_gain_on_its_way() -> None:
    ((_, latex),) = anatomy.gradient_path("lns", 12)
    assert latex.endswith(r"= I + J_{F}\,s\,J_{\mathrm{N}}")
    ((_, latex),) = anatomy.gradient_path("skip_norm", 12)
    assert latex.endswith(r"= \left(I + J_{F}\right)\,J_{\mathrm{N}}")


def test_deepnorm_constants() -> None:
    assert anatomy.constants("deepnorm", 12) == [
        r"\alpha = (2L)^{1/4} = 2.213",
        r"\beta = (8L)^{-1/4} = 0.3195",
    ]


def test_every_gain_has_a_name() -> None:
    """A number without a symbol could not be explained."""
    for scheme in SCHEMES:
        named = {c.gain for c in scheme.constants}
        for group in patterns(scheme.key, 12):
            for slots in (group.attention, group.ffn):
                used = {name for name in GAINS if _is_number(getattr(slots, name))}
                used -= {"branch_gain"} if slots.mix != "sum" else set()
                used |= {name for name in ("gamma_in", "gamma_out") if getattr(slots, name) != 1.0}
                assert used <= named, scheme.key


def _is_number(gain: Gain) -> bool:
    return not (gain.is_one or gain.is_zero)


def test_the_diagram_has_a_box_for_every_norm() -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        svg = anatomy.diagram(scheme, 12, "LayerNorm", "#3b7dd8")
        ElementTree.fromstring(svg)
        group = patterns(scheme, 12)[-1]
        drawn = (group.ffn,) if group.is_one_wire else (group.attention, group.ffn)
        assert svg.count(">LayerNorm<") == sum(boxes(slots) for slots in drawn), scheme


def test_a_plus_is_not_crossed_by_the_stream() -> None:
    """Its circle is filled, lies over all lines, and is crossed by both strokes of the plus alone."""
    drawn = list(ElementTree.fromstring(anatomy.diagram("pre", 12, "LayerNorm", "#3b7dd8")))
    kinds = [element.tag.rpartition("}")[2] for element in drawn]
    circle = kinds.index("circle")
    assert drawn[circle].get("fill") not in (None, "none")
    assert "polyline" not in kinds[circle:]
    stroke = drawn[circle + 1]
    assert {*"hv"} <= {*(stroke.get("d") or "")}
    assert stroke.get("stroke") != drawn[circle].get("fill")


def boxes(s: Slots) -> int:
    """Norms in front of, behind and around a branch; those inside are written on it."""
    return sum((s.norm_fork, s.norm_in and not s.shares_norm, s.norm_out, s.norm_skip, s.norm_main))


def test_the_glyph_has_a_bar_for_each_norm_of_the_block() -> None:
    color = "#123456"
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        root = ElementTree.fromstring(anatomy.glyph(scheme, 12, color))
        bars = [one for one in root.iter() if one.get("fill") == color]
        group = patterns(scheme, 12)[-1]
        sublayers = [group.ffn] if group.is_one_wire else [group.attention, group.ffn]
        inside = [s.norm_inner or s.norm_qkv or s.unit_qk for s in sublayers]
        with case(scheme):
            assert len(bars) == sum(map(boxes, sublayers)) + sum(inside)
            width = float(root.get("width", 0))
            assert all(0 <= float(bar.get("x", -1)) <= width - 8 for bar in bars)


def test_the_norm_moves_in_the_glyph() -> None:
    def place(scheme: str) -> tuple[str | None, str | None]:
        root = ElementTree.fromstring(anatomy.glyph(scheme, 12, "#123456"))
        (bar,) = [one for one in root.iter() if one.get("fill") == "#123456"]
        return bar.get("x"), bar.get("y")

    assert place("pre") != place("post")


def test_the_block_has_a_box_for_each_norm_and_draws_none_over_another() -> None:
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        root = ElementTree.fromstring(anatomy.block(scheme, 12, "#123456", ("attention", "FFN")))
        drawn = [one for one in root.iter() if one.get("fill") == "#123456"]
        group = patterns(scheme, 12)[-1]
        inside = [s.norm_inner or s.norm_qkv or s.unit_qk for s in (group.attention, group.ffn)]
        with case(scheme):
            before = SCHEMES[scheme].embed_norm
            assert len(drawn) == before + boxes(group.attention) + boxes(group.ffn) + sum(inside)
            for slots in (group.attention, group.ffn):
                it = layout(slots)
                assert it.box[0] >= it.fork + LEAST and it.box[1] > 40
                assert it.box[0] + it.box[1] <= it.join - LEAST


def test_the_norms_of_a_block_come_from_where_the_placement_before_had_them() -> None:
    def moves(before: str) -> list[str]:
        root = ElementTree.fromstring(
            anatomy.block("pre", 12, "#123456", ("attention", "FFN"), before)
        )
        return [one.get("style", "") for one in root.iter() if "norm" in one.get("class", "")]

    was, now = layout(patterns("post", 12)[-1].ffn).norms, layout(patterns("pre", 12)[-1].ffn).norms
    far = f"--dx:{was['main'][0] - now['in'][0]:g}px;--dy:{was['main'][1] - now['in'][1]:g}px"
    assert moves("post") == [far, far]
    assert moves("pre") == ["--dx:0px;--dy:0px"] * 2
    assert moves("none") == moves("") == ["", ""]
