"""What counts as a text, and how it is written in symbols: sentences for all else, and honest counts."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from normviz.limits import MAX_SYMBOLS, MAX_TEXT_BYTES, characters_needed
from normviz.model.characters import TextError, check_length, clean, write

ANY_CHARACTER = st.characters()  # lone surrogates and zero bytes among them
ABC = "abc\n" * 20


def cleaned(given: str | bytes) -> str | TextError:
    try:
        return clean(given)
    except TextError as error:
        return error


# What is given


@given(st.text(ANY_CHARACTER) | st.text(ANY_CHARACTER).map(lambda text: text * 30) | st.binary())
@example("\ud800" * 40)
@example("\ufeff" + ABC)
@example("\r\n" * 40)
@example(b"\xef\xbb\xbf" + ABC.encode())
@example(b"\xff\xfea\0b\0")
def test_whatever_is_given_is_a_text_or_gets_a_sentence(given: str | bytes) -> None:
    text = cleaned(given)
    if isinstance(text, TextError):
        assert len(str(text)) > 20
        assert "\n" not in str(text)
        return
    assert "\r" not in text
    assert clean(text) == clean(text.encode()) == text or text.startswith("\ufeff")
    written = write(text)
    assert len(written.codes) == len(text)
    assert 0 <= written.codes.min() <= written.codes.max() < written.symbols
    assert 0 < written.entropy <= math.log(written.symbols) + 1e-12


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("", "the text is empty: paste some, or choose a file that holds some"),
        (b"", "the text is empty"),
        ("\ufeff", "the text is empty"),
        ("a", "the text has 1 character, and sequences of 2 need 30 or more: give a longer text"),
        ("ab" * 14, "the text has 28 characters, and sequences of 2 need 30 or more"),
        (
            "a" * 40,
            "the text repeats one character, 'a', and there is nothing to learn in it: give",
        ),
        ("a" * 39 + "b", "the text repeats one character"),  # what differs is held out
        (ABC + "\0", "the text holds a zero byte at character 80, so it is not text: give plain"),
        (ABC + "\udfff", "character 80 of the text is one half of a pair"),
        (
            "ab" * (MAX_TEXT_BYTES // 2) + "c",
            "the text has 1,000,001 bytes in UTF-8, allowed are up",
        ),
        ("é" * 500_001, "the text has 1,000,002 bytes in UTF-8, allowed are up to 1,000,000: give"),
        (b"a" * 9_000_000, "the text has 9,000,000 bytes"),
        (
            b"\x89PNG\r\n" + b"x" * 40,
            "the file is not text in UTF-8: byte 0 is 0x89. If it is text,",
        ),
        (ABC.encode() + b"\xe9", "the file is not text in UTF-8: byte 80 is 0xe9. If it is text,"),
        (ABC.encode("utf-16"), "the file is UTF-16, allowed is UTF-8: save it as UTF-8"),
    ],
    ids=lambda x: "" if len(x) > 9 else repr(x),
)
def test_what_is_no_text_is_said(bad: str | bytes, sentence: str) -> None:
    with pytest.raises(TextError) as caught:
        clean(bad)
    assert str(caught.value).startswith(sentence)


def test_line_ends_and_the_byte_order_mark_are_not_part_of_a_text() -> None:
    assert clean(b"\xef\xbb\xbf" + b"a\r\nb\rc\n" * 10) == "a\nb\nc\n" * 10


def test_the_longest_text_is_taken_whatever_its_line_ends() -> None:
    text = "a\n" * (MAX_TEXT_BYTES // 2)
    assert len(clean(text.replace("\n", "\r\n"))) == MAX_TEXT_BYTES


@pytest.mark.parametrize("seq_len", [2, 32, 512])
def test_a_text_is_long_enough_for_its_sequences(seq_len: int) -> None:
    needed = characters_needed(seq_len)
    check_length(needed, seq_len)
    assert needed // 10 >= seq_len + 1  # so is the part that is held out
    with pytest.raises(TextError, match=f"sequences of {seq_len} need {needed:,} or more"):
        check_length(needed - 1, seq_len)


# In symbols


def test_every_character_is_a_symbol() -> None:
    text = "the quick brown fox\n" * 10
    written, alphabet = write(text), sorted(set(text))
    assert "".join(alphabet[code] for code in written.codes) == text
    assert (written.symbols, written.distinct, written.other) == (len(alphabet), len(alphabet), 0)
    assert written.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_the_entropy_is_that_of_the_part_that_is_trained_on() -> None:
    text = "hello, world " * 9 + "zzzzzzzzzzzzz"
    counts = Counter("hello, world " * 9)
    shares = [count / counts.total() for count in counts.values()]
    assert write(text).entropy == pytest.approx(-sum(p * math.log(p) for p in shares))
    assert len(write(text).trained) == counts.total()


@pytest.mark.parametrize("more", [0, 1, 300])
def test_the_rarest_characters_share_a_symbol(more: int) -> None:
    """Those of higher code points, since here all beyond the first are as frequent."""
    n = MAX_SYMBOLS + more
    alphabet = [chr(0x4E00 + i) for i in range(n)]
    text = alphabet[-1] * 100 + "".join(alphabet)
    written = write(text)
    assert (written.symbols, written.distinct) == (MAX_SYMBOLS, n)
    shared = Counter(written.codes.tolist())[MAX_SYMBOLS - 1]
    if not more:
        assert written.other == 0
        assert shared == 101
        return
    assert shared == more + 1
    assert written.other == pytest.approx((more + 1) / len(text))
    kept = [*alphabet[: MAX_SYMBOLS - 2], alphabet[-1]]
    assert np.array_equal(written.codes[100:][: len(kept) - 1], np.arange(len(kept) - 1))
    assert written.codes[0] == MAX_SYMBOLS - 2
