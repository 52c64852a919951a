"""`normviz census`: read norms and placements of real models from `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..catalog.models import OTHERS, TABLE, Census
from . import main
from .errors import complain


@main.command()
def census(
    out: Annotated[Path, typer.Option(help="Write FILE.json")] = TABLE,
) -> None:
    """Read norm, placement, final norm, QK-norm and embedding norm of every model from its code.

    Needs `transformers`, whose code is analysed on symbols and never run.
    """
    from ..census.table import NotInstalledError
    from ..census.table import census as read

    try:
        found = read()
        out.write_text(found.dump(), encoding="utf-8")
    except NotInstalledError as error:
        complain(error)
    except OSError as error:
        complain(f"--out {str(out)!r} can't be written: {error.strerror}")
    counts = (
        f"{len(rows)} of {what}, the placement decided in {sum(bool(row.placement) for row in rows)}"
        for what, rows in (("language models", found.models), ("others", found.of(OTHERS)))
    )
    typer.echo(f"{out}: rows from transformers {found.transformers}: {'; '.join(counts)}")


def table(it: Census) -> str:
    """The census as text."""
    lines = [
        f"read from the code of transformers {it.transformers} on {it.day}, with the defaults of each "
        "configuration",
        "rows are code paths of a library, not models in use",
        f"{'model':24} {'kind':16} {'placement':24} {'norm':28} {'final norm':18} {'QK-norm':18} "
        f"{'embedding norm':18} remarks",
    ]
    for model in (*it.models, *it.of(OTHERS)):
        placement, norm, final, qk, embed = model.words
        lines.append(
            f"{model.model:24} {model.kind:16} {placement:24} {norm:28} {final:18} {qk:18} {embed:18} "
            f"{model.remarks}".rstrip()
        )
    return "\n".join(lines)
