"""Pictures of duels whose runs have ended: asked for by a page that shows one, drawn once by another process,
and kept here. The page's HTML and chats get what is kept."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import StoreError

if TYPE_CHECKING:
    from . import Store

LOG = logging.getLogger(__name__)
KEPT = 100
"""Pictures beside those that ship, waiting ones too; all take about 25 MB."""


@dataclass(frozen=True)
class Picture:
    """A duel's charts as SVG by name, for light and dark pages, and a PNG for chats and feeds."""

    light: dict[str, str]
    dark: dict[str, str]
    card: bytes


def ask(store: Store, runs: Sequence[int], visitor: str | None) -> None:
    """Let the picture of these runs be drawn, unless it was asked for. It takes the place of one that this
    visitor still waits for; without a visitor it stays for good. Where that can't be written it is logged."""
    name = _name(runs)
    db = store.db.connection
    try:
        if db.execute("SELECT 1 FROM pictures WHERE runs = ?", (name,)).fetchone():
            return
        with store.db.transaction():
            db.execute("DELETE FROM pictures WHERE card IS NULL AND visitor = ?", (visitor,))
            db.execute(
                "INSERT OR IGNORE INTO pictures (runs, visitor) VALUES (?, ?)", (name, visitor)
            )
            db.execute(
                "DELETE FROM pictures WHERE id IN (SELECT id FROM pictures WHERE visitor IS NOT NULL "
                "ORDER BY id DESC LIMIT -1 OFFSET ?)",
                (KEPT,),
            )
    except StoreError as error:  # a full disk: the page is shown all the same
        LOG.warning("the picture of runs %s could not be asked for: %s", name, error)


def waiting(store: Store, after: int = 0) -> tuple[int, str] | None:
    """The first picture after number `after` that waits to be drawn: its number and its runs, "12,13"."""
    row = store.db.connection.execute(
        "SELECT id, runs FROM pictures WHERE card IS NULL AND id > ? ORDER BY id LIMIT 1", (after,)
    ).fetchone()
    return None if row is None else (row["id"], row["runs"])


def keep(store: Store, runs: Sequence[int], picture: Picture) -> None:
    """Store a picture that was asked for; nothing where it no longer is. Raises StoreError."""
    charts = json.dumps({"light": picture.light, "dark": picture.dark}).encode()
    store.db.connection.execute(
        "UPDATE pictures SET card = ?, charts = ? WHERE runs = ?",
        (picture.card, zlib.compress(charts), _name(runs)),
    )


def of(store: Store, runs: Sequence[int]) -> Picture | None:
    """The picture of these runs; None where it is not drawn."""
    row = store.db.connection.execute(
        "SELECT card, charts FROM pictures WHERE runs = ? AND card IS NOT NULL", (_name(runs),)
    ).fetchone()
    return Picture(card=row["card"], **json.loads(zlib.decompress(row["charts"]))) if row else None


def _name(runs: Sequence[int]) -> str:
    return ",".join(map(str, runs))
