"""Columns to Arrow IPC bytes: the form in which a live chart's named datasets travel.

Streamlit passes bytes through untouched, so writing them here skips its pandas round trip, and
equal bytes let the browser skip a dataset that did not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Column = NDArray[Any] | Sequence[str]


def ipc(columns: Mapping[str, Column]) -> bytes:
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
