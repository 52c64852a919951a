"""A frozen, ordered list of records with unique keys; an unknown key raises one plain sentence."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from difflib import SequenceMatcher, get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, Protocol, TypeVar


class Record(Protocol):
    """The interface of every record: a key and a label."""

    @property
    def key(self) -> str:
        """The key that links and configs use."""
        ...

    @property
    def label(self) -> str:
        """The label that pages show."""
        ...


R = TypeVar("R", bound=Record)


def meant(word: str, allowed: Iterable[str]) -> str:
    """ " Did you mean 'post'?": the closest of the allowed words, if one is close; else nothing."""
    words = {other.lower(): other for other in allowed}
    given = word.lower()

    def distance(other: str) -> tuple[float, int]:
        return -SequenceMatcher(None, other, given).ratio(), abs(len(other) - len(given))

    close = min(get_close_matches(given, list(words), n=5), key=distance, default=None)
    return f" Did you mean {words[close]!r}?" if close else ""


def cut(word: str) -> str:
    """A word that somebody gave, quoted, cut to 40 characters."""
    return repr(word if len(word) <= 40 else f"{word[:40]}…")


class Registry(Generic[R]):
    """Records by key, in the order given. Raises ValueError for a duplicate or unknown key.

    `made` gives the record of a key that describes it instead of naming a listed one, None for any other key,
    and raises ValueError with a sentence for a description of nothing. The record's own key may be another.
    """

    def __init__(
        self, kind: str, records: Iterable[R], made: Callable[[str], R | None] | None = None
    ) -> None:
        self.kind, self.made = kind, made
        self._records: MutableMapping[str, R] = {}
        for record in records:
            if record.key in self._records:
                raise ValueError(f"two {kind} records have the key {record.key!r}")
            self._records[record.key] = record

    @classmethod
    def joined(cls, kind: str, *registries: Registry[Any]) -> Registry[Any]:
        """The records of several registries, in their order. Raises ValueError for a duplicate."""
        made = next((registry.made for registry in registries if registry.made), None)
        whole = cls(kind, (record for registry in registries for record in registry), made)
        whole._records = ChainMap(*(registry._records for registry in reversed(registries)))
        return whole

    @classmethod
    def discovered(cls, kind: str, package: str, path: Iterable[str], name: str) -> Registry[Any]:
        """The records in the lists called `name` of a package's modules, sorted by their `order`, so that a
        new file in the folder `path` needs no registration. A broken module stops the import. Modules named
        `*_torch` have classes of these records, and load PyTorch."""
        modules = (
            import_module(f"{package}.{module.name}")
            for module in iter_modules(path)
            if not module.name.endswith("_torch")
        )
        records: list[Any] = [record for module in modules for record in getattr(module, name)]
        return Registry[Any](kind, sorted(records, key=lambda record: record.order))

    def __getitem__(self, key: str) -> R:
        if key in self._records:
            return self._records[key]
        if self.made is not None and (record := self.made(key)) is not None:
            return record
        raise ValueError(self.unknown(key))

    def __contains__(self, key: object) -> bool:
        if key in self._records or not isinstance(key, str) or self.made is None:
            return key in self._records
        try:
            return self.made(key) is not None
        except ValueError:
            return False

    def refusal(self, key: str) -> str:
        """Why a key describes nothing; empty for any other key."""
        try:
            if self.made is not None:
                self.made(key)
        except ValueError as why:
            return str(why)
        return ""

    def __iter__(self) -> Iterator[R]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of the records."""
        return tuple(self._records)

    def label(self, key: str) -> str:
        """The label of a key. Raises ValueError for an unknown one."""
        return self[key].label

    def unknown(self, key: str) -> str:
        """One sentence about an unknown key, with the closest key that exists."""
        short = key if len(key) <= 60 else f"{key[:60]}…"
        allowed = ", ".join(self._records)
        return f"unknown {self.kind} {short!r}: allowed are {allowed}.{self.meant(key)}"

    def meant(self, key: str) -> str:
        """As `meant`, of its keys."""
        return meant(key, self._records)
