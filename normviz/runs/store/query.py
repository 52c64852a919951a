"""Queries for stored runs. Results come newest first, cells of sweeps after all others, and shipped runs
last: otherwise the runs of a sweep or an update would come before visitors' own.

A config is JSON in one column. A scan of 10,000 configs takes about 40 ms, so there is no index.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Literal

from ...config import DEFAULTS, SETTINGS, WRITTEN
from .. import Run
from .rows import CELL, RESULT, readable

COLUMNS = ("id", "key", "status", "origin")
MODEL = "model"
"""The name of an observed model, in small letters."""
OBSERVED = {"scheme": "placement", "depth": "blocks"}
"""Settings that the record of an observed run has under another name."""
ORDER = "origin LIKE 'shipped%', origin LIKE '%sweep', id DESC"
Value = str | int | float | None


@dataclass(frozen=True)
class Condition:
    """A field of the config, MODEL, or one of COLUMNS is one of these values, or none of them, starts with
    one of them, or contains one."""

    name: str
    values: tuple[Value, ...]
    how: Literal["is", "is not", "starts", "contains"] = "is"


Clause = tuple[Condition, ...]
"""At least one of these conditions holds; an empty clause matches no run."""


@dataclass(frozen=True)
class Query:
    """Runs that match every clause. `only` limits them to these numbers; `trained` leaves out runs of 0
    steps, and those that were stopped before they began."""

    clauses: tuple[Clause, ...] = ()
    only: frozenset[int] | None = None
    trained: bool = False


@dataclass(frozen=True)
class QueryResult:
    """Some of the wanted runs, in order.

    total    how many are wanted in all
    foreign  numbers of those among these that this release can't read
    """

    runs: tuple[Run, ...]
    total: int
    foreign: tuple[int, ...] = ()


def listed(
    db: sqlite3.Connection, wanted: Query, limit: int, offset: int, own_text: bool
) -> QueryResult:
    """At most `limit` wanted runs, after the first `offset` ones; `own_text` as in `readable`. Raises
    ValueError for a condition on a field that does not exist."""
    where, values = _where(wanted, own_text)
    total = db.execute(f"SELECT COUNT(*) FROM runs WHERE {where}", values).fetchone()[0]
    rows = db.execute(
        "SELECT * FROM runs WHERE id IN "
        f"(SELECT id FROM runs WHERE {where} ORDER BY {ORDER} LIMIT ? OFFSET ?) ORDER BY {ORDER}",
        (*values, limit, offset),
    ).fetchall()
    runs, foreign = [], []
    for row in rows:
        if (run := readable(row, own_text)) is not None:
            runs.append(run)
        else:  # of another release, or damaged
            foreign.append(row["id"])
    return QueryResult(tuple(runs), total, tuple(foreign))


def _where(wanted: Query, own_text: bool) -> tuple[str, list[Value]]:
    """The condition and the values of its question marks."""
    parts: list[str] = [f"origin != 'reading' AND (NOT {CELL} OR {RESULT})"]
    values: list[Value] = []
    for clause in wanted.clauses:
        parts.append(f"({' OR '.join(_holds(condition, values) for condition in clause) or '0'})")
    if wanted.only is not None:
        parts.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(wanted.only)))
    if wanted.trained:
        parts.append(_holds(Condition("steps", (0,), "is not"), values))
        parts.append("NOT (status = 'stopped' AND started IS NULL)")
    if not own_text:
        parts.append(f"{_expression('text')} IS NULL")
    return " AND ".join(parts), values


def _holds(condition: Condition, values: list[Value]) -> str:
    """The condition in SQL; the values of its question marks are added to `values`."""
    # NULL is an option that is off. IN of SQL never finds NULL, so it gets a name here.
    name = condition.name
    field = f"COALESCE({_expression(name)}, {_unwritten(name)}, 'null')"
    given = ["null" if value is None else value for value in condition.values]
    values += given
    if condition.how == "contains":
        return " OR ".join(f"instr({field}, ?) > 0" for _ in given) or "0"
    if condition.how == "starts":
        return " OR ".join(f"instr({field}, ?) = 1" for _ in given) or "0"
    marks = ", ".join("?" * len(given))
    return f"{field} {'NOT IN' if condition.how == 'is not' else 'IN'} ({marks})"


def _unwritten(name: str) -> str:
    """The value of a setting that a run's config leaves out at its default; NULL of an observed run."""
    value = DEFAULTS.get(name)
    if name in WRITTEN or value is None:
        return "NULL"
    literal = f"'{value}'" if isinstance(value, str) else f"{value:g}"
    return f"CASE WHEN origin != 'observed' THEN {literal} END"


def _expression(name: str) -> str:
    """A column, or a field of the config. Raises ValueError for any other name."""
    if name in COLUMNS:
        return name
    if name == MODEL:
        return "lower(json_extract(config, '$.model'))"
    if name not in SETTINGS:
        raise ValueError(
            f"{name!r} is no setting of a run and none of {', '.join(COLUMNS)}, {MODEL}"
        )
    if other := OBSERVED.get(name):  # the record of an observed run calls it otherwise
        return f"COALESCE(json_extract(config, '$.{name}'), json_extract(config, '$.{other}'))"
    return f"json_extract(config, '$.{name}')"
