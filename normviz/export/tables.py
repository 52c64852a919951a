"""Runs as tidy Arrow tables: a row is a run, a step, or a value of a layer.

The column dictionary gives every column's meaning, unit and source; it is exported as a table too. Numbers
that are not finite stay what they are; a null means that there is no number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..catalog import PROBES
from ..catalog.probes import ProbeRecord
from ..observed import Observed, Settings
from ..runs import Recording, Steps
from ..runs.lane import Lane

Type = Literal["text", "integer", "number", "yes or no"]
Table = Literal["runs", "steps", "layers", "probes", "columns"]


@dataclass(frozen=True)
class Column:
    """A column: its table, name, type, unit (or "-"), meaning, and source."""

    table: Table
    column: str
    type: Type
    unit: str
    meaning: str
    source: str


CONFIG, STORE, TRAINED = "the config", "written down when the run started", "measured in the step"
RECORD = "the list of probes (normviz list)"
LANE = ("name of the lane in the duel", "chosen when the file was exported")
RUN = ("key of the result: engine version and hash of the config", CONFIG)
INIT_SEED = ("seed of the initial weights", CONFIG)
DATA_SEED = ("seed of the batches", CONFIG)

COLUMNS: tuple[Column, ...] = (
    Column("runs", "lane", "text", "-", *LANE),
    Column("runs", "run", "text", "-", *RUN),
    Column("runs", "status", "text", "-", "queued, running, paused, finished, diverged, stopped "
           "or failed", "the store"),
    Column("runs", "verdict", "text", "-", "result of the run, in words", "normviz.runs.verdict"),
    Column("runs", "bad_step", "integer", "steps", "where the run diverged; empty if it did not",
           TRAINED),
    Column("runs", "bad_layer", "integer", "blocks", "first block that went wrong, 0 the embedding; "
           "empty for none or the output head", TRAINED),
    Column("runs", "final_loss", "number", "nats per token", "mean loss of the last tenth of the "
           "steps, of this seed", "computed from steps.loss"),
    Column("runs", "held_out_loss", "number", "nats per token", "the last held-out loss; empty where none "
           "was measured", "computed from steps.held_out_loss"),
    Column("runs", "chance", "number", "nats per token", "loss of the best guess that ignores the "
           "context", STORE),
    Column("runs", "floor", "number", "nats per token", "lowest reachable loss; empty where unknown",
           STORE),
    Column("runs", "parameters", "integer", "numbers", "learned numbers of the model", STORE),
    Column("runs", "device", "text", "-", "cpu, or the GPU's name, with PyTorch's version and TF32 if it "
           "was on", STORE),
    Column("runs", "engine", "text", "-", "what computed the steps: eager, tape, captured or stacked", STORE),
    Column("runs", "threads", "integer", "threads", "CPU threads of the run", STORE),
    Column("runs", "text", "text", "-", "SHA-256 of the text that the task reads; empty without one",
           STORE),
    Column("runs", "config", "text", "-", "every setting, as canonical JSON", CONFIG),
    Column("runs", "init_seed", "integer", "-", *INIT_SEED),
    Column("runs", "data_seed", "integer", "-", *DATA_SEED),
    Column("steps", "lane", "text", "-", *LANE),
    Column("steps", "run", "text", "-", *RUN),
    Column("steps", "step", "integer", "steps", "number of the step, from 0", TRAINED),
    Column("steps", "tokens", "integer", "tokens", "tokens seen up to and with this step",
           "computed: (step + 1) * batch * seq_len"),
    Column("steps", "loss", "number", "nats per token", "mean training loss of the step's batch, "
           "before its update", TRAINED),
    Column("steps", "lr", "number", "-", "learning rate of the step", "the schedule"),
    Column("steps", "grad_norm", "number", "L2 norm", "norm of all gradients before clipping",
           TRAINED),
    Column("steps", "held_out_loss", "number", "nats per token", "mean loss of one batch that training never "
           "reads, after the step's update; empty where not measured", TRAINED),
    Column("steps", "logit_rms", "number", "RMS", "root mean square of the logits of the step's batch, at "
           "the steps with layers; empty where not measured", TRAINED),
    Column("steps", "writes", "text", "-", "what the model writes before the step's update, drawn at "
           "temperature 1; empty elsewhere, and for a visitor's own text", TRAINED),
    Column("steps", "finite", "yes or no", "-", "whether loss and grad_norm both are finite",
           "computed"),
    Column("steps", "init_seed", "integer", "-", *INIT_SEED),
    Column("steps", "data_seed", "integer", "-", *DATA_SEED),
    Column("layers", "lane", "text", "-", *LANE),
    Column("layers", "run", "text", "-", *RUN),
    Column("layers", "step", "integer", "steps", "number of the step, from 0; layers are recorded "
           "in the first 32 steps and in fewer after", TRAINED),
    Column("layers", "probe", "text", "-", "what was measured: a row of the table probes", RECORD),
    Column("layers", "layer", "integer", "blocks", "0 the embedding output, 1 to L the blocks",
           TRAINED),
    Column("layers", "value", "number", "see probes.unit", "the measured value; nan and inf are "
           "results and stay", TRAINED),
    Column("layers", "finite", "yes or no", "-", "whether the value is finite", "computed"),
    Column("layers", "init_seed", "integer", "-", *INIT_SEED),
    Column("layers", "data_seed", "integer", "-", *DATA_SEED),
    Column("probes", "probe", "text", "-", "key of the probe", RECORD),
    Column("probes", "label", "text", "-", "its name in the charts", RECORD),
    Column("probes", "unit", "text", "-", "unit of layers.value", RECORD),
    Column("probes", "first_layer", "integer", "blocks", "0 where the embedding output has it too, "
           "else 1", RECORD),
    Column("probes", "definition", "text", "-", "what exactly is measured", RECORD),
    Column("probes", "source", "text", "-", "publication that used it", RECORD),
    Column("columns", "table", "text", "-", "name of a table: a file of that name", "this list"),
    Column("columns", "column", "text", "-", "name of a column in it", "this list"),
    Column("columns", "type", "text", "-", "text, integer, number, or yes or no", "this list"),
    Column("columns", "unit", "text", "-", "its unit, or - for none", "this list"),
    Column("columns", "meaning", "text", "-", "its meaning", "this list"),
    Column("columns", "source", "text", "-", "where it comes from", "this list"),
)  # fmt: skip


def columns_of(table: Table) -> tuple[Column, ...]:
    """The columns of one table, in order."""
    return tuple(column for column in COLUMNS if column.table == table)


# The tables.

TYPES = {
    "text": pa.string(),
    "word": pa.dictionary(pa.int32(), pa.string()),
    "integer": pa.int64(),
    "number": pa.float64(),
    "yes or no": pa.bool_(),
}
UPDATES = "update_ratio"
"""The probe that has no value where no update was made: such rows are left out."""


def tables(lanes: Sequence[Lane]) -> dict[Table, pa.Table]:
    """The tables runs, steps, layers, probes and columns of some lanes, from all their seeds.

    Raises ValueError for a lane without a run. `.to_pandas()` makes a DataFrame of one.
    """
    runs = [
        (lane, recording) for lane in lanes for recording in (lane.recording, *lane.recordings[1:])
    ]
    probes = dict.fromkeys(key for _, recording in runs for key in recording.probes)
    return {
        "runs": _rows("runs", [_run(*run) for run in runs]),
        "steps": pa.concat_tables([steps(*run) for run in runs]).unify_dictionaries(),
        "layers": pa.concat_tables([layers(*run) for run in runs]).unify_dictionaries(),
        "probes": _rows("probes", [_probe(PROBES[key]) for key in probes]),
        "columns": _rows("columns", [asdict(column) for column in COLUMNS]),
    }


def steps(lane: Lane, recording: Recording) -> pa.Table:
    """One row a step of one of the lane's runs."""
    s, c = recording.steps, recording.config
    columns = {
        "step": s.step,
        "tokens": _tokens(c, s),
        "loss": _measured(c, s.loss),
        "lr": s.lr,
        "grad_norm": _measured(c, s.grad_norm),
        "held_out_loss": pa.array(s.held_out, mask=np.isnan(s.held_out)),
        "logit_rms": pa.array(s.logit_rms, mask=np.isnan(s.logit_rms)),
        "writes": _writes(c, s),
        "finite": _finite(c, s),
    }
    return _table("steps", {**_names(lane, recording, len(s.step)), **columns})


def _writes(config: Settings, steps: Steps) -> Any:
    """What the model writes; nulls for a visitor's own text, which it can repeat."""
    own = getattr(config, "text", "")
    return pa.array([None if own or w is None else w.text for w in steps.writing], pa.string())


def _tokens(config: Settings, steps: Steps) -> Any:
    """Tokens seen after each step; nulls for an observed run, whose batches are not known."""
    if isinstance(config, Observed):
        return pa.nulls(len(steps), pa.int64())
    return (steps.step + 1) * config.batch * config.seq_len


def _measured(config: Settings, values: NDArray[np.float64]) -> Any:
    """The values; in an observed run NaN is what was not measured, so a null."""
    return pa.array(values, mask=np.isnan(values)) if isinstance(config, Observed) else values


def _finite(config: Settings, steps: Steps) -> NDArray[np.bool_]:
    if isinstance(config, Observed):  # what is not finite is inf there
        return ~(np.isinf(steps.loss) | np.isinf(steps.grad_norm))
    return np.isfinite(steps.loss) & np.isfinite(steps.grad_norm)


def layers(lane: Lane, recording: Recording) -> pa.Table:
    """One row a probe, recorded step and layer of one of the lane's runs; the layers that a probe does not
    have are not there."""
    s, at = recording.steps, list[np.ndarray]()
    for i, key in enumerate(recording.probes):
        values = s.layers[:, i]
        there = np.full(values.shape, True)
        there[:, : PROBES[key].first_layer] = False
        if recording.is_observed:
            there &= ~np.isnan(values)  # a gap
        elif key == UPDATES:
            there[np.isnan(values).all(axis=1)] = False
        record, layer = np.nonzero(there)
        at.append(np.stack([np.full(len(record), i), record, layer]))
    probe, record, layer = np.concatenate(at, axis=1) if at else np.empty((3, 0), np.int64)
    value = s.layers[record, probe, layer]
    columns = {
        "step": s.layer_steps[record],
        "probe": pa.DictionaryArray.from_arrays(probe.astype(np.int32), list(recording.probes)),
        "layer": layer.astype(np.int64),
        "value": value,
        "finite": np.isfinite(value),
    }
    return _table("layers", {**_names(lane, recording, len(value)), **columns})


def _names(lane: Lane, recording: Recording, n: int) -> dict[str, pa.Array]:
    """The columns that name the lane and the run's seeds, `n` times the same."""
    same = np.zeros(n, np.int32)
    return {
        "lane": pa.DictionaryArray.from_arrays(same, [lane.letter]),
        "run": pa.DictionaryArray.from_arrays(same, [recording.key]),
        **{name: _seed(recording.config, name, n) for name in ("init_seed", "data_seed")},
    }


def _seed(config: Settings, name: str, n: int) -> pa.Array:
    """A seed `n` times; nulls for an observed run."""
    if isinstance(config, Observed):
        return pa.nulls(n, pa.int64())
    return pa.repeat(getattr(config, name), n)


def _run(lane: Lane, recording: Recording) -> dict[str, Any]:
    c, started, bad = recording.config, recording.started, recording.first_bad
    names = ("device", "engine", "threads", "parameters", "chance", "floor", "text")
    return {
        "lane": lane.letter,
        "run": recording.key,
        "config": json.dumps(c.model_dump(mode="json"), sort_keys=True, separators=(",", ":")),
        "status": recording.status,
        "verdict": recording.verdict.sentence,
        "final_loss": recording.final if len(recording.steps) else None,
        "held_out_loss": recording.held_out,
        **{name: getattr(started, name) if started else None for name in names},
        "bad_step": bad and bad.step,
        "bad_layer": bad and bad.layer,
        **{name: getattr(c, name, None) for name in ("init_seed", "data_seed")},
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
