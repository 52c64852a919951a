"""The texts that people gave: kept as files named by their hash, one each, and read by nobody but
the trainer.

    from normviz import RunConfig, texts, train

    config = RunConfig(task="text", text=texts.add(Path("book.txt")))

A text is never in a link, in a result, or on a page; whoever has it can find out whether it is here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .characters import SHORTEST, TextError, Written, check_length, clean, too_long, write
from .config import RunConfig
from .home import VARIABLE, FolderError, home
from .limits import MAX_TEXT_BYTES, MAX_TEXTS, TEXT_DIGITS


@dataclass(frozen=True)
class About:
    """What a page says of a text; the fields are those of `characters.Written`."""

    characters: int
    distinct: int
    symbols: int
    other: float
    entropy: float

    def sentence(self) -> str:
        """The counts, and what became of rare characters if there are too many kinds."""
        said = (
            f"{self.characters:,} characters, {self.distinct:,} distinct, unigram entropy "
            f"{self.entropy:.3f} nats (the chance line, over the nine tenths that are trained on)."
        )
        if self.distinct > self.symbols:
            rare = self.distinct - self.symbols + 1
            said += (
                f" More than {self.symbols} distinct characters: the {rare:,} rarest became one "
                f"“other” symbol, {self.other:.1%} of the text."
            )
        return said


def add(given: str | bytes | Path, seq_len: int = SHORTEST) -> str:
    """Keep a text (itself, its UTF-8 bytes, or the file at a path); returns the hash that names it.

    Raises TextError, also for a text too short for sequences of `seq_len`. The same text is kept
    once. Beyond MAX_TEXTS the one used longest ago is deleted.
    """
    text = clean(_bytes(given) if isinstance(given, Path) else given)
    check_length(len(text), seq_len)
    key = _hash(text.encode())
    try:
        _put(_path(key), text.encode())
        for old in sorted(_folder().iterdir(), key=_age)[MAX_TEXTS:]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise TextError(f"the text can't be kept here: {error.strerror}") from None
    except FolderError as error:
        raise TextError(f"the text can't be kept here: {error}") from None
    return key


def is_here(key: str) -> bool:
    """Whether a text of this hash is kept here."""
    return _path(key).is_file()


def delete(key: str) -> bool:
    """Delete a text; whether there was one. Results of runs that read it stay."""
    there = is_here(key)
    _path(key).unlink(missing_ok=True)
    return there


def kept() -> list[str]:
    """The hashes of all texts here, the one used last first."""
    return [path.stem for path in sorted(_folder().glob("*.txt"), key=_age)]


def about(key: str) -> About:
    """The counts of a text. Raises TextError if it is not here."""
    if not is_here(key):
        raise TextError(missing("this run", key))
    return _about(key)


def written(config: RunConfig) -> Written:
    """The text of a config in symbols. Raises TextError if it is not here or too short."""
    found = write(read(config.text))
    check_length(len(found.codes), config.seq_len)
    return found


def read(key: str, data: Path | None = None) -> str:
    """A text, now the one used last, of the data folder or another one.

    Raises TextError if it is not here; a file that is not what its name says counts as missing.
    """
    path = _path(key, data)
    try:
        content = path.read_bytes()
    except OSError:
        raise TextError(missing("this run", key)) from None
    if _hash(content) != key:
        raise TextError(missing("this run", key))
    with contextlib.suppress(OSError):
        os.utime(path)
    return content.decode()


def obstacle(config: RunConfig) -> str | None:
    """Why a config can't be trained here for want of its text, as a sentence; None if it can."""
    if not config.text:
        return None
    try:
        check_length(about(config.text).characters, config.seq_len)
    except TextError as error:
        return str(error)
    return None


def missing(what: str, key: str, mend: str = "paste it, or give it with --text FILE,") -> str:
    """The sentence of a text that is not here; `what` would train on it."""
    return (
        f"{what} trains on a text (hash {key[:8]}…) that this server does not have: {mend} to "
        "run it again; stored results stay readable"
    )


def _folder(data: Path | None = None) -> Path:
    folder = (data or home()) / "texts"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise FolderError(
            f"the folder {str(folder)!r} can't be made ({error.strerror}): set {VARIABLE} to a folder "
            "that can be written"
        ) from None
    return folder


def _path(key: str, data: Path | None = None) -> Path:
    if not re.fullmatch(f"[0-9a-f]{{{TEXT_DIGITS}}}", key):
        raise TextError(
            f"{key[:40]!r} is not the hash of a text: {TEXT_DIGITS} digits, 0-9 and a-f"
        )
    return _folder(data) / f"{key}.txt"


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:TEXT_DIGITS]


def _age(path: Path) -> float:
    """Sorts the one used last first, and what another process has just deleted last."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _bytes(path: Path) -> bytes:
    """A file, or the error that it is too long before all of it is read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > 2 * MAX_TEXT_BYTES + 3:
                raise too_long(size)
            return file.read(2 * MAX_TEXT_BYTES + 4)
    except OSError as error:
        raise TextError(f"the file {str(path)!r} can't be read: {error.strerror}") from None


def _put(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all, and that its owner alone can read."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@lru_cache(maxsize=64)
def _about(key: str) -> About:
    found = write(read(key))
    return About(len(found.codes), found.distinct, found.symbols, found.other, found.entropy)
