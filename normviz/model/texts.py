"""Visitors' own texts: one file each, named by its hash, and read by the trainer alone.

    from normviz import RunConfig, train
    from normviz.model import texts

    config = RunConfig(task="text", text=texts.add(Path("book.txt")))

A text is never in a link, in a result, or on a page. A shared server trains on none and shows no run on one
(`Policy.own_text`), although its data folder may hold some from the time when it was not shared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..config import RunConfig
from ..home import PRIVATE, VARIABLE, FolderError, home, made, write_private
from ..limits import MAX_TEXTS, TEXT_DIGITS
from .characters import (
    MAX_GIVEN,
    SHORTEST,
    EncodedText,
    TextError,
    check_length,
    clean,
    too_long,
    write,
)


@dataclass(frozen=True)
class TextInfo:
    """The counts of a text that a page shows; the fields are those of `characters.EncodedText`."""

    characters: int
    distinct: int
    symbols: int
    other: float
    entropy: float

    def sentence(self) -> str:
        """The counts, and how many rare characters became one symbol, if there are too many kinds."""
        sentence = (
            f"{self.characters:,} characters, {self.distinct:,} distinct, unigram entropy "
            f"{self.entropy:.3f} nats (the chance line, over the nine tenths that are trained on)."
        )
        if self.distinct > self.symbols:
            rare = self.distinct - self.symbols + 1
            sentence += (
                f" More than {self.symbols} distinct characters: the {rare:,} rarest became one "
                f"“other” symbol, {self.other:.1%} of the text."
            )
        return sentence


def add(
    given: str | bytes | Path,
    seq_len: int = SHORTEST,
    needed: Callable[[], Collection[str]] | None = None,
) -> str:
    """Store a text (itself, its UTF-8 bytes, or the file at a path); returns the hash that names it.

    The same text is stored once. Where MAX_TEXTS are stored already, the one used longest ago is deleted,
    except those that `needed` returns (`Store.needed_texts`); without `needed` none is. Raises TextError
    where none may be deleted, and for a text too short for sequences of `seq_len`.
    """
    text = clean(_bytes(given) if isinstance(given, Path) else given, seq_len)
    key = _hash(text.encode())
    try:
        if not is_here(key):
            _make_room(needed)
        write_private(_path(key), text.encode())
    except OSError as error:
        raise TextError(f"the text can't be kept here: {error.strerror}") from None
    except FolderError as error:
        raise TextError(f"the text can't be kept here: {error}") from None
    return key


def is_here(key: str) -> bool:
    """Whether a text of this hash is stored here. Raises TextError for what is not a hash."""
    return _path(key).is_file()


def delete(key: str) -> bool:
    """Delete a text; returns whether there was one. Results of runs on it stay."""
    there = is_here(key)
    _path(key).unlink(missing_ok=True)
    return there


def listed() -> list[str]:
    """The hashes of all stored texts, the one used last first."""
    return [path.stem for path in sorted(_folder().glob("*.txt"), key=_age)]


def about(key: str) -> TextInfo:
    """The counts of a text. Raises TextError if it is not stored here."""
    if not is_here(key):
        raise TextError(missing("this run", key))
    return _about(key)


def written(config: RunConfig) -> EncodedText:
    """The text of a config in symbols. Raises TextError if it is not stored here or too short."""
    text = write(read(config.text))
    check_length(len(text.codes), config.seq_len)
    return text


def read(key: str, data: Path | None = None) -> str:
    """A text from the data folder or another one; it becomes the one used last.

    Raises TextError if it is not stored there; a file whose content has another hash counts as missing.
    """
    path = _path(key, data)
    try:
        content = path.read_bytes()
    except OSError:
        raise TextError(missing("this run", key)) from None
    if key != _hash(content):
        raise TextError(missing("this run", key))
    with contextlib.suppress(OSError):
        os.utime(path)
    return content.decode()


def obstacle(*configs: RunConfig) -> str | None:
    """Why one of these configs can't be trained on its text here, as a sentence; None where all can."""
    for config in {(config.text, config.seq_len): config for config in configs}.values():
        if not config.text:
            continue
        if why := lacking("this run", config.text):
            return why
        try:
            check_length(about(config.text).characters, config.seq_len)
        except TextError as error:
            return str(error)
    return None


FILE = "paste it, or give it with --text FILE,"


def lacking(what: str, key: str, mend: str = FILE) -> str | None:
    """Why the text that `what` trains on can't be read here, as a sentence; None where it can."""
    return None if is_here(key) else missing(what, key, mend)


def missing(what: str, key: str, mend: str = FILE) -> str:
    """The sentence about a missing text that `what` would train on."""
    return (
        f"{what} trains on a text (hash {key[:8]}…) that this server does not have: {mend} to "
        "run it again; stored results stay readable"
    )


def _folder(data: Path | None = None) -> Path:
    mend = f"set {VARIABLE} to a folder that can be written"
    return made((data or home()) / "texts", mend, PRIVATE)


def _path(key: str, data: Path | None = None) -> Path:
    if not re.fullmatch(f"[0-9a-f]{{{TEXT_DIGITS}}}", key):
        raise TextError(
            f"{key[:40]!r} is not the hash of a text: {TEXT_DIGITS} digits, 0-9 and a-f"
        )
    return _folder(data) / f"{key}.txt"


def _make_room(needed: Callable[[], Collection[str]] | None) -> None:
    """Delete texts until one more may be stored. Raises TextError where too many of them are needed."""
    oldest_first = sorted(filter(Path.is_file, _folder().iterdir()), key=_age, reverse=True)
    over = len(oldest_first) - MAX_TEXTS + 1
    if over <= 0:
        return
    stay = needed() if needed else {path.stem for path in oldest_first}
    free = [path for path in oldest_first if path.stem not in stay]
    if len(free) < over:
        whose = (
            ", and each is read by a run that waits, trains or is paused, or whose link was copied"
        )
        raise TextError(
            f"{MAX_TEXTS} texts are kept here, as many as there may be{whose if needed else ''}: delete "
            "one with `normviz texts --delete HASH`, and give this one again"
        )
    for path in free[:over]:
        path.unlink(missing_ok=True)


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:TEXT_DIGITS]


def _age(path: Path) -> float:
    """Sort key: the text used last comes first, one that another process has just deleted comes last."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _bytes(path: Path) -> bytes:
    """The content of a file. Raises TextError for one that is too long, before all of it is read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_GIVEN:
                raise too_long(size)
            return file.read(MAX_GIVEN + 1)
    except OSError as error:
        raise TextError(f"the file {str(path)!r} can't be read: {error.strerror}") from None


@lru_cache(maxsize=64)
def _about(key: str) -> TextInfo:
    text = write(read(key))
    return TextInfo(len(text.codes), text.distinct, text.symbols, text.other, text.entropy)
