"""`normviz run [LINK or preset] [key=value ...]`: train one lane or all here and print what came out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..catalog import TASKS
from ..config import ConfigError, RunConfig, seeded, seeds_of
from ..lessons.presets import PRESETS
from ..limits import MAX_SWEEP_SEEDS
from ..links import decode, encode, settings, shown
from ..model import texts
from ..model.characters import one_line
from ..observed import configured
from ..result import Result, result_of
from ..runs import RecordingBuilder
from ..runs.lane import LETTERS
from ..runs.names import lane_name
from ..runs.outcome import outcome
from ..runs.store import Store
from ..runs.verdict import final_loss
from ..training.events import Step
from . import main
from .errors import complain
from .places import TABLES, check_file, write_table

LONGEST = 1_000_000
"""Bytes of a file of settings; four lanes have about 4,000."""


@main.command()
def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LINK or preset] [key=value ...]", show_default=False),
    ] = None,
    at: Annotated[str, typer.Option(help="Steps whose layers --json prints: 0,10,199")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per seed")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write all data to FILE.csv, .parquet or .json")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="Train on the characters of this FILE (task=text)")
    ] = None,
    lane: Annotated[
        str, typer.Option(help="Which lane of a link, preset or file: 1, 2 ... or all")
    ] = "1",
    configs: Annotated[
        Path | None, typer.Option("--config", help="Take the settings from FILE.json")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=256, help="CPU threads")] = 1,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_SWEEP_SEEDS, help="Number of seeds; prints what came out of all of them"
        ),
    ] = 1,
) -> None:
    """Train one lane of a link or preset (default: hero, Pre-LN), or all, with settings changed."""
    try:
        lanes = read_chosen(words or [], lane, text, configs)
        at_steps = {name: read_at(at, config) for name, config in lanes.items()}
        check_file(out, (*TABLES, ".json"), "--out")
        if out is not None and (seeds > 1 or len(lanes) > 1):
            several = "--seeds asks" if seeds > 1 else "--lane all asks"
            raise ValueError(
                f"--out writes one run and {several} for several: `normviz export` with --seeds "
                "writes them"
            )
        each = {name: seeded(config, seeds) for name, config in lanes.items()}
    except (ConfigError, ValueError) as error:
        complain(error)
    results: dict[str, list[Result]] = {name: [] for name in lanes}
    several = seeds > 1 or len(lanes) > 1
    for seeded_config, name in (
        (seed[i], name) for i in range(seeds) for name, seed in each.items()
    ):
        results[name].append(result := follow(seeded_config, at_steps[name], threads))
        if out is not None:
            write(result, out, at_steps[name])
        if as_json:
            typer.echo(json.dumps(result.as_json(at_steps[name]), allow_nan=False))
        elif several:
            prefix = f"{name}, " if len(lanes) > 1 else ""
            typer.echo(f"{prefix}{seeds_of(seeded_config)}: {result.verdict.sentence}")
        else:
            typer.echo(report(result))
        if result.status == "stopped":
            raise typer.Exit(130)
    if several and not as_json:
        typer.echo("\n".join(("What came out", *outcome(results).lines)))


def read_chosen(
    words: Sequence[str],
    lane: str = "1",
    text: Path | None = None,
    configs: Path | None = None,
) -> dict[str, RunConfig]:
    """The configs of a command line by the names of their lanes, such as "B Post-LN". The text of --text
    is stored. Raises ValueError with a sentence."""
    names, changes = read_words(words)
    if names and configs is not None:
        raise ValueError(f"{names[0]!r} is one name too many: the settings come from --config")
    lane_configs = read_file(configs) if configs else read_lanes(names[0] if names else "hero")
    lanes = list(enumerate(lane_configs))
    if lane != "all":
        if not (lane.isdecimal() and 1 <= int(lane) <= len(lanes)):
            raise ValueError(
                f"lane is {lane}, allowed is a whole number from 1 to {len(lanes)}, or all"
            )
        lanes = [lanes[int(lane) - 1]]
    if text is not None:
        if "text" in changes:
            raise ValueError("text= and --text both name a text: give one of them")
        changes = {
            "task": "text",
            **changes,
            "text": texts.add(text, needed=lambda: Store().needed_texts()),
        }
    each = [(index, config.replace(**changes)) for index, config in lanes]
    others = [config for _, config in each]
    return {" ".join(lane_name(LETTERS[i], config, others).split()): config for i, config in each}


def read_words(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The name in a command line, if any, and its settings. Raises ValueError with a sentence."""
    names = [word for word in words if "?" in word.partition("=")[0] or "=" not in word]
    if len(names) > 1:
        raise ValueError(f"{names[1]!r} is one name too many: give one link or preset")
    changes = settings([word for word in words if word not in names])
    if changes.get("task", "text") != "text":
        changes = {"text": "none", **changes}  # the link's text does not fit another task
    return names, changes


def read_file(path: Path) -> tuple[RunConfig, ...]:
    """The lanes of a file of configs."""
    from ..export import read_configs  # slow: imports pandas and Altair

    text = read_text(
        path,
        f"--config {str(path)!r}",
        LONGEST,
        "it is no file of settings: name one that `normviz export --as json` wrote",
    )
    configs = read_configs(text)
    for notice in configs.notices:
        typer.echo(f"normviz: {notice}", err=True)
    return configs.lanes


def read_text(path: Path, what: str, longest: int, mended: str) -> str:
    """The text of a file; `what` names it in an error, and `mended` says which files are meant. Raises
    ValueError with a sentence."""
    try:
        with path.open("rb") as file:  # read a limited number of bytes: the file may be endless
            content = file.read(longest + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"{what} can't be read: {why}") from None
    if len(content) > longest:
        raise ValueError(f"{what} is longer than {longest:,} bytes, so {mended}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{what} can't be read: byte {error.start} is 0x{content[error.start]:02x}, "
            "and allowed is JSON as text in UTF-8"
        ) from None


def read_lanes(name: str) -> tuple[RunConfig, ...]:
    """The lanes of a link or a preset."""
    if "?" not in name:
        return PRESETS[name].lanes()
    link = decode(name)
    if link.problems:
        raise ValueError(link.problems[0].sentence)
    for notice in link.notices:
        typer.echo(f"normviz: {notice}", err=True)
    return link.lanes


def read_at(text: str, config: RunConfig) -> tuple[int, ...]:
    """The steps of --at; a run of 0 steps has step 0."""
    last = max(config.steps, 1) - 1
    if not text:
        return () if config.steps else (0,)
    try:
        steps = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ValueError(f"--at is {text!r}, allowed are steps such as 0,10,{last}") from None
    for step in steps:
        if not 0 <= step <= last:
            raise ValueError(f"--at names step {step}, this run has steps 0 to {last}")
    return steps


def follow(config: RunConfig, at: Sequence[int], threads: int) -> Result:
    """Train with a progress bar on a terminal; Ctrl-C stops and keeps the steps so far."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    builder = RecordingBuilder()
    with Progress(
        *columns, console=console, disable=not sys.stderr.isatty(), transient=True
    ) as bar:
        task = bar.add_task("loading", total=max(config.steps, 1))
        import torch

        from ..training.loop import train

        torch.set_num_threads(threads)
        try:
            for event in builder.follow(train(config, also_at=at)):
                if isinstance(event, Step):
                    bar.update(task, advance=1, description=f"loss {event.loss:.3f}")
        except KeyboardInterrupt:
            if builder.started is None:
                raise typer.Exit(130) from None
        except ConfigError as error:
            complain(error)
    return result_of(builder.recording())


def write(result: Result, out: Path, at: Sequence[int]) -> None:
    """The tidy table as CSV or Parquet, or the JSON object."""
    try:
        if out.suffix == ".json":
            out.write_text(json.dumps(result.as_json(at), allow_nan=False))
        else:
            write_table(result.tidy(), out)
    except OSError as error:
        complain(f"--out {str(out)!r} can't be written: {error.strerror}")


def report(result: Result) -> str:
    """The result as text."""
    started, config = result.started, configured(result.config)
    assert started is not None
    names = ("scheme", "norm", "init", "task", "optimizer")
    head = ", ".join(shown(name, getattr(config, name)) for name in names)
    floor = "unknown" if started.floor is None else f"{started.floor:.3f}"
    n, rate = len(result.steps), len(result.steps) / max(result.seconds, 1e-9)
    losses, held_out = result.losses, result.held_out
    return "\n".join(
        (
            f"{head}; depth {config.depth}, width {config.width}, lr {config.lr:g}, "
            f"{started.parameters:,} parameters (1 seed)",
            result.verdict.sentence,
            f"loss {losses[0]:.3f} at step 0, {final_loss(losses):.3f} in the last tenth; "
            f"{'' if held_out is None else f'held-out {held_out:.3f}; '}"
            f"chance {started.chance:.3f}, floor {floor} ({TASKS[config.task].unit})",
            *[f"writes at step {at}: “{one_line(w.text)}”" for at, w in result.writings[-1:]],
            f"{n} step{'s' * (n != 1)} in {result.seconds:.1f} s, {rate:.0f} a second "
            f"({started.device}, {started.threads} thread{'s' * (started.threads > 1)}, engine "
            f"{started.engine}{f': {started.why}' if started.why else ''})",
            f"{config.key}  ?{encode([config])}",
        )
    )
