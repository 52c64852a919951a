"""Texts as characters: the checks of a text, and its encoding in symbols. Torch-free."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..config import RANGES, ConfigError
from ..limits import HELD_OUT, MAX_SYMBOLS, MAX_TEXT_BYTES, characters_needed

SHORTEST = int(RANGES["seq_len"].low)
OTHER = "\ufffd"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
MAX_GIVEN = 2 * MAX_TEXT_BYTES + 3
"""Bytes or characters of a text as it is given, at most: line ends can halve it, a byte order mark goes."""


class TextError(ConfigError):
    """One sentence about a text: what was given, what is allowed, how to mend it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, "text")


@dataclass(frozen=True)
class EncodedText:
    """A text in symbols.

    codes     [n] int64, symbols in the order of their code points; the last is "other" if there is one
    symbols   how many: the distinct characters, or MAX_SYMBOLS if those are more
    distinct  distinct characters of the text
    other     share of the characters that are written as "other"
    entropy   of the symbols' frequencies in the trained part, in nats: the chance line
    sha256    of the text in UTF-8
    alphabet  the character of each symbol; "other" is U+FFFD
    """

    codes: NDArray[np.int64]
    symbols: int
    distinct: int
    other: float
    entropy: float
    sha256: str
    alphabet: str

    @property
    def trained(self) -> NDArray[np.int64]:
        """The part that batches are cut from: all but the last tenth."""
        return trained(self.codes)

    @property
    def unread(self) -> NDArray[np.int64]:
        """The last tenth, which training never reads."""
        return self.codes[len(self.trained) :]


def entropy(p: NDArray[np.float64]) -> float:
    """Entropy in nats of a distribution [n]."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def trained(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """All codes but the last tenth."""
    return codes[: len(codes) - len(codes) // HELD_OUT]


def clean(given: str | bytes, seq_len: int = SHORTEST) -> str:
    """A text without byte order mark and with \\n alone as line end. Raises TextError.

    Bytes are UTF-8. Everything that training needs of a text is checked here, and that it is long enough
    for sequences of `seq_len`.
    """
    if len(given) > MAX_GIVEN:
        raise too_long(len(given))
    text = _decoded(given) if isinstance(given, bytes) else given
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        raise TextError("the text is empty: paste some, or choose a file that holds some")
    if "\0" in text:
        raise TextError(
            f"the text holds a zero byte at character {text.index(chr(0)):,}, so it is not text: "
            "give plain text in UTF-8"
        )
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise TextError(
            f"character {error.start:,} of the text is one half of a pair (a lone surrogate), which "
            "is not a character: delete it"
        ) from None
    if size > MAX_TEXT_BYTES:
        raise too_long(size)
    check_length(len(text), seq_len)
    if len(set(text[: len(text) - len(text) // HELD_OUT])) == 1:
        raise TextError(
            f"the text repeats one character, {text[0]!r}, and there is nothing to learn in it: give "
            "a text of at least two different ones"
        )
    return text


def too_long(size: int) -> TextError:
    """The error of a text of that many bytes."""
    return TextError(
        f"the text has {size:,} bytes in UTF-8, allowed are up to {MAX_TEXT_BYTES:,}: give a part of "
        "it"
    )


def check_length(n: int, seq_len: int) -> None:
    """Raise TextError unless `n` characters are enough for sequences of `seq_len`."""
    needed = characters_needed(seq_len)
    if n < needed:
        mend = "" if seq_len == SHORTEST else ", or a shorter sequence length"
        raise TextError(
            f"the text has {n:,} character{'s' * (n != 1)}, and sequences of {seq_len} need "
            f"{needed:,} or more: give a longer text{mend}"
        )


def write(text: str) -> EncodedText:
    """Encode a clean text in symbols. The most frequent characters have one each; of equally frequent
    ones, those of lower code points."""
    raw = text.encode("utf-32-le")
    points = np.frombuffer(raw, "<u4")
    alphabet, codes, counts = np.unique(points, return_inverse=True, return_counts=True)
    symbols, other, named = len(alphabet), 0.0, "".join(map(chr, alphabet))
    if symbols > MAX_SYMBOLS:
        symbols = MAX_SYMBOLS
        frequent = np.sort(np.lexsort((alphabet, -counts))[: symbols - 1])
        symbol_of = np.full(len(alphabet), symbols - 1)
        symbol_of[frequent] = np.arange(symbols - 1)
        codes = symbol_of[codes]
        named = "".join(named[i] for i in frequent) + OTHER
        other = 1 - float(counts[frequent].sum()) / len(points)
    codes = codes.astype(np.int64).reshape(-1)
    shares = np.bincount(trained(codes)) / len(trained(codes))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return EncodedText(codes, symbols, len(alphabet), other, entropy(shares), digest, named)


def one_line(text: str) -> str:
    """A text for one line: an arrow for each line end, a mark for each of several spaces, and U+FFFD for
    what can't be printed."""
    plain = "".join("⏎" if c == "\n" else c if c.isprintable() else OTHER for c in text)
    return re.sub(" {2,}", lambda spaces: "␣" * len(spaces[0]), plain)


def _decoded(given: bytes) -> str:
    if given.startswith(UTF_16):
        raise TextError("the file is UTF-16, allowed is UTF-8: save it as UTF-8")
    try:
        return given.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"the file is not text in UTF-8: byte {error.start:,} is 0x{given[error.start]:02x}. If "
            "it is text, save it as UTF-8; pictures, PDF and Word files are not text"
        ) from None
