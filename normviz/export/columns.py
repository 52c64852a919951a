"""The column dictionary: every column of every exported table, with meaning, unit and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    Column("runs", "verdict", "text", "-", "result of the run, in words", "normviz.verdict"),
    Column("runs", "bad_step", "integer", "steps", "where the run diverged; empty if it did not",
           TRAINED),
    Column("runs", "bad_layer", "integer", "blocks", "first block that went wrong, 0 the embedding; "
           "empty for none or the output head", TRAINED),
    Column("runs", "final_loss", "number", "nats per token", "mean loss of the last tenth of the "
           "steps, of this seed", "computed from steps.loss"),
    Column("runs", "chance", "number", "nats per token", "loss of the best guess that ignores the "
           "context", STORE),
    Column("runs", "floor", "number", "nats per token", "lowest reachable loss; empty where unknown",
           STORE),
    Column("runs", "parameters", "integer", "numbers", "learned numbers of the model", STORE),
    Column("runs", "device", "text", "-", "cpu or cuda", STORE),
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
