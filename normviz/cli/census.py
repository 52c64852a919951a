"""`normviz census`: how each row of the table of real models was told, and the table made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated

import typer

from ..catalog.models import OTHERS, TABLE, Census, Model
from ..catalog.models import census as shipped_rows
from ..own_model import census as rows
from ..own_model import shipped
from ..own_model.report import Anatomy
from . import main
from .errors import complain
from .inspect import quiet


@main.command()
def census(
    types: Annotated[
        list[str] | None, typer.Argument(help="Model types of transformers; default: all rows")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Inspect them and make their rows again")
    ] = False,
) -> None:
    """Print how each row of the table of real models was told, or make its rows again.

    `normviz list --models` prints the table itself. --write inspects each model type anew, which needs
    `transformers` and some minutes, and makes `models.json` and `anatomies.json` again. A type
    without a row gets one.
    """
    table, traced = shipped_rows(), shipped.anatomies()
    names = list(dict.fromkeys(types or (row.model for row in table.all)))
    try:
        if write:
            table, traced = remade(names, table, traced)
            TABLE.write_text(table.dump(), encoding="utf-8")
            shipped.TABLE.write_text(shipped.dump(traced), encoding="utf-8")
        models = [row for row in table.all if row.model in names]
        if missing := set(names) - {row.model for row in models}:
            raise ValueError(f"the census has no row of {', '.join(sorted(missing))}")
    except (ValueError, OSError) as error:
        complain(error)
    typer.echo(comparison(models, traced))


def remade(
    names: Iterable[str], table: Census, traced: Mapping[str, Anatomy | str]
) -> tuple[Census, Mapping[str, Anatomy | str]]:
    """Rows and anatomies with those of these model types made again. Raises ValueError."""
    from ..own_model import library
    from ..own_model.anatomy import inspect_named
    from ..own_model.source import MISSING, offline

    if not library.is_installed():
        raise ValueError(MISSING)
    offline()
    again, new = dict(traced), list[Model]()
    known = {row.model for row in table.all}
    if unknown := set(names) - known - library.models().keys():
        raise ValueError(f"transformers lists no model type {', '.join(sorted(unknown))}")
    for name in names:
        with quiet():
            try:
                anatomy = inspect_named(name)
            except Exception as error:  # whatever a model's code raises is its row
                lines = str(error).splitlines()
                anatomy = lines[0][:300] if lines else type(error).__name__
        again[name] = anatomy
        typer.echo(
            f"{name}: {anatomy if isinstance(anatomy, str) else anatomy.main.placement_words}",
            err=True,
        )
        if isinstance(anatomy, Anatomy) and name not in known:
            kind, year = library.models()[name][0], library.year(library.code_of(name))
            new += rows.rows_of(name, kind, year, anatomy, library.version())
    for row in table.all:
        stack = rows.stack_of(row, again.get(row.model))
        new.append(rows.made_again(row, stack, library.version()) if row.model in names else row)
    new.sort(key=lambda row: row.model)
    return replace(table, day=date.today().isoformat(), all=tuple(new)), again


def comparison(models: Iterable[Model], traced: Mapping[str, Anatomy | str]) -> str:
    """The counts, each row that the flow of data does not tell, and each answer that it gives otherwise."""
    every = [*rows.compared(models, traced)]
    count = Counter(pair.outcome for pair in every)
    count.setdefault(rows.CONTRADICTED, 0)
    lines = [f"{len(every)} rows: {'; '.join(f'{n} {what}' for what, n in count.most_common())}"]
    for pair in every:
        if pair.outcome != rows.CONFIRMED:
            here = rows.answers(pair.stack)["placement"]
            lines.append(
                f"{pair.row.model:28} {pair.outcome:24} table: {pair.row.placement or '-':14} data flow: "
                f"{here or '-':14} {pair.why}"
            )
    for pair in every:
        if other := rows.differences(pair):
            lines.append(f"{pair.row.model:28} {'; '.join(other)}: {rows.reasons(pair.row.model)}")
    return "\n".join(lines)


def table(full_census: Census) -> str:
    """The census as text."""
    lines = [
        full_census.origin,
        f"{'model':24} {'kind':16} {'placement':24} {'norm':28} {'final norm':18} {'QK-norm':18} "
        f"{'embedding norm':18} {'told by':40} remarks",
    ]
    for model in (*full_census.models, *full_census.of(OTHERS)):
        placement, norm, final, qk, embed = model.words
        lines.append(
            f"{model.model:24} {model.kind:16} {placement:24} {norm:28} {final:18} {qk:18} {embed:18} "
            f"{model.told_words:40} {model.remarks}".rstrip()
        )
    return "\n".join(lines)
