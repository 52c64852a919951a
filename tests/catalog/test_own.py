"""A placement written as slots: its one spelling, the catalogue's bit for bit, and refused nonsense."""

from __future__ import annotations

import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
from crossing_kit import case
from model_kit import assert_the_same
from peek import steps_of

from normviz import ConfigError, RunConfig
from normviz.catalog import PLACEMENTS, SCHEMES, own
from normviz.catalog.scheme import Place
from normviz.charts import lane_styles
from normviz.export import script
from normviz.lessons import anatomy
from normviz.lessons.anatomy.large import large
from normviz.links import decode, encode
from normviz.player.walk import walk
from normviz.runs.lane import Lane
from normviz.runs.names import in_file, title
from normviz.studies.maps.link import ask

MINE = "own:norm_in:ffn.norm_out:embed_gain=0.2~channel:skip_gain=2L^0.25:final_norm"
PLACE = Place(1, 12, "ffn")
TEXTS = {
    "own:norm_in:final_norm": "pre",
    "own:norm_main": "post",
    "own:norm_in:norm_out:final_norm": "sandwich",
    "own:final_norm:embed_norm:norm_out:norm_in": "peri",
    "own:norm_main:skip_gain=2L^0.25:weight_gain=8L^-0.25": "deepnorm",
    "own": "none",
    "own:norm_in:input_gain=b^-0.5:final_norm": "lns",
    "own:attention.norm_qkv:ffn.norm_fork:final_norm": "hybridnorm",
    "own:norm_main:block_gain=1:ffn.skip_gain=0:embed_norm": "spannorm",
    "own:norm_in:branch_reads=block:shares_norm:final_norm": "parallel",
}


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts keep their own records, also where the catalogue has the same placement."""
    for registry in (SCHEMES, PLACEMENTS):
        monkeypatch.setattr(
            registry, "made", lambda key: own.read(key) if own.is_own(key) else None
        )


def test_a_placement_has_one_spelling_and_the_catalogues_its_key() -> None:
    for text, key in TEXTS.items():
        assert RunConfig(scheme=text) == RunConfig(scheme=key), text
    for text in (
        MINE,
        "own:final_norm:embed_gain=0.20~channel:attention.norm_in:ffn.norm_out:ffn.norm_in:skip_gain=2.0L^0.250",
        f"{MINE}:branch_gain=1:block_gain=0::main_gain=1",
    ):
        assert RunConfig(scheme=text).scheme == MINE
    assert (
        own.spelled(own.parsed("own:ffn.block_gain=1L^0.5:norm_in"))
        == "own:norm_in:block_gain=L^0.5"
    )
    for text in ("own:skip_gain=0.000001", "own:skip_gain=999.123456"):
        assert SCHEMES[text].key == text and SCHEMES[text].slots(PLACE).skip_gain.value == float(
            text[14:]
        )
    assert MINE not in SCHEMES.keys()  # noqa: SIM118 (a registry)


def test_placements_that_a_text_can_say_are_written_and_read_back() -> None:
    written = {s.key: own.spelled(words) for s in SCHEMES if (words := own.words_of(s)) is not None}
    assert all(SCHEMES[text].key == key for key, text in written.items())
    assert set(TEXTS.values()) <= set(written)
    assert not {"mixln", "ngpt", "hyper", "admin", "prores", "rezero"} & set(written)


def test_it_trains_bit_for_bit_as_the_catalogues(unnamed: None, tiny: RunConfig) -> None:
    for text, key in TEXTS.items():
        with case(key):
            mine, theirs = (tiny.replace(scheme=it, depth=3, steps=3) for it in (text, key))
            assert mine.scheme != theirs.scheme
            assert [s.loss for s in steps_of(mine)] == [s.loss for s in steps_of(theirs)]


REFUSED = {
    "own:norm_inn": "'norm_inn' is no slot, allowed are norm_fork, .* Did you mean 'norm_in'",
    "own:norm_in:ffn.norm_in": "names ffn.norm_in twice: name it once",
    "own:skip_gain": "skip_gain is '', allowed is a number from 0 to 1000, or",
    "own:skip_gain=2^3": "skip_gain is '2.3', allowed is",
    "own:skip_gain=2L^9": "allowed is",
    "own:skip_gain=-1": "allowed is",
    "own:norm_in=2": "norm_in has the value '2', and takes none: write norm_in",
    "own:branch_reads=ffn": "branch_reads is 'ffn', allowed is branch_reads=block",
    "own:mlp.norm_in": "allowed are attention and ffn: write ffn.norm_in",
    "own:ffn.final_norm": "final_norm is of the whole model: write it without ffn.",
    "own:attention.block_gain=1": "block_gain is of the FFN alone .*: write block_gain",
    "own:branch_gain=0": "nothing passes: give a number above 0, or let it start there: 0~channel",
    "own:norm_skip:skip_gain=0": "norms a path that is not there: leave out one of them",
    "own:ffn.input_gain=b^-0.5": "depends on the block b in one branch alone: give both the same value",
    "own:attention.skip_gain=2:ffn.skip_gain=1~channel": "make both the same kind",
    "own:norm_in:shares_norm": "add branch_reads=block",
    "own:branch_reads=block:shares_norm": "add norm_in",
    "own:norm_in:branch_reads=block:shares_norm:input_gain=2": "leave out one of them",
    "own:weight_gain=0.1~channel": "it scales the start alone: give a number above 0",
    "own:" + "norm_in:" * 80: "it has 644 characters, allowed are 600: leave out words",
}


def test_nonsense_is_refused_in_a_sentence() -> None:
    for text, sentence in REFUSED.items():
        with pytest.raises(ConfigError, match=f"^scheme is 'own:.*{sentence}"):
            RunConfig(scheme=text)
    assert "allowed is one of pre" in decode("v=1&scheme=pre,oun:norm_in").problems[0].sentence
    (problem,) = decode("v=1&scheme=pre,own:norm_inn").problems
    assert "Did you mean 'norm_in'?" in problem.sentence
    with pytest.raises(ConfigError, match="but that is a place around a residual branch"):
        RunConfig(family="rnn", scheme=MINE)


def test_it_travels_and_has_a_name_a_colour_and_files() -> None:
    lanes = (RunConfig(), RunConfig(scheme=MINE))
    assert decode(encode(lanes)).lanes == lanes
    assert f"scheme=pre,{MINE.replace('^', '%5E')}" in encode(lanes)
    assert (
        title(lanes)
        == "Pre-LN against Own: in + ffn out + embed=0.2~channel + skip=2L^0.25 + final"
    )
    assert len({style.color for style in lane_styles(tuple(lane.scheme for lane in lanes))}) == 2
    assert in_file(MINE) == Path(in_file(MINE)).name and ":" not in in_file(MINE)
    grid = ask({"scheme": f"pre,{MINE}", "depth": "2,4", "lr": "0.001,0.01"}, "depth", "lr").grid
    axis = grid.axis("scheme")
    assert axis is not None and axis.values == ("pre", MINE)


def test_its_formula_names_what_a_branch_has_and_its_values() -> None:
    assert dict(anatomy.formula(MINE, 8)) == {
        "attention": r"u = x + \lambda\,x_0,\quad x^{+} = a\,u + F\left(\mathrm{N}\left(u\right)\right)",
        "FFN": r"u = x + \lambda\,x_0,\quad "
        r"x^{+} = a\,u + \mathrm{N}\left(F\left(\mathrm{N}\left(u\right)\right)\right)",
    }
    assert anatomy.constants(MINE, 8) == [
        r"\lambda = \text{learned, starts at 0.2}",
        r"a = (2L)^{0.25} = 2",
    ]
    two, key = r"x^{+} = 2\,x + F\left(x\right)", "own:attention.skip_gain=2:ffn.skip_gain=3"
    assert dict(anatomy.formula(key, 8)) == {"attention": two, "FFN": two.replace("2", "3")}
    assert "x^{+} = 2" in anatomy.formula("own:ffn.skip_gain=2:norm_in", 8)[1][1]


def random_text(draw: random.Random) -> str:
    """Some words with values; often nonsense."""
    parts = []
    for word in (word for word in own.WORDS if draw.random() < 0.25):
        is_free = word not in (*own.ONLY, *own.ENDS, own.WEIGHTS)
        branch = draw.choice(("", "", "attention.", "ffn.")) if is_free else ""
        amount = draw.choice(
            ("2", "0.5", "L^-0.5", "2L^0.25", "b^-0.5", "0.1~channel", "b^-1~sublayer")
        )
        value = f"={amount}" if word in (*own.GAINS, own.WEIGHTS) else ""
        parts.append(f"{branch}{word}{'=block' if word == 'branch_reads' else value}")
    draw.shuffle(parts)
    return own.PREFIX + ":".join(parts)


@pytest.mark.slow
def test_whatever_can_be_written_is_explained_and_its_code_computes_it(tiny: RunConfig) -> None:
    draw, built = random.Random(5), 0
    while built < 12:
        text = random_text(draw)
        if text not in SCHEMES or not own.is_own(SCHEMES[text].key):
            continue
        built += 1
        with case(text):
            config = tiny.replace(scheme=text, depth=3)
            assert own.spelled(own.parsed(config.scheme)) == config.scheme
            assert anatomy.formula(config.scheme, 3) and anatomy.gradient_path(config.scheme, 3)
            ElementTree.fromstring(anatomy.diagram(config.scheme, 3, "LayerNorm", "#3b7dd8"))
            assert large(config, "#3b7dd8", "pre") and walk(config)["kinds"]
            assert SCHEMES.label(config.scheme) in script(Lane("A", config))
            assert_the_same(config)
