"""`normviz claims`: claims of the field, measured; `claims show`, `claims run`, and `ship-claims`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..cores import cores
from ..formats import duration
from ..home import FolderError, made
from ..limits import MAX_SWEEP_SEEDS
from ..links import encode
from ..runs import shipped
from ..runs.engines import computed_by
from ..runs.shipped import adopt
from ..runs.store import Store, StoreError
from ..studies.claims import CLAIMS, Claim
from ..studies.claims.correction import family, sentences
from ..studies.claims.sentences import (
    ORDER,
    as_json,
    basis,
    by_set,
    changed_parts,
    chip,
    expected,
    late,
    splits,
)
from ..studies.claims.stored import (
    SETS,
    ClaimResult,
    explained,
    finding,
    folder,
    number_sentences,
    plain,
    pooled,
    shipped_check,
    shipped_lanes,
    shipped_result,
    shipped_sets,
    write,
)
from . import main
from .errors import complain
from .places import data_folder, is_folder

claims = typer.Typer(help="Claims about norm placement, and their results here.")
main.add_typer(claims, name="claims")

Keys = Annotated[
    list[str],
    typer.Argument(metavar="C1 [C2 ...] | all", help="Keys of claims", show_default=False),
]
Seeds = Annotated[
    int | None, typer.Option(min=1, max=MAX_SWEEP_SEEDS, help="Seeds (default: the claim's own)")
]
First = Annotated[
    int,
    typer.Option("--seeds-from", min=0, max=1_000_000, help="The first of the seeds that judge"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON")]
Processes = Annotated[
    int | None, typer.Option(min=1, max=256, help="Runs at once (default: the cores)")
]
Data = Annotated[Path | None, typer.Option(help="Folder that keeps the runs")]


@claims.callback(invoke_without_command=True)
def list_(context: typer.Context) -> None:
    """List all claims, negative and surprising results first."""
    if context.invoked_subcommand is not None:
        return
    for claim in sorted(CLAIMS, key=lambda claim: ORDER.index(chip(claim, shipped_result(claim)))):
        result = shipped_result(claim)
        took = duration(expected(claim, shipped_sets(claim), None, cores()))
        typer.echo(f"{claim.key:4} {chip(claim, result):20} {claim.label}: {claim.sentence}")
        if result is not None:
            typer.echo(f"     found: {finding(claim, result)}")
        how = f"{claim.seeds} seeds, about {took}" if claim.arms else claim.scope
        typer.echo(f"     {claim.source}; {how}")


@claims.command()
def show(keys: Keys, as_json_: Json = False) -> None:
    """Print the whole record of claims and their shipped results."""
    if as_json_:
        results = [(claim, shipped_result(claim)) for claim in read_keys(keys)]
        print_json(
            [
                card_json(claim, result, shipped_sets(claim))
                for claim, result in results
                if result is not None
            ]
        )
        return
    for claim in read_keys(keys):
        typer.echo(record_words(claim))
        result = shipped_result(claim)
        typer.echo("No result ships." if result is None else result_words(claim, result))
        if result is not None:
            typer.echo(explained(claim, result))
            if claim.arms:
                typer.echo(f"sets     {by_set(claim, shipped_sets(claim))}")
        typer.echo(f"run it   normviz claims run {claim.key}")
        if claim.arms:
            typer.echo(f"its duel ?{encode(shipped_lanes(claim))}")


@claims.command("run")
def run_(
    keys: Keys, seeds: Seeds = None, first: First = 0, processes: Processes = None, data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="Write each result as JSON into this folder")
    ] = None,
    as_json_: Json = False,
) -> None:  # fmt: skip
    """Run claims' experiments, as far as this data folder lacks their runs, and judge them by their
    rules. Shipped results are not reused; the outcome is compared with them.

    After Ctrl-C the same command continues.
    """
    wanted = read_keys(keys)
    if out is not None and not is_folder(out):
        complain(f"--out names the folder {str(out)!r}, which does not exist")
    results = list[dict[str, Any]]()
    for claim, result in followed(wanted, data, seeds, processes, first):
        if as_json_:
            results.append(card_json(claim, result))
        else:
            typer.echo(record_words(claim))
            typer.echo(result_words(claim, result))
            typer.echo(beside(claim, result))
        if out is not None:
            write(result, out / f"{claim.key}.json")
    if as_json_:
        print_json(results)


@claims.command()
def check(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[C1 C2 ... | all]", help="Keys of claims to run", show_default=False
        ),
    ] = None,
    first: First = 200,
    seeds: Seeds = None,
    processes: Processes = None,
    data: Data = None,
    as_json_: Json = False,
) -> None:
    """Run claims again on other seeds than those that judge, and list the verdicts that change. Without keys:
    where one of the two sets of seeds that ship says another thing alone than both together, what a third set
    says where it was run, and how many decided parts stay so after a correction for many parts.
    """
    if keys:
        _compare(followed(read_keys(keys), data, seeds, processes, first), first, as_json_)
        return
    third = [(claim, result) for claim in CLAIMS if (result := shipped_check(claim)) is not None]
    if as_json_:
        print_json({"sets": _sets(), "third": _changes(third)[0]})
        return
    _print_sets(_sets())
    if third:
        typer.echo()
        _compare(third, 200, False)
    results = [(claim, result) for claim in CLAIMS if (result := shipped_result(claim))]
    for line in ("", *sentences(family(results))):
        typer.echo(line)


def _changes(
    results: Iterable[tuple[Claim, ClaimResult]],
) -> tuple[list[dict[str, Any]], int, list[str]]:
    """The claims with another outcome in a part than what ships, how many have the same, and those that
    nothing ships of."""
    changed, same, missing = list[dict[str, Any]](), 0, list[str]()
    for claim, result in results:
        if (ships := shipped_result(claim)) is None:
            missing.append(claim.key)
            continue
        there, here = ships.verdict(claim), result.verdict(claim)
        if there.outcomes == here.outcomes:
            same += 1
            continue
        parts = [
            {
                "says": part.title,
                "shipped": was.outcome,
                "was": was.evidence,
                "now": now.outcome,
                "evidence": now.evidence,
            }
            for part, was, now in changed_parts(there, here)
        ]
        changed.append(
            {"claim": claim.key, "shipped": there.kind, "now": here.kind, "parts": parts}
        )
    return changed, same, missing


def _compare(results: Iterable[tuple[Claim, ClaimResult]], first: int, as_json_: bool) -> None:
    changed, same, missing = _changes(results)
    if as_json_:
        print_json(changed)
        return
    others = [change["now"] for change in changed if change["shipped"] != change["now"]]
    undecided = f" ({others.count('undecided')} of them undecided)" if others else ""
    opposite = sum(
        {part["shipped"], part["now"]} == {"true", "false"}
        for change in changed
        for part in change["parts"]
    )
    typer.echo(
        f"{same + len(changed)} claims from seed {first} on: {same} with the same outcome in every "
        f"part, {len(changed) - len(others)} with the same verdict and another part, "
        f"{len(others)} with another verdict{undecided}; parts that were true and are false, or the "
        f"reverse: {opposite}"
    )
    if missing:
        typer.echo(f"nothing to compare: {', '.join(missing)}")
    for change in changed:
        typer.echo(f"{change['claim']}: {change['shipped']} -> {change['now']}")
        for part in change["parts"]:
            typer.echo(
                f"    {part['says']}: {part['shipped']} ({part['was']}) -> {part['now']} "
                f"({part['evidence']})"
            )


def _sets() -> list[dict[str, Any]]:
    """What each set of seeds that judges says of each claim alone, what both say, and the parts of which they
    differ."""
    shown = []
    for claim in CLAIMS:
        if len(sets := shipped_sets(claim)) < 2:
            continue
        parts = [
            {"says": split.part.title, "sets": split.sets, "all": split.together.outcome,
             "evidence": split.together.evidence}
            for split in splits(claim, sets)
        ]  # fmt: skip
        alone = [result.verdict(claim).kind for result in sets]
        verdict = pooled(claim, sets).verdict(claim)
        shown.append({"claim": claim.key, "sets": alone, "all": verdict.kind, "parts": parts})
    return shown


def _print_sets(shown: list[dict[str, Any]]) -> None:
    same = sum(not row["parts"] for row in shown)
    verdicts = sum({*row["sets"]} == {row["all"]} for row in shown) - same
    typer.echo(
        f"{len(shown)} claims, each on two sets of seeds and on all together: {same} with the same "
        f"outcome in every part, {verdicts} with the same verdict and another part, "
        f"{len(shown) - verdicts - same} with another verdict"
    )
    for row in shown:
        if row["parts"]:
            typer.echo(f"{row['claim']}: {', '.join(row['sets'])} -> {row['all']}")
        for part in row["parts"]:
            outcomes = f"{', '.join(part['sets'])} -> {part['all']}"
            typer.echo(f"    {part['says']}: {outcomes} ({part['evidence']})")


def card_json(
    claim: Claim, result: ClaimResult, sets: Sequence[ClaimResult] = ()
) -> dict[str, Any]:
    """A result with its figure's points, as the card shows both."""
    from ..studies.claims.figure import points

    return {**as_json(claim, result, sets), "points": plain(points(claim, result))}


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=1))


@main.command("ship-claims")
def ship_claims(
    keys: Keys, data: Data = None, processes: Processes = None, first: First = 0,
    folder_: Annotated[
        Path | None, typer.Option("--folder", help="Where to write (default: assets)")
    ] = None,
) -> None:  # fmt: skip
    """Run claims and write their results to assets/claims, with the runs that their links open. With 100 or
    200 as the first seed: write the numbers alone, to assets/claims/second and third.
    """
    from ..studies.claims.ship import save_runs

    if first not in SETS:
        complain(f"--seeds-from is {first}, allowed are {', '.join(map(str, SETS))}")
    to = made((folder_ or folder()) / SETS[first], "choose another with --folder")
    for claim, result in followed(read_keys(keys), data, None, processes, first):
        write(replace(result, figure=[], runs=[]) if first else result, to / f"{claim.key}.json")
        typer.echo(f"{claim.key}: {result.verdict(claim).sentence}")
    if not first:
        typer.echo(save_runs(opened(data), to / "runs.npz"))


def read_keys(keys: list[str]) -> list[Claim]:
    """The claims of these keys. Complains of an unknown key."""
    try:
        return list(CLAIMS) if keys == ["all"] else [CLAIMS[key.upper()] for key in keys]
    except ValueError as error:
        complain(error)


def opened(data: Path | None) -> Store:
    """The store, with all shipped runs in it."""
    try:
        store = Store(data_folder(data))
        adopt(store)
        shipped.adopt_cells(store)
    except (FolderError, StoreError) as error:
        complain(error)
    return store


def followed(
    wanted: list[Claim],
    data: Path | None,
    seeds: int | None = None,
    processes: int | None = None,
    first: int = 0,
) -> Iterator[tuple[Claim, ClaimResult]]:
    """Run claims one after the other and report progress on standard error. Exits on Ctrl-C, and with 1
    at the end if one failed."""
    store = opened(data)
    at_once = processes or cores()
    took = [expected(claim, shipped_sets(claim), seeds, at_once) for claim in wanted]
    if len(wanted) > 1:
        many = f"{at_once} process{'es' * (at_once > 1)}"
        typer.echo(
            f"{len(wanted)} claims, at most about {duration(sum(took))} in {many} at the speed of the "
            "machine that made the results that ship",
            err=True,
        )
    failed, began, spent, ran = False, time.monotonic(), 0.0, 0.0
    for n, claim in enumerate(wanted):
        since = time.monotonic()
        result, share = follow(store, claim, seeds, processes, first)
        if result is None:
            failed = True
        else:
            yield claim, result
        if share:
            spent, ran = spent + time.monotonic() - since, ran + share * took[n]
        if rest := sum(took[n + 1 :]):
            left = duration(rest * (spent / ran if ran else 1.0))
            typer.echo(
                f"{n + 1} of {len(wanted)} claims, about {left} more at the speed of this machine",
                err=True,
            )
    if failed:
        raise typer.Exit(1)
    if len(wanted) > 1:
        typer.echo(f"took {duration(time.monotonic() - began)}", err=True)


def follow(
    store: Store, claim: Claim, seeds: int | None, processes: int | None, first: int
) -> tuple[ClaimResult | None, float]:
    """Run a claim and report progress on standard error: its result, or None if it failed, and the share of
    its runs that were not stored. Exits on Ctrl-C."""
    from ..execution import Began
    from ..studies.claims.drive import ClaimError, run
    from ..studies.maps import Reused

    total = len(claim.cells(seeds, first))
    takes = expected(claim, shipped_sets(claim), seeds, processes or cores())
    if total:
        typer.echo(f"{claim.key}: {total} runs, at most about {duration(takes)}", err=True)
    done = fresh = 0
    try:
        for news in run(store, claim, seeds, processes, first=first):
            if isinstance(news, ClaimResult):
                return news, fresh / max(total, 1)
            done += not isinstance(news, Began)
            fresh += not isinstance(news, Began | Reused)
            if sys.stderr.isatty():
                typer.echo(f"\r{claim.key}: {done} of {total}", err=True, nl=done == total)
    except KeyboardInterrupt:
        typer.echo("normviz: stopped; the same command runs what is missing", err=True)
        raise typer.Exit(130) from None
    except (ClaimError, RuntimeError) as error:
        typer.echo(f"normviz: {error}", err=True)
    return None, 0.0


def record_words(claim: Claim) -> str:
    """The claim, its experiment and its rule as text."""
    lines = [f"{claim.key}  {claim.label}", claim.sentence, f"says     {claim.source}"]
    for arm, words in claim.settings().items():
        settings = " ".join(f"{name}={word}" for name, word in words.items())
        lines.append(f"arm      {claim.arm_label(arm)}: {settings}")
    lines += [] if claim.arms else [f"counts   {claim.scope}"]
    lines += [f"rule     {sentence}" for sentence in claim.rule_words()]
    lines += [f"changed  among other things: {claim.changed}"] if claim.changed else []
    return "\n".join(lines)


def result_words(claim: Claim, result: ClaimResult) -> str:
    """Every number, the verdict, and its basis as text."""
    words = number_sentences(claim, result)
    lines = [f"         {claim.numbers[name].label}: {word}" for name, word in words.items()]
    verdict = result.verdict(claim)
    lines.append(f"verdict  {verdict.sentence} ({basis(claim, result)})")
    lines += [f"         {line}" for line in verdict.lines()]
    lines += [f"         {said}." for said in [late(claim, result)] if said]
    if by := computed_by(result.engines):
        lines.append(f"         {by}")
    return "\n".join(lines)


def beside(claim: Claim, result: ClaimResult) -> str:
    """A line that compares the result with the shipped one."""
    ships = shipped_result(claim)
    if ships is None:
        return "No result ships."
    there = ships.verdict(claim)
    same = there.outcomes == result.verdict(claim).outcomes
    return f"shipped  {'the same outcomes' if same else there.sentence} ({basis(claim, ships)})"
