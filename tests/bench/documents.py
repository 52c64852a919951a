"""The tables of the documents, made of records and shipped files.

    python -m tests.bench.documents            # writes them
    python -m tests.bench.documents --check    # exit code 1 where one is not up to date

A document marks each with `[[[cog documents.NAME() ]]]` and `[[[end]]]`, and cog puts there what that prints.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules

from cogapp import Cog
from typer.testing import CliRunner

from normviz.catalog import SCHEMES, schemes
from normviz.cli.claims import claims
from normviz.config import RunConfig
from normviz.home import shipped
from normviz.lessons.anatomy.formula import formula, plain
from normviz.lessons.presets import PRESETS
from normviz.limits import MAX_LANES
from normviz.policy import SHARED
from normviz.runs.archive import load
from normviz.runs.names import lane_name
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.sentences import chip
from normviz.studies.claims.stored import shipped_check, shipped_result
from normviz.studies.maps import grid_of
from normviz.studies.maps.points import point
from normviz.studies.maps.standard import DEPTHS, HIGH, MAPS, RATES
from normviz.studies.maps.summary import edge_rows

from . import attack

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md", "assets/claims/README.md", "assets/deploy/README.md", "normviz/catalog/README.md",
)  # fmt: skip
RESULTS = Path(__file__).with_name("results.json")
BEFORE = Path(__file__).with_name("verdicts_before.json")


def main(words: Sequence[str]) -> int:
    check = ["--check", "--diff"] if "--check" in words else ["-r"]
    prologue = "import sys; from pathlib import Path; sys.path.insert(0, str(Path.cwd())); "
    prologue += "from tests.bench import documents"
    files = [str(ROOT / name) for name in DOCUMENTS]
    return Cog().main(["cog", *check, "-P", "-p", prologue, *files])


def results() -> None:
    """Each lane of the presets: lowest and highest final loss of its seeds."""
    rows = json.loads(RESULTS.read_text())
    print("| preset | lanes | chance |\n|---|---|---|")
    for key, own in groupby(rows, lambda row: row["preset"]):
        lanes, told = PRESETS[key].lanes(), list(own)
        names = [
            lane_name("ABCD"[i], lane, lanes).split(maxsplit=1)[1] for i, lane in enumerate(lanes)
        ]
        said = "; ".join(f"{names[row['lane']]} {_range(row['losses'])}" for row in told)
        print(f"| `{key}`: {PRESETS[key].label} | {said} | {told[0]['chance']:.2f} |")


def _range(losses: Sequence[float | None]) -> str:
    finite = sorted(loss for loss in losses if loss is not None)
    bad = len(losses) - len(finite)
    said = f"{finite[0]:.2f} to {finite[-1]:.2f}" if finite else ""
    return " and ".join(filter(None, (said, f"diverged in {bad} of {len(losses)}" if bad else "")))


def rates() -> None:
    """Up to which learning rate half of the seeds train, by placement of the standard maps and depth, of all
    rates that ship."""
    names = {"torch": "PyTorch init", "xavier": "Xavier"}
    files = (shipped("assets") / "maps").glob("*.npz")
    ship = {it.key: it for file in files for it in load(file)}
    print(f"| blocks | {' | '.join(DEPTHS.split(','))} |\n|---{'|---' * len(DEPTHS.split(','))}|")
    for key, init in names.items():
        every = dict.fromkeys((*RATES.split(","), *HIGH.split(",")))
        grid = grid_of({**MAPS[key].words, "lr": ",".join(every)}, RunConfig())
        cells = sorted(grid.cells, key=lambda cell: (cell.at, cell.seed))
        found = [point(cell, ship[cell.key]) for cell in cells if cell.key in ship]
        for name, edges in edge_rows(grid, found, "depth").items():
            short = [re.sub(r"none from \S+ up in \d+ steps", "none", it) for it in edges.values()]
            print(f"| {name}, {init} | {' | '.join(short)} |")


def placements() -> None:
    """Each placement with its equation in a model of 12 blocks, and the file of its record."""
    print("| placement | key | equation | norms at the ends | record |\n|---|---|---|---|---|")
    files = {it.key: f"{name}.py" for _, name, _ in iter_modules(schemes.__path__)
             for it in import_module(f"{schemes.__name__}.{name}").SCHEMES}  # fmt: skip
    for it in SCHEMES:
        lines = formula(it.key, 12)
        said = "; ".join(
            f"{where}: `{plain(line)}`" if len(lines) > 1 and where else f"`{plain(line)}`"
            for where, line in lines
        ).replace("|", "\\|")
        ends = ["embedding"] * it.embed_norm + ["final"] * it.final_norm
        file = files[it.key]
        label = it.label.replace("*", "\\*")
        print(
            f"| {label} | `{it.key}` | {said} | {' and '.join(ends) or 'none'} | "
            f"[{file}](schemes/{file}) |"
        )


def hosted_limits() -> None:
    """What a shared server allows."""
    it = SHARED
    print("| what | limit |\n|---|---|")
    for what, limit in {
        "depth": it.depth,
        "width": it.width,
        "steps": f"{it.steps:,}",
        "lanes": MAX_LANES,
        "one run, by estimate": f"{it.seconds:g} s of one core and {it.gib:g} GiB",
        "open runs of one visitor": it.open_runs,
        "runs that wait, of all visitors": it.queue,
        "open maps and claims, by estimate": f"{it.visitor_minutes:g} minutes of one core of a visitor, "
        f"{it.address_minutes:g} of a network address, {it.all_minutes:g} in all",
    }.items():
        print(f"| {what} | {limit} |")


def claims_check() -> None:
    """What `normviz claims check` prints of the two sets of seeds that ship."""
    print(f"```text\n{CliRunner().invoke(claims, ['check']).stdout.rstrip()}\n```")


def verdicts() -> None:
    """Of each claim the verdict before 27 November 2026, now, of the third set, and why it changed."""
    before = json.loads(BEFORE.read_text())
    print("| claim | about | before | now | third set | why it changed |\n" + "|---" * 6 + "|")
    for claim in CLAIMS:
        was = before.get(claim.key, {"before": "new", "why": ""})
        now = chip(claim, shipped_result(claim))
        why = was["why"] if was["before"] != now else ""
        third = shipped_check(claim)
        check = chip(claim, third) if third else ""
        print(f"| {claim.key} | {claim.label} | {was['before']} | {now} | {check} | {why} |")


def attacks() -> None:
    """What visitors felt without and with each attack, and the memory of the server: of each the figures
    that its goal is about."""
    found = json.loads(attack.FILE.read_text())
    scope, _, terms = found["words"].partition(". page: ")
    (later,) = re.findall(r"[\d.]+ s later", terms)
    print(f"{scope}; {terms.rpartition('; ')[2]}.\n")
    print(f"""Seconds until a new visitor's page was usable, and until a click was rendered: 95 of 100 took no
longer. Updates of the charts: of the visitor who got fewest. Memory of the server: before, at most during it,
{later}; of all of NormViz: at most during it. After the name: how many clients attack.
""")
    print("| attack | page, s | click, s | updates a second | server, MiB | all, MiB |")
    print("|---" * 6 + "|")
    for row in found["rows"]:
        felt = (
            f"{row['without'][what][1]:.{n}f} → {row['during'][what][1]:.{n}f}"
            for what, n in attack.SEEN.items()
        )
        before, most, _, after = row["server"]
        server = f"{before:.0f}, {most:.0f}, {after:.0f}"
        print(
            "| " + " | ".join([_attack(row["name"]), *felt, server, f"{row['all'][1]:.0f}"]) + " |"
        )
    missed = [f"{row['name']}, {', '.join(row['wrong'])}" for row in found["rows"] if row["wrong"]]
    print(f"\nGoals (in `tests/bench/attack.py`) that were missed: {'; '.join(missed) or 'none'}.")


def _attack(name: str) -> str:
    """An attack with how many clients it has, and what each does."""
    if name == attack.NONE:
        return name
    does, many = attack.ATTACKS[name]
    return f"{name}, {many}: {(inspect.getdoc(does) or '').rstrip('.')}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
