"""Links of the By hand page: every example survives the round trip, and whatever else is pasted gets
a sentence."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hand_kit import EDITED, examples
from hypothesis import given
from hypothesis import strategies as st

from normviz.lessons.by_hand import Example, links
from normviz.lessons.by_hand.links import NAMES, OpenedExample, as_params, decode, encode

PARAMS = as_params(EDITED)


def opened(query: str) -> OpenedExample:
    return decode(parse_qs(query, keep_blank_values=True))


def assert_sane(found: OpenedExample) -> None:
    """An example or problems, never both or neither; every problem is one sentence."""
    assert bool(found.example) != bool(found.problems)
    for problem in found.problems:
        assert 10 < len(problem.sentence) < 300
        assert "\n" not in problem.sentence and "Error" not in problem.sentence
        if problem.mended:
            assert opened(problem.mended).example


@given(examples())
def test_every_example_survives_the_round_trip(example: Example) -> None:
    found = opened(encode(example))
    assert found.example == example
    assert not found.notices and not found.problems


@given(st.dictionaries(st.sampled_from(("v", *NAMES)), st.text(max_size=40), max_size=6))
def test_no_link_raises(params: dict[str, str]) -> None:
    assert_sane(decode({name: [text] for name, text in params.items()}))


@given(
    st.sampled_from(NAMES),
    st.sampled_from(
        [
            "",
            "nan",
            "inf",
            "1e400",
            "-1",
            "0",
            "1.5",
            "9" * 500,
            ",",
            ";",
            "1;2,3",
            "<b>x</b>",
            "１",
        ]
    ),
)
def test_one_bad_word_gets_a_sentence(name: str, word: str) -> None:
    assert_sane(decode({key: [text] for key, text in {**PARAMS, name: word}.items()}))


@pytest.mark.parametrize(
    ("query", "sentence", "offer"),
    [
        ("x=1,2;3", "row 1 has 2 numbers and row 2 has 1", None),
        ("x=1;2;3;4;5;6;7", "the number of rows is 7, allowed is a whole number from 1 to 6", None),
        ("x=1,,2", "row 1, feature 2 is empty", None),
        ("x=1,2&gamma=1", "gamma has 1 numbers for 2 features", None),
        ("row=9", "row is 9, allowed is a whole number from 1 to 4", "row = 4"),
        ("eps=7", "eps is '7', allowed is a number above 0, up to 1", "eps = 1"),
        ("eps=0", "eps is '0'", None),
        ("momentum=-0.5", "momentum is '-0.5', allowed is a number from 0 to 1", "momentum = 0"),
        ("try=neighbor", "Did you mean 'neighbour'?", None),
        ("mode=test", "mode is 'test', allowed is train or eval", None),
        ("x=1&x=2", "the link gives x 2 times, allowed is once", None),
        ("v=9&x=1", "the link has version '9', allowed is 1", None),
    ],
)
def test_a_bad_link_says_what_is_wrong(query: str, sentence: str, offer: str | None) -> None:
    (problem,) = opened(query).problems
    assert sentence in problem.sentence
    assert problem.offer == offer


def test_what_a_short_link_leaves_open_is_pinned() -> None:
    """γ and β depend on the number of features, and the amount on the experiment."""
    found = opened("x=1,2,3;4,5,6")
    assert found.example and found.notices == ()
    said = as_params(found.example)
    assert (said["gamma"], said["beta"]) == ("1,1,1", "0,0,0")
    assert {name: said[name] for name in links.CODEC.pinned} == {
        **links.CODEC.pinned, "x": "1,2,3;4,5,6"
    }  # fmt: skip
    assert opened("x=1,2&try=scale").example.amount == 100.0
    assert not links.CODEC.reads({"utm_source": ["x"]})


def test_all_that_is_wrong_with_the_form_of_a_link_is_said() -> None:
    found = [problem.sentence for problem in opened("v=2&x=1&x=2&row=1&row=1").problems]
    assert [sentence.split(",")[0] for sentence in found] == [
        "the link gives x 2 times", "the link gives row 2 times", "the link has version '2'"
    ]  # fmt: skip
