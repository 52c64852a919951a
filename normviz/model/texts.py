"""Visitors' own texts: one file each, named by its hash, and read by the trainer alone.

    from normviz import RunConfig, train
    from normviz.model import texts

    config = RunConfig(task="text", text=texts.add(Path("book.txt")))

A text is never in a link, in a result, or on a page. Beside each file is the list of the text's givers:
the visitors who gave it on a page. On a hosted server they alone can train on it, see its counts, or see
whether it is stored; no visitor can do so with a text without a giver. The hash that names it is keyed there
with the secret of the data folder: a link or the key of a run alone confirms no guess of the text. Whoever
gives the guess there gets the same hash, and the curves of a run on it are those of the link anywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .. import hosted
from ..config import RunConfig
from ..home import VARIABLE, FolderError, home, secret, write_private
from ..hosted import Refused
from ..limits import MAX_TEXT_BYTES, MAX_TEXT_GIVERS, MAX_TEXTS, TEXT_DIGITS
from .characters import SHORTEST, EncodedText, TextError, check_length, clean, too_long, write

SHARE = 4
"""On a hosted server one network address holds one in so many of MAX_TEXTS, at most."""


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
    giver: str = "",
    needed: Callable[[], Collection[str]] | None = None,
    address: str = "",
) -> str:
    """Store a text (itself, its UTF-8 bytes, or the file at a path); returns the hash that names it.

    `giver` is the visitor who gives it on a page, and `address` names the network address they come from.
    Raises TextError, also for a text too short for sequences of `seq_len`. The same text is stored once,
    with all its givers.

    Where MAX_TEXTS are stored already, one is deleted of the address that gave most (of visitors without
    one, of the visitor): the one used longest ago, except those that `needed` returns
    (`Store.needed_texts`); without `needed` none is. On a hosted server an address holds a quarter of them
    at most, so that one more takes the place of one of its own. Raises TextError where none may be deleted.
    """
    text = clean(_bytes(given) if isinstance(given, Path) else given, seq_len)
    key = _hash(text.encode())
    try:
        if not is_here(key):
            _make_room(needed, address)
        write_private(_path(key), text.encode())
        if giver:
            _add_giver(key, giver, address)
    except OSError as error:
        raise TextError(f"the text can't be kept here: {error.strerror}") from None
    except FolderError as error:
        raise TextError(f"the text can't be kept here: {error}") from None
    return key


def key_of(given: str | bytes) -> str:
    """The hash that names a text, stored here or not. Raises TextError for input that is not a text, and
    FolderError."""
    return _hash(clean(given).encode())


def is_here(key: str) -> bool:
    """Whether a text of this hash is stored here. Raises TextError for what is not a hash."""
    return _path(key).is_file()


def is_giver(key: str, visitor: str | None) -> bool:
    """Whether a visitor gave a text."""
    return bool(visitor) and (_givers(_path(key)) / str(visitor)).is_file()


def given_by(visitor: str) -> list[str]:
    """The hashes of the stored texts that a visitor gave, the one used last first."""
    return [key for key in listed() if is_giver(key, visitor)]


def is_private(key: str, visitor: str | None) -> bool:
    """Whether a visitor may not use a text: on a hosted server every text that they did not give."""
    return bool(key) and hosted.limits() is not None and not is_giver(key, visitor)


def delete(key: str) -> bool:
    """Delete a text and its list of givers; returns whether there was one. Results of runs on it stay."""
    there = is_here(key)
    _remove(_path(key))
    return there


def take_back(key: str, visitor: str) -> None:
    """Remove a giver of a text and delete the text; a hosted server keeps it while it has other givers."""
    if not is_giver(key, visitor):
        return
    givers = _givers(_path(key))
    (givers / visitor).unlink(missing_ok=True)
    if hosted.limits() is None or not any(givers.glob("*")):
        delete(key)


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
    if key not in (_plain(content), _keyed(content, data or home())):
        raise TextError(missing("this run", key))
    with contextlib.suppress(OSError):
        os.utime(path)
    return content.decode()


def check(configs: Iterable[RunConfig], visitor: str | None) -> None:
    """Raise Refused where a visitor can't train one of these configs because they lack its text."""
    for config in {(config.text, config.seq_len): config for config in configs}.values():
        if why := obstacle(config, visitor):
            raise Refused(why)


def obstacle(config: RunConfig, visitor: str | None = None) -> str | None:
    """Why a visitor can't train on a config's text, as a sentence; None where they can."""
    if not config.text:
        return None
    if why := lacking("this run", config.text, visitor):
        return why
    try:
        check_length(about(config.text).characters, config.seq_len)
    except TextError as error:
        return str(error)
    return None


FILE = "paste it, or give it with --text FILE,"
PRIVATE = (
    "trains on a text that this server does not keep for this browser: here a text is private to the "
    "browser that gave it. Give the same text to train on it; stored results stay readable"
)
"""The same words whether the text is stored or not, so that they do not reveal it."""


def lacking(what: str, key: str, visitor: str | None, mend: str = FILE) -> str | None:
    """Why a visitor lacks the text that `what` trains on, as a sentence; None where they have it."""
    if is_private(key, visitor):
        return f"{what} {PRIVATE}"
    return None if is_here(key) else missing(what, key, mend)


def missing(what: str, key: str, mend: str = FILE) -> str:
    """The sentence about a missing text that `what` would train on. On a hosted server every visitor
    may read it, so it does not contain the hash."""
    named = f" (hash {key[:8]}…)" if hosted.limits() is None else ""
    return (
        f"{what} trains on a text{named} that this server does not have: {mend} to "
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


def _givers(path: Path) -> Path:
    """The folder beside a text that holds a file for each of its givers, which names their address."""
    return path.with_suffix(".givers")


def _add_giver(key: str, visitor: str, address: str) -> None:
    """Add a giver of a text; beyond MAX_TEXT_GIVERS the earliest ones are removed."""
    givers = _givers(_path(key))
    givers.mkdir(mode=0o700, exist_ok=True)
    file = os.open(givers / visitor, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "w", encoding="utf-8") as new:
        new.write(address)
    os.utime(givers / visitor)
    for old in sorted(givers.iterdir(), key=_age)[MAX_TEXT_GIVERS:]:
        old.unlink(missing_ok=True)


def _make_room(needed: Callable[[], Collection[str]] | None, address: str) -> None:
    """Delete texts until one more may be stored. Raises TextError where too many of them are needed."""
    oldest_first = sorted(filter(Path.is_file, _folder().iterdir()), key=_age, reverse=True)
    owners = {path: _owners(path) for path in oldest_first}
    mine = [path for path, owner in owners.items() if address and f"@{address}" in owner]
    is_much = hosted.limits() is not None and len(mine) >= max(1, MAX_TEXTS // SHARE)
    if len(oldest_first) < MAX_TEXTS and not is_much:
        return
    stay = needed() if needed else None
    free = [
        path
        for path in (mine if is_much else oldest_first)
        if stay is not None and path.stem not in stay
    ]
    left = Counter(owner for some in owners.values() for owner in some)
    over = 1 if is_much else len(oldest_first) - MAX_TEXTS + 1
    if len(free) < over:
        raise TextError(_full(stay is not None, is_much))
    for _ in range(over):
        # Of several givers, the one who gave least protects the text.
        gone = max(free, key=lambda path: min(left[owner] for owner in owners[path]))
        free.remove(gone)
        left.subtract(owners[gone])
        _remove(gone)


def _owners(path: Path) -> set[str]:
    """The addresses that gave a text, each after an @; of visitors without one the visitor. A text that
    nobody gave on a page has one owner, with an empty name."""
    owners = set()
    for giver in _givers(path).glob("*"):
        with contextlib.suppress(OSError):
            address = giver.read_text("utf-8")
            owners.add(f"@{address}" if address else giver.name)
    return owners or {""}


def _full(is_needed: bool, is_much: bool) -> str:
    """The sentence about a folder that has as many texts as allowed, of which none may be deleted; with
    `is_much`, as many of one address."""
    if is_much:
        return (
            f"{max(1, MAX_TEXTS // SHARE)} texts of your network address are kept here, as many as there "
            "may be of one, and each is read by a run that waits, trains or is paused, or whose link was "
            "copied: try again later"
        )
    kept_here = f"{MAX_TEXTS} texts are kept here, as many as there may be"
    if hosted.limits() is not None:
        return (
            f"{kept_here}, and each is read by a run that waits, trains or is paused, or whose link was "
            "copied: try again later"
        )
    if is_needed:
        kept_here += (
            ", and each is read by a run that waits, trains or is paused, or whose link was copied"
        )
    return f"{kept_here}: delete one with `normviz texts --delete HASH`, and give this one again"


def _remove(path: Path) -> None:
    """Delete the file of a text and the list of its givers."""
    path.unlink(missing_ok=True)
    shutil.rmtree(_givers(path), ignore_errors=True)


def _hash(text: bytes) -> str:
    return _plain(text) if hosted.limits() is None else _keyed(text, home())


def _plain(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:TEXT_DIGITS]


def _keyed(text: bytes, folder: Path) -> str:
    return hmac.digest(secret(folder), b"text:" + text, "sha256").hex()[:TEXT_DIGITS]


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
            if size > 2 * MAX_TEXT_BYTES + 3:
                raise too_long(size)
            return file.read(2 * MAX_TEXT_BYTES + 4)
    except OSError as error:
        raise TextError(f"the file {str(path)!r} can't be read: {error.strerror}") from None


@lru_cache(maxsize=64)
def _about(key: str) -> TextInfo:
    text = write(read(key))
    return TextInfo(len(text.codes), text.distinct, text.symbols, text.other, text.entropy)
