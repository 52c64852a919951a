"""Links: every duel survives the round trip, and whatever else is pasted gets a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from crossing_kit import case
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from normviz import ConfigError, RunConfig, links
from normviz.config import CHOICES, RANGES, WRITTEN
from normviz.lessons.by_hand import PRESETS as HANDS
from normviz.lessons.by_hand import links as hand
from normviz.lessons.choose import answers
from normviz.limits import MAX_LANES
from normviz.links import (  # fmt: skip
    DUEL,
    FIELDS,
    PINNED,
    Codec,
    Link,
    as_params,
    as_word,
    decode,
    differences,
    encode,
    query,
    settings,
    shown,
)
from normviz.studies.maps import link as map_link


def numbers(name: str) -> st.SearchStrategy[Any]:
    span = RANGES[name]
    if span.whole:
        return st.integers(int(span.low), min(int(span.high), 1000))
    return st.floats(span.low, span.high, exclude_min=span.above, exclude_max=span.below)


EDITS = st.dictionaries(st.integers(1, 40), numbers("lr"), max_size=4).map(
    lambda edits: tuple(sorted(edits.items()))
)
ANY_FIELD = {
    **{name: st.sampled_from(registry.keys()) for name, registry in CHOICES.items()},
    **{name: numbers(name) for name in RANGES},
    "clip": st.none() | numbers("clip"),
    "lr_edits": EDITS,
}
HASHES = st.text("0123456789abcdef", min_size=32, max_size=32)


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    """Any legal config."""
    values = draw(st.fixed_dictionaries({}, optional=ANY_FIELD))
    if values.get("task") == "text":
        values["text"] = draw(HASHES)
    while True:
        try:
            return RunConfig(**values)
        except ConfigError as error:  # heads that do not divide, or too dear
            values.pop(error.field) if error.field in values else values.popitem()


def long(lanes: Sequence[RunConfig]) -> str:
    """The link as releases until 0.9 wrote it: every setting of every lane."""
    columns = {name: [as_word(getattr(lane, name)) for lane in lanes] for name in FIELDS}
    if set(columns["text"]) == {"none"}:
        del columns["text"]
    words = {name: ",".join(w if len(set(w)) > 1 else w[:1]) for name, w in columns.items()}
    return query({"v": "1", "lanes": str(len(lanes)), **words})


def assert_sane(link: Link) -> None:
    """Lanes or problems, never both or neither; every problem is one sentence."""
    assert bool(link.lanes) != bool(link.problems)
    for problem in link.problems:
        assert len(problem.sentence) > 10
        assert "\n" not in problem.sentence
        assert "Error" not in problem.sentence
        assert (problem.mended is None) == (problem.offer is None)


@examples(max_examples=40)
@given(st.lists(configs(), min_size=1, max_size=MAX_LANES))
def test_round_trip(lanes: list[RunConfig]) -> None:
    link = decode(encode(lanes))
    assert link == Link(lanes=tuple(lanes), missing=link.missing)
    assert decode(long(lanes)).lanes == tuple(lanes)
    assert all(shown(name, getattr(lanes[0], name)) for name in FIELDS)


def test_a_link_names_what_differs_from_its_version() -> None:
    own = RunConfig(task="text", text="ab" * 16)
    for lanes, text in (
        ([RunConfig()], "v=1"),
        ([RunConfig(), RunConfig(scheme="post")], "v=1&scheme=pre,post"),
        ([RunConfig(), RunConfig()], "v=1&lanes=2"),
        ([RunConfig(depth=24)] * 3, "v=1&lanes=3&depth=24"),
        ([RunConfig(clip=1.0), RunConfig(lr=0.01)], "v=1&lr=0.003,0.01&clip=1.0,off"),
        ([own, own], f"v=1&lanes=2&task=text&text={'ab' * 16}"),
        ([own, RunConfig()], f"v=1&task=text,markov&text={'ab' * 16},none"),
    ):
        assert encode(lanes) == text
        for head in ("", "?", "http://localhost:8501/?", "https://a.b/c/d?"):
            assert decode(head + text).lanes == tuple(lanes)


V1 = {
    "scheme": "pre", "norm": "layernorm", "init": "xavier", "qk_norm": "off", "v_norm": "off",
    "depth": "12", "width": "32", "heads": "4", "ffn_ratio": "4", "activation": "relu",
    "task": "markov", "text": "none", "seq_len": "32", "batch": "8", "steps": "200",
    "optimizer": "adamw", "lr": "0.003", "beta1": "0.9", "beta2": "0.999", "momentum": "0.0",
    "weight_decay": "0.0", "warmup": "0", "schedule": "constant", "clip": "off", "dropout": "0.0",
    "init_seed": "0", "data_seed": "0", "device": "auto", "lr_edits": "none", "positions": "learned",
    "mask": "causal", "sinks": "off", "tied": "off", "softcap": "off", "zloss": "0.0",
    "decay_on": "all", "parametrisation": "standard", "rounding": "off", "branch_gain": "1.0",
    "weight_gain": "1.0", "family": "decoder", "patch_norm": "off", "held_out_batches": "1",
    "attn_gate": "off", "qk_clip": "off", "loops": "1",
}  # fmt: skip


def test_the_meaning_of_version_1_never_changes() -> None:
    """Neither a new default nor a new field changes the result that a copied link leads to. A setting whose
    default changes keeps its word here as `link` in its record."""
    assert {name: PINNED[name] for name in V1} == V1
    assert decode("v=1").lanes[0].key == "e2-a4f6321d1ac5099a"
    meant = decode("v=1&scheme=pre,post").lanes
    assert [lane.key for lane in meant] == ["e2-a4f6321d1ac5099a", "e2-f97979bef25f9f81"]


OLD = [
    "v=1&lanes=2&scheme=pre,post&norm=layernorm&init=xavier&qk_norm=off&v_norm=off&depth=12&width=32&heads=4"
    "&ffn_ratio=4&activation=relu&task=markov&seq_len=32&batch=8&steps=200&optimizer=adamw&lr=0.003"
    "&beta1=0.9&beta2=0.999&momentum=0.0&weight_decay=0.0&warmup=0&schedule=constant&clip=off&dropout=0.0"
    "&init_seed=0&data_seed=0&device=auto&lr_edits=none",
    "?v=1&lanes=2&scheme=pre,post",
    "scheme=pre,post",
    "https://a.b/?v=1&lanes=2&scheme=pre,post&depth=12&probe=grad_w2&view=lines&seeds=5&embed=true",
    "lanes=2&scheme=pre,post&lr=3e-3&clip=none&qk_norm=off",
    "v=1&scheme=pre%2Cpost&utm_source=mail",
]
"""Links of the hero as every release has written or read them."""


def test_old_links_open_for_ever() -> None:
    for link in OLD:
        assert encode(decode(link).lanes) == "v=1&scheme=pre,post", link


# Whatever is pasted

TRICKY = ["1", "5000", "-1", "nan", "1e999", "1,2", "", "off"]
WORDS = st.text(max_size=12) | st.sampled_from(TRICKY)
NAMES = st.sampled_from(["v", "lanes", *FIELDS]) | st.text(max_size=8)


@examples(max_examples=50)
@given(st.text())
@example("&".join(f"a{i}=1" for i in range(300)))
@example("http://[?v=1")
@example("depth=" + "9" * 5000)
def test_no_text_raises(text: str) -> None:
    assert_sane(decode(text))


@examples(max_examples=50)
@given(st.dictionaries(NAMES, st.lists(WORDS, max_size=2)))
@example({"lanes": []})
@example({"depth": []})
def test_no_parameters_raise(params: dict[str, list[str]]) -> None:
    assert_sane(decode(params))


BAD = (
    ("v=2&depth=3", "the link has version '2', allowed is 1: it may come from another release"),
    ("lanes=5", "lanes is '5', allowed is a whole number from 1 to 4"),
    ("lanes=0", "lanes is '0', allowed"),
    ("lanes=two", "lanes is 'two', allowed"),
    ("depth=1,2,3,4,5", "lanes is '5', allowed"),
    ("lanes=3&depth=1,2", "depth has 2 values for 3 lanes, allowed is one value for all lanes"),
    ("depth=3&depth=4", "the link gives depth 2 times, allowed is once"),
    ("v=1&v=1", "the link gives v 2 times, allowed is once"),
    ("depth=5000", "depth is '5000', allowed is a whole number from 1 to 1000"),
    (
        "scheme=psot",
        "scheme is 'psot', allowed is one of 64 (`normviz list` and the Catalogue name them). Did you mean "
        "'post'?",
    ),
    ("lr=fast", "lr is 'fast', allowed is a number above 0, up to 10"),
    ("heads=5", "width is 32 and heads is 5, but the heads must divide the width"),
    ("lr_edits=9", "lr_edits is "),
    ("task=text", "task is text, but no text is named: paste one on the page"),
    (
        "text=../../etc/passwd",
        "text is '../../etc/passwd', allowed is none, or the hash of a text",
    ),
    (f"text={'a' * 32}", f"text is '{'a' * 32}', but task is markov, and only the task text"),
    ("lr_edits=5:0.1;3:0.1", "lr_edits must name each step once, in ascending order"),
)


def test_a_bad_link_gets_a_sentence_and_no_lanes() -> None:
    for text, sentence in BAD:
        with case(text):
            link = decode(text)
            assert_sane(link)
            assert link.problems[0].sentence.startswith(sentence)


def test_every_problem_is_told_at_once() -> None:
    link = decode("lanes=2&depth=0,5000&lr=99")
    assert len(link.problems) == 2  # one a lane: validation names the first bad field of each
    assert len({problem.sentence for problem in link.problems}) == 2


# Offers


@pytest.mark.parametrize("side", ["below", "above"])
def test_an_offer_mends_the_link(side: str) -> None:
    for name in RANGES:
        with case(name):
            offer_mends(name, side)


def offer_mends(name: str, side: str) -> None:
    span = RANGES[name]
    word = str(int(span.low) - 5 if side == "below" else int(span.high) + 5)
    depth = "64" if name == "loops" else "1"
    cheap = {"steps": "5", "depth": depth, "width": "64"} | {name: word}
    link = decode(urlencode(cheap))
    (problem,) = link.problems
    open_end = span.above if side == "below" else span.below
    if open_end:
        assert problem.mended is None  # no nearest legal value
        return
    assert problem.mended is not None
    assert problem.offer is not None
    again = decode(problem.mended)
    assert again.lanes, again.problems
    assert getattr(again.lanes[0], name) == (span.low if side == "below" else span.high)
    assert problem.offer.startswith(f"{name} = ")


@examples(max_examples=30)
@given(st.lists(st.sampled_from(["3", "0", "5000", "nan", "1.5"]), min_size=1, max_size=MAX_LANES))
def test_an_offer_leads_to_fewer_problems(depths: list[str]) -> None:
    query = f"steps=1&lanes={len(depths)}&depth={','.join(depths)}"
    problems = decode(query).problems
    for problem in problems:
        if problem.mended is not None:
            mended = decode(problem.mended).problems
            assert len(mended) < len(problems) or depths.count("0") + depths.count("5000") > 1


def test_an_offer_does_not_trade_a_problem_for_another() -> None:
    """The nearest legal width would be too dear here, the nearest number of heads not divide."""
    for text in ("width=2000", "heads=100"):
        for problem in decode(text).problems:
            assert problem.mended is None or not decode(problem.mended).problems
    assert [p.mended for p in decode("depth=deep").problems] == [None]


# Notices


def test_a_setting_that_is_not_named_has_its_pinned_value() -> None:
    whole = long([RunConfig()]).split("&")
    for name in (name for name in FIELDS if name != "text"):
        link = decode("&".join(pair for pair in whole if not pair.startswith(f"{name}=")))
        assert link.lanes == (RunConfig(),)
        assert link.missing == ((name,) if name in WRITTEN else ())
        assert link.notices == ()


def test_an_unknown_setting_is_noticed() -> None:
    link = decode(encode([RunConfig()]) + "&colour=red")
    assert link.lanes == (RunConfig(),)
    assert link.notices == ("The link also names 'colour', which is not a setting here: not used.",)
    assert decode(encode([RunConfig()]) + "&probe=grad_w2&embed=true").notices == ()


# Words


def test_settings_of_a_command_line() -> None:
    assert settings(["depth=24", "lr_edits=3:0.1;9:0.2"]) == {
        "depth": "24",
        "lr_edits": (("3", "0.1"), ("9", "0.2")),
    }


def test_bad_settings_of_a_command_line_get_a_sentence() -> None:
    for words in (["depth"], ["depth=1", "depth=2"]):
        with pytest.raises(ConfigError, match=r"write key=value|is given twice"):
            settings(words)


def test_differences_are_told_as_people_read_them() -> None:
    there, here = RunConfig(), RunConfig(scheme="post", lr=0.01, clip=1.0, lr_edits=((5, 0.1),))
    assert differences(here, there) == {
        "scheme": ("Pre-LN", "Post-LN"),
        "lr": ("0.003", "0.01"),
        "clip": ("off", "1"),
        "lr_edits": ("none", "0.1 from step 5"),
    }


def test_a_link_of_many_mistakes_is_read_soon() -> None:
    """Offers are looked at once, not offers of offers."""
    names = [name for name in RANGES if name in FIELDS]
    query = "&".join(f"{name}=99999998,99999999" for name in names)
    with patch.object(links, "decode", side_effect=links.decode) as calls:
        links.decode(f"lanes=2&{query}")
    assert calls.call_count <= 1 + 2 * len(names)


# The links of every page

PAGES: dict[str, tuple[Codec, dict[str, str]]] = {
    "duel": (DUEL, as_params([RunConfig(depth=3), RunConfig(scheme="post", depth=3)])),
    "maps": (map_link.CODEC, map_link.ask({"depth": "2,4", "lr": "0.01,0.1"}, "depth", "lr").params()),
    "by hand": (hand.CODEC, hand.as_params(HANDS["usual"].example())),
    "choose": (answers.CODEC, answers.as_params(answers.Answers(depth="8", start="existing"))),
}  # fmt: skip
"""The codec of a page, and the parameters of one of its links."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_reads_its_own_links_and_says_what_else_they_hold(page: str) -> None:
    codec, said = PAGES[page]
    params = {name: [word] for name, word in said.items()}
    named = [name for name in said if name != "v"]
    assert codec.reads(params) and not codec.reads({"utm_source": ["mail"]})
    assert codec.params(codec.given(params), always=named) == said
    assert codec.words(params) == {**codec.pinned, **codec.given(params)}
    assert not set(codec.params(codec.pinned)) - {"v"}
    assert codec.problems(params) == codec.others(params) == []

    twice = {**params, named[0]: ["1", "2"]}
    assert codec.problems(twice) == [f"the link gives {named[0]} 2 times, allowed is once"]
    assert codec.given(twice)[named[0]] == "1"
    other = codec.problems({**params, "v": ["7"]})
    assert len(other) == bool(codec.version) and all("has version '7'" in one for one in other)
    looks = {name: ["x"] for name in (*codec.view, "embed", "fbclid")}
    (sentence,) = codec.others({**params, **looks, "colour": ["red"]})
    assert "'colour', which is not a setting here" in sentence


def test_what_sets_the_view_of_a_duel_is_no_link_of_one() -> None:
    assert DUEL.reads({"depth": ["3"]}) and not DUEL.reads({"probe": ["stream_rms"]})
