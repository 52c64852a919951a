"""`normviz bench`: ratios and latencies, measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import main

bench = typer.Typer(help="Measure this machine: each command prints what it measured, and how.")
main.add_typer(bench, name="bench")


@bench.command()
def speed(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of all kinds")] = 5,
) -> None:
    """A training step with default probes, beside torch.nn, lean PyTorch, x-transformers and GPT-2.

    Also without probes and, at the hero's size, of Post-LN and Peri-LN. The last two peers need the tests'
    packages.
    """
    from .bench_speed import measure

    typer.echo(measure(rounds))


@bench.command()
def norms(
    width: Annotated[int, typer.Option(help="Numbers per token, a multiple of 32")] = 128,
    tokens: Annotated[int, typer.Option(help="Tokens per batch, a multiple of 64")] = 512,
    threads: Annotated[int, typer.Option(help="CPU threads")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    seconds: Annotated[float, typer.Option(help="About how long to measure")] = 15.0,
    out: Annotated[Path | None, typer.Option(help="Also write FILE.json")] = None,
) -> None:
    """LayerNorm, RMSNorm three ways, DyT and none: alone, in a block, in a whole training step.

    No round is timed while a run of the data folder trains. The page Choose shows the result as well.
    """
    from .norm_cost import norms as measured

    typer.echo(measured(width, tokens, threads, device, seconds, out))


@bench.command()
def verdicts() -> None:
    """Error rate of the verdicts: on simulated curves, and on shipped runs that are cut short."""
    from .bench_verdicts import measure

    typer.echo(measure())


@bench.command()
def load(
    watchers: Annotated[int, typer.Option(min=1, max=1000, help="Visitors at once")] = 100,
    queued: Annotated[
        int, typer.Option("--queue", min=0, max=1000, help="Runs queued after the duel")
    ] = 50,
    seconds: Annotated[float, typer.Option(min=2, max=3600, help="Length of each phase")] = 10.0,
    rounds: Annotated[int, typer.Option(min=1, help="Phases with watchers")] = 6,
    churn: Annotated[
        float,
        typer.Option(min=0, max=1000, help="Visitors per second who are replaced"),
    ] = 0.5,
) -> None:
    """A class that watches one duel train: the visitors' update rate, and the cost to training."""
    from .bench_load import measure

    typer.echo(measure(watchers, queued, seconds, rounds, churn))
