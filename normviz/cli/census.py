"""`normviz census`: read norms and placements of real models from `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..catalog.models import TABLE, Census
from . import main
from .errors import complain


@main.command()
def census(
    out: Annotated[Path, typer.Option(help="Write FILE.json")] = TABLE,
) -> None:
    """Read norm, placement, final norm and QK-norm of every language model from its code.

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
    placed = sum(model.placement is not None for model in found.models)
    typer.echo(
        f"{out}: {len(found.models)} rows from transformers {found.transformers}, the placement decided "
        f"in {placed}"
    )


def table(it: Census) -> str:
    """The census as text."""
    lines = [
        f"read from the code of transformers {it.transformers} on {it.day}, with the defaults of each "
        "configuration",
        f"{'model':24} {'placement':24} {'norm':28} {'final norm':18} {'QK-norm':18} remarks",
    ]
    for model in it.models:
        placement, norm, final, qk = model.words
        lines.append(
            f"{model.model:24} {placement:24} {norm:28} {final:18} {qk:18} {model.remarks}".rstrip()
        )
    return "\n".join(lines)
