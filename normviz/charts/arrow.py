"""A dataset's columns as rows of JSON, or as Arrow IPC bytes, which Streamlit passes on untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Column = NDArray[Any] | Sequence[str]
Columns = Mapping[str, Column]
"""Equally long columns by name."""


def rows(columns: Columns) -> list[dict[str, Any]]:
    """One JSON object a row; a number that is not finite becomes null, which JSON can hold."""
    lists = [_plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _plain(column: Column) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind != "f":
        return column.tolist()
    return [v if ok else None for v, ok in zip(column.tolist(), np.isfinite(column), strict=True)]


def ipc(columns: Columns) -> bytes:
    """Arrow IPC stream of equally long columns (arrays of numbers, or sequences of text).

    64-bit integers travel as int32: the browser would read them as BigInt. NaN and infinity stay
    what they are. Raises pyarrow.ArrowInvalid where the lengths differ.
    """
    batch = pa.record_batch([_array(column) for column in columns.values()], names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _array(column: Column) -> pa.Array:
    if not isinstance(column, np.ndarray):
        return pa.array(column, pa.string())
    if column.dtype == np.int64:
        return pa.array(column.astype(np.int32))
    return pa.array(column)
