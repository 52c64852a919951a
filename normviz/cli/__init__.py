"""The terminal: `normviz app`, `run`, `sweep`, `claims`, `runs`, `export`, `list`, and others."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..home import Unusable
from .errors import complain

COMMANDS = {
    "app": ("app", "Start the page."),
    "run": (
        "run",
        "Train one lane of a link or preset (default: hero, Pre-LN), or all, with settings changed.",
    ),
    "sweep": (
        "sweep",
        "Run every combination of the settings' values and report which ones train.",
    ),
    "claims": ("claims", "Claims about norm placement, and their results here."),
    "list": ("list_", "Print every choice, probe and preset with its meaning."),
    "runs": (
        "runs",
        "List the stored runs of the app, newest first, sweeps and shipped ones last, or delete one.",
    ),
    "export": (
        "export",
        "Export stored runs: tables, settings, a script that repeats them, a replay in one file, or a "
        "figure of loss and layers for a paper.",
    ),
    "export-site": (
        "export",
        "Write the presets, the tour and chosen runs as pages that replay without this server.",
    ),
    "texts": (
        "texts",
        "List the texts that runs here may train on, most recently used first, or delete one.",
    ),
    "status": ("status", "Print the state of supervisor, queue and store."),
    "gc": ("gc", "Delete the oldest runs until the store fits."),
    "census": (
        "census",
        "Print how each row of the table of real models was told, or make its rows again.",
    ),
    "inspect": (
        "inspect",
        "Stack, placement, norms and scales of your own model; of weights on disk also gains and stream.",
    ),
    "doctor": (
        "inspect",
        "Look for the known bugs of norms in your own model: where, what was measured, how to mend it.",
    ),
    "diff": (
        "inspect",
        "Compare two models: norms, eps, gains, and each block's stream and gradient on the same input.",
    ),
    "homework": (
        "homework",
        "Train the runs of files that were handed in again, and print which numbers differ.",
    ),
    "bench": ("bench", "Measure this machine: each command prints what it measured, and how."),
    "ship": (
        "ship",
        "Train the missing runs that ship on one thread, and write them to assets/runs.",
    ),
    "ship-maps": (
        "ship",
        "Run the missing cells of the standard maps, or of those named, and write these to assets/maps.",
    ),
    "ship-claims": (
        "claims",
        "Run claims and write their results to assets/claims, with the runs that their links open.",
    ),
}
"""Each command's module and the first sentence of its help, so `normviz --help` imports no module."""


class Commands(TyperGroup):
    """The commands. A command's module is imported when it is called, and registers it on `main`.

    In every command, an error about a folder, the store or the environment is printed as one sentence, and
    so is what a measurement waited for in vain.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, sentence) in COMMANDS.items():
            self.commands.setdefault(name, TyperCommand(name)).short_help = sentence

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, after its module was imported."""
        if args[0] in COMMANDS:
            import_module(f".{COMMANDS[args[0]][0]}", __name__)
            self.commands.update(typer.main.get_group(main).commands)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what can't be used is one sentence and exit code 2."""
        try:
            return super().invoke(ctx)
        except (Unusable, TimeoutError) as error:
            complain(error)


main = typer.Typer(
    cls=Commands,
    help="What does it do to a transformer where you put the norm?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"normviz {__version__}")
        raise typer.Exit


@main.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    del version
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path may hold bytes that are not UTF-8
        sys.stdout.reconfigure(errors="surrogateescape")
