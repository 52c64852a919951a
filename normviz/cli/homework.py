"""`normviz homework FILE ...`: whether the runs that students handed in come out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import homework as handed_in
from ..homework import HandedIn
from ..lessons.assignments import ASSIGNMENTS
from ..model.characters import one_line
from . import main
from .run import follow, read_text


@main.command()
def homework(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE ...", help="What the page Assignments gives")
    ],
) -> None:
    """Train the runs of files that were handed in again, and print which numbers differ.

    Each run of an assignment is trained once, for all files. On the kind of machine and with the engine that
    the file names its numbers must be the same bit for bit; else its outcome, and its final loss within 0.1
    nats. What was predicted and written can't be checked. Exit code 1 if one differs, 2 if one can't be read.
    """
    again: dict[str, dict[str, dict[str, Any]]] = {}
    code = 0
    for path in files:
        try:
            text = read_text(path, "the file", handed_in.LONGEST, "it was not handed in as it is")
            handed = handed_in.read(text)
        except ValueError as error:
            typer.echo(f"{path}: {error}", err=True)
            code = 2
            continue
        if handed.assignment not in again:
            again[handed.assignment] = _trained(handed)
        typer.echo(f"{path}: {one_line(handed.student)}, {ASSIGNMENTS.label(handed.assignment)}")
        if not _compare(handed, again[handed.assignment]):
            code = max(code, 1)
    raise typer.Exit(code)


def _trained(handed: HandedIn) -> dict[str, dict[str, Any]]:
    """The records of an experiment's runs, trained here one after the other on the CPU."""
    records = {}
    for name, config in handed.experiment.lanes.items():
        result = follow(config, (), 1)
        if result.status == "stopped":
            raise typer.Exit(130)
        records[name] = handed_in.record(name, result)
    return records


def _compare(handed: HandedIn, again: dict[str, dict[str, Any]]) -> bool:
    """Print what became of a file; returns whether nothing differs."""
    differ, exact = handed_in.differences(handed, again)
    total = len(again)
    if not differ:
        near = f", the others within {handed_in.TOLERANCE:g} nats and with the same outcome"
        typer.echo(f"  {exact} of {total} runs are the same bit for bit{near * (exact < total)}")
    for sentence in differ:
        typer.echo(f"  differs: {sentence}")
    typer.echo(f"  predicted: {handed.foretold} of {len(handed.runs)}")
    typer.echo(f"  answer: {one_line(handed.answer)}")
    return not differ
