"""`normviz bench`: ratios and latencies, measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import main

bench = typer.Typer(help="Measure this machine: each command prints what it measured, and how.")
main.add_typer(bench, name="bench")


@bench.command()
def probes(
    words: Annotated[list[str] | None, typer.Argument(metavar="[preset] [key=value ...]")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Whole runs of each kind")] = 5,
) -> None:
    """Cost of the probes: training with all of them and with none, interleaved."""
    from ..bench.probes import BATCH_STEPS, measure
    from .errors import complain
    from .run import read_config

    try:
        config = read_config(words or [])
        if config.steps < BATCH_STEPS:
            raise ValueError(f"steps is {config.steps}, allowed here is {BATCH_STEPS} or more")
    except ValueError as error:
        complain(error)
    typer.echo(measure(config, rounds))


@bench.command()
def watch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of 20 steps of each kind")] = 20,
    blocks: Annotated[int, typer.Option(min=2)] = 6,
    width: Annotated[int, typer.Option(min=64)] = 256,
    tokens: Annotated[int, typer.Option(min=8)] = 128,
    batch: Annotated[int, typer.Option(min=1)] = 4,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    charts: Annotated[
        int, typer.Option(min=1, help="Pages in which the first charts are awaited")
    ] = 5,
) -> None:
    """Cost of `normviz.watch` beside `wandb.watch` in offline mode, on a model of GPT-2's shape; and how soon
    a notebook has the first charts.

    Needs transformers, and for the charts the tests' packages; wandb is measured where it is installed.
    """
    from ..bench.watch import first_chart, measure

    typer.echo(measure(rounds, blocks, width, tokens, batch, threads))
    typer.echo(first_chart(charts))


@bench.command()
def click(clicks: Annotated[int, typer.Option(min=1)] = 10) -> None:
    """Time from a click on Train to the first recorded step, and from Stop to the end, warm."""
    from ..bench.click import measure

    typer.echo(measure(clicks))


@bench.command()
def live(
    seconds: Annotated[float, typer.Option(min=1, max=86_400, help="How long to watch")] = 10.0,
) -> None:
    """Frame rate of the page while four lanes train, in headless Chromium, and of a plain Streamlit page.

    Needs the tests' packages.
    """
    from ..bench.live import measure

    typer.echo(measure(seconds))


@bench.command("open")
def open_(rounds: Annotated[int, typer.Option(min=1, help="Visits of each kind")] = 5) -> None:
    """When the first chart is seen and how much the page shifts, beside a plain Streamlit page.

    Needs the tests' packages.
    """
    from ..bench.open import measure

    typer.echo(measure(rounds))


@bench.command()
def switch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of four placements")] = 5,
) -> None:
    """From a turn of the placement switch to the finished curves, in headless Chromium.

    Needs the tests' packages.
    """
    from ..bench.switch import measure

    typer.echo(measure(rounds))


@bench.command()
def film(
    out: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Folder for the files")],
) -> None:
    """The README's pictures of the page, and ten seconds of it training (needs the tests' packages)."""
    from ..bench.film import film as record

    typer.echo(record(out))


@bench.command()
def anatomy(
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each kind")] = 10,
) -> None:
    """Time from the Anatomy page's depth slider to the new curves (needs the tests' packages)."""
    from ..bench.anatomy import measure

    typer.echo(measure(rounds))


@bench.command("map")
def map_() -> None:
    """A map of 30 cells: on one core, on all of them, and with early stop."""
    from ..bench.map import measure

    typer.echo(measure())


@bench.command()
def early(
    runs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Settings drawn from the rule's scope")
    ] = 300,
) -> None:
    """Early stop of sweeps: how many runs it stops, and how many of them would have trained."""
    from ..bench.early import measure

    typer.echo(measure(runs))


@bench.command()
def verdicts() -> None:
    """Error rate of the verdicts: on simulated curves, and on shipped runs that are cut short."""
    from ..bench.verdicts import measure

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
    from ..bench.load import measure

    typer.echo(measure(watchers, queued, seconds, rounds, churn))


@bench.command()
def churn(
    watchers: Annotated[int, typer.Option(min=1, max=1000, help="Visitors at once")] = 100,
    per_second: Annotated[
        float, typer.Option(min=0, max=20, help="Visitors per second who are replaced")
    ] = 1.0,
    minutes: Annotated[float, typer.Option(min=0.1, max=1440, help="Duration")] = 30.0,
) -> None:
    """A shared server while visitors come and go: whether its memory stops growing."""
    from ..bench.churn import measure

    typer.echo(measure(watchers, per_second, minutes))


@bench.command()
def queue(
    minutes: Annotated[
        float, typer.Option(min=1, max=1440, help="Simulated minutes of each attack")
    ] = 20.0,
) -> None:
    """How long an honest visitor waits while new cookies ask a shared server without end (simulated time)."""
    from ..bench.queue import measure

    typer.echo(measure(minutes))


@bench.command()
def attack(
    names: Annotated[
        list[str] | None, typer.Argument(help="Attacks, by name; all if none is named")
    ] = None,
    visitors: Annotated[int, typer.Option(min=1, max=200, help="Honest visitors at once")] = 20,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Length of each attack")] = 60.0,
    after: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds after an attack until memory is read")
    ] = 60.0,
) -> None:
    """What visitors of a shared server feel while one network address asks too much of it.

    The server runs on this machine's loopback address. Exit code 1 where a goal is missed.
    """
    from ..bench.attack import ATTACKS, measure, table

    for name in names or ():
        if name not in ATTACKS:
            raise typer.BadParameter(
                f"{name[:40]!r} is no attack, allowed are {', '.join(ATTACKS)}"
            )
    found = measure(names or ATTACKS, visitors, seconds, after)
    typer.echo(table(found, visitors, seconds, after))
    if any(one.wrong for one in found):
        raise typer.Exit(1)


@bench.command()
def soak(
    links: Annotated[int, typer.Option(min=0, help="Hostile links to open")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="Processes to kill while runs train")] = 100,
    seconds: Annotated[
        float, typer.Option(min=1, max=86_400, help="No kill starts after this time")
    ] = 3600.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of links and kills")] = 0,
) -> None:
    """Hostile links through every page's state, and random kills: nothing may break or be lost.

    Exit code 1 after a violation.
    """
    from ..bench.soak import soak as run

    found = run(links, kills, seconds, seed)
    typer.echo(found.table)
    if found.wrong:
        raise typer.Exit(1)


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

    No run of the data folder trains meanwhile. The Norm cost page shows the result as well.
    """
    from .norm_cost import norms as measured

    typer.echo(measured(width, tokens, threads, device, seconds, out))


@bench.command()
def start(
    rounds: Annotated[int, typer.Option(min=1, help="Processes of each kind")] = 5,
) -> None:
    """Start-up time of commands, compared with Python's import of torch, interleaved."""
    from ..bench.start import measure

    typer.echo(measure(rounds))


@bench.command()
def speed(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of all kinds")] = 5,
) -> None:
    """A training step with default probes, beside torch.nn, lean PyTorch, x-transformers and GPT-2.

    At the hero's size of Post-LN and Peri-LN, too. The last two peers need the tests' packages.
    """
    from ..bench.speed import measure

    typer.echo(measure(rounds))


@bench.command()
def browser(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of all kinds")] = 5,
    configs: Annotated[
        int, typer.Option(min=1, max=500, help="Runs whose verdicts are compared")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the random configs")] = 0,
) -> None:
    """A visit of the page that trains, its speed beside the native engine and torch.nn, and its verdicts."""
    from ..bench.in_browser import measure

    typer.echo(measure(rounds, configs, seed))


@bench.command()
def shipped() -> None:
    """Counts and hashes of all shipped runs, maps and claims: equal where a change kept them."""
    from ..bench.shipped import measure

    typer.echo(measure())


@bench.command()
def rules(
    draws: Annotated[int, typer.Option(min=100, max=100_000, help="Draws of each kind")] = 4000,
) -> None:
    """How often the checks of claims are wrong and how often they decide, on simulated seeds."""
    from ..bench.rules import measure

    typer.echo(measure(draws))
