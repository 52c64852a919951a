"""A zip of tables, with the configs and a README that says what every column is."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import IO, Literal, get_args

import pyarrow as pa
from pyarrow import csv, parquet

from .. import __version__
from ..observed import Observed
from ..runs.lane import Lane
from ..runs.outcome import came_out
from .config_json import write_configs
from .tables import COLUMNS, tables

Kind = Literal["csv", "parquet"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ROWS = 65_536
"""Of a table that become text at once."""

README = """NormViz {version}: {names}

{came_out}

steps.{kind}    one row a step: loss, learning rate, gradient norm
layers.{kind}   one row a probe, step and layer
runs.{kind}     one row a run: what came of it, and every setting
probes.{kind}   what was measured in the layers, with units and sources
columns.{kind}  this list of columns
{configs}

{hint}
{seeds}

{columns}
"""
CONFIGS = "config.json     the settings, for `normviz run --config config.json --lane N`"
OBSERVED = (
    "{names} was observed: somebody's own model, which has no settings that could be trained. Its record is "
    "in the column config of the table runs."
)
ONE = "One seed a lane. Join tables by the column lane."
SEVERAL = (
    "Several seeds a lane, in init_seed and data_seed. Join tables by lane and run. config.json "
    "has each lane's settings with its first seed, and the seeds of its repeats."
)
HINTS: dict[Kind, str] = {
    "csv": "Numbers that are not finite are written nan, inf and -inf; an empty field is no "
    "number.",
    "parquet": "Numbers that are not finite are NaN and infinities; a null is no number. Every "
    "column's unit and meaning is in the schema too.",
}


def archive(lanes: Sequence[Lane], kind: Kind) -> bytes:
    """The zip of some lanes: equal lanes give equal bytes. Raises ValueError for one without a run."""
    made, sink = tables(lanes), io.BytesIO()
    with zipfile.ZipFile(sink, "w") as files:
        _add(files, "README.txt", readme(lanes, kind).encode())
        if settings := [lane for lane in lanes if not isinstance(lane.config, Observed)]:
            _add(files, "config.json", write_configs(settings).encode())
        for name, table in made.items():
            with files.open(_entry(f"{name}.{kind}", kind == "csv"), "w") as file:
                WRITERS[kind](table, file)
    return sink.getvalue()


def readme(lanes: Sequence[Lane], kind: Kind) -> str:
    """What is in the zip, and the column dictionary as text."""
    names = "; ".join(f"lane {lane.letter} is {lane.key}" for lane in lanes)
    several = any(lane.repeats for lane in lanes)
    columns = "\n".join(
        f"{f'{c.table}.{c.column}':20} {c.type:10} {c.unit:17} {c.meaning} [{c.source}]"
        for c in COLUMNS
    )
    observed = [lane.letter for lane in lanes if isinstance(lane.config, Observed)]
    configs = [CONFIGS] if len(observed) < len(lanes) else []
    configs += [OBSERVED.format(names=f"Lane {name}") for name in observed]
    return README.format(
        version=__version__, names=names, kind=kind, hint=HINTS[kind], columns=columns,
        seeds=SEVERAL if several else ONE, came_out="\n".join(came_out(lanes).lines),
        configs="\n".join(configs),
    )  # fmt: skip


def _entry(name: str, small: bool = True) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # its date is fixed, so that equal lanes give equal bytes
    entry.compress_type = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
    entry.external_attr = 0o644 << 16
    return entry


def _add(files: zipfile.ZipFile, name: str, data: bytes) -> None:
    files.writestr(_entry(name), data)


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """Rows in portions, since words that repeat become text only here."""
    plain = pa.schema(
        [
            pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f
            for f in table.schema
        ]
    )
    with csv.CSVWriter(file, plain) as writer:  # texts and names in quotes, numbers without
        for start in range(0, table.num_rows, ROWS):
            writer.write_table(table.slice(start, ROWS).cast(plain))


def _write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    parquet.write_table(table, file, compression="zstd")


WRITERS = {"csv": _write_csv, "parquet": _write_parquet}
