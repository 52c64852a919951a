"""Runs as tidy Arrow tables: one row a run, a step, or a value of a layer; and what columns mean.

Numbers that are not finite stay what they are; a null means that there is no number. Every column
is in `columns.COLUMNS`, and its unit and meaning travel in the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from ..catalog import PROBES
from ..catalog.probes import ProbeRecord
from .columns import COLUMNS, Column, Table, columns_of
from .lane import ExportLane

TYPES = {
    "text": pa.string(),
    "word": pa.dictionary(pa.int32(), pa.string()),
    "integer": pa.int64(),
    "number": pa.float64(),
    "yes or no": pa.bool_(),
}
UPDATES = "update_ratio"
"""The probe that has no value where no update was made: such rows are left out."""


def tables(lanes: Sequence[ExportLane]) -> dict[Table, pa.Table]:
    """The tables runs, steps, layers, probes and columns of some lanes, from all their seeds.

    Raises ValueError for a lane without a run. `.to_pandas()` makes a DataFrame of one.
    """
    runs = [run for lane in lanes for run in lane.seeds]
    probes = dict.fromkeys(key for run in runs for key in run.recorded.probes)
    return {
        "runs": _rows("runs", [_run(run) for run in runs]),
        "steps": pa.concat_tables([steps(run) for run in runs]).unify_dictionaries(),
        "layers": pa.concat_tables([layers(run) for run in runs]).unify_dictionaries(),
        "probes": _rows("probes", [_probe(PROBES[key]) for key in probes]),
        "columns": _rows("columns", [asdict(column) for column in COLUMNS]),
    }


def steps(lane: ExportLane) -> pa.Table:
    """One row a step."""
    s, c = lane.recorded.steps, lane.config
    columns = {
        "step": s.step,
        "tokens": (s.step + 1) * c.batch * c.seq_len,
        "loss": s.loss,
        "lr": s.lr,
        "grad_norm": s.grad_norm,
        "finite": np.isfinite(s.loss) & np.isfinite(s.grad_norm),
    }
    return _table("steps", {**_names(lane, len(s.step)), **columns})


def layers(lane: ExportLane) -> pa.Table:
    """One row a probe, recorded step and layer; the layers that a probe does not have are not there."""
    it, at = lane.recorded, list[np.ndarray]()
    s = it.steps
    for i, key in enumerate(it.probes):
        values = s.layers[:, i]
        there = np.full(values.shape, True)
        there[:, : PROBES[key].first_layer] = False
        if key == UPDATES:
            there[np.isnan(values).all(axis=1)] = False
        record, layer = np.nonzero(there)
        at.append(np.stack([np.full(len(record), i), record, layer]))
    probe, record, layer = np.concatenate(at, axis=1) if at else np.empty((3, 0), np.int64)
    value = s.layers[record, probe, layer]
    columns = {
        "step": s.layer_steps[record],
        "probe": pa.DictionaryArray.from_arrays(probe.astype(np.int32), list(it.probes)),
        "layer": layer.astype(np.int64),
        "value": value,
        "finite": np.isfinite(value),
    }
    return _table("layers", {**_names(lane, len(value)), **columns})


def _names(lane: ExportLane, n: int) -> dict[str, pa.Array]:
    """The columns that name the lane and its seeds, `n` times the same."""
    same = np.zeros(n, np.int32)
    return {
        "lane": pa.DictionaryArray.from_arrays(same, [lane.name]),
        "run": pa.DictionaryArray.from_arrays(same, [lane.config.key]),
        "init_seed": pa.repeat(lane.config.init_seed, n),
        "data_seed": pa.repeat(lane.config.data_seed, n),
    }


def _run(lane: ExportLane) -> dict[str, Any]:
    it, c = lane.recorded, lane.config
    said, bad = it.started, it.first_bad
    names = ("device", "threads", "parameters", "chance", "floor", "text")
    return {
        "lane": lane.name,
        "run": c.key,
        "config": json.dumps(lane.settings, sort_keys=True, separators=(",", ":")),
        "status": it.status,
        "verdict": it.verdict.sentence,
        "final_loss": lane.final_loss,
        **{name: getattr(said, name) if said else None for name in names},
        "bad_step": bad and bad.step,
        "bad_layer": bad and bad.layer,
        "init_seed": c.init_seed,
        "data_seed": c.data_seed,
        **({"text": None} if lane.hides_text else {}),
    }


def _probe(record: ProbeRecord) -> dict[str, Any]:
    return {**asdict(record), "probe": record.key}


def _rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A small table from its rows; what a row has beyond the table's columns is not used."""
    return _table(table, {c.column: [row[c.column] for row in rows] for c in columns_of(table)})


def _table(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """The columns as the dictionary has them: in its order, of its types, with its words."""
    fields = [
        _field(c, isinstance(columns[c.column], pa.DictionaryArray)) for c in columns_of(table)
    ]
    # from_pandas=False: a NaN is a value, and only None is a null.
    arrays = [
        x if isinstance(x := columns[f.name], pa.Array) else pa.array(x, f.type, from_pandas=False)
        for f in fields
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _field(column: Column, words: bool) -> pa.Field:
    metadata = {"unit": column.unit, "meaning": column.meaning, "source": column.source}
    return pa.field(column.column, TYPES["word" if words else column.type], metadata=metadata)
