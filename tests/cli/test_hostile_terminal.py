"""Hostile values of every option and argument of the terminal: taken, or told in a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_kit import normviz
from click.testing import Result
from crossing_kit import case
from hostile_kit import SCRIPTS, STRANGE

from normviz import RunConfig
from normviz.cli import COMMANDS, app, main
from normviz.home import VARIABLE
from normviz.links import encode

LONG = "a" * 300
NOBODY = "~nosuchuser/x"
PLACES = (NOBODY, LONG, f"/{LONG}/b", "/dev/null/x", "/proc/x", "\udcff", "~")
ENDINGS = ("", ".csv", ".json", ".svg", ".zip")
NUMBERS = ("nan", "inf", "-inf", "1e300", "-1", "0", "3", "9" * 5000, "1e-400", str(2**63))
VALUES = (
    *NUMBERS, *(place + ending for place in PLACES for ending in ENDINGS),
    *(word for word in (*STRANGE, *SCRIPTS) if "\0" not in word and "\ud800" not in word),
)  # fmt: skip
WITH = {"claims show": ["C1"], "claims run": ["C1"], "ship-claims": ["C1"], "export-site": ["site"],
        "sweep": ["depth=2,3", "width=16,32"]}  # fmt: skip
"""What a command needs beside the option that is tried."""
WORK = (
    "cli.run.follow", "cli.export.follow", "cli.ship.follow", "cli.claims.follow", "cli.norm_cost._follow",
    "cli.sweep_output.follow", "browser.site.write", "cli.sweep.Cluster", "cli.census.remade",
    "cli.bench_speed.measure", "cli.bench_verdicts.measure", "cli.bench_load.measure",
    "cli.app.check_address", "studies.claims.ship.save_runs",
)  # fmt: skip
"""What trains, serves, draws or waits: reached, the command has taken its words, and ends."""
CHECK = app.check_address
"""It may ask other machines what a name means."""
ADOPTED = ("cli.sweep", "cli.export", "cli.claims")


def reached(*words: object, **more: object) -> None:
    raise typer.Exit


@pytest.fixture(scope="module", autouse=True)
def _idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is trained, served or unpacked, and relative paths stay in a folder of their own."""
    here = tmp_path_factory.mktemp("here") / "a" / "b" / "c" / "d"
    here.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("HOME", str(here))
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("home")))
        for name in WORK:
            patch.setattr(f"normviz.{name}", reached)
        for name in ADOPTED:
            patch.setattr(f"normviz.{name}.adopt", lambda store: None)
        patch.setattr("normviz.runs.shipped.adopt_cells", lambda store: None)
        patch.setattr("normviz.cli.app.os.execve", reached)
        patch.setattr("normviz.cli.app.shipped", lambda name: here)
        yield


def parameters() -> list[tuple[str, str]]:
    """Every command with each of its options that takes a value, and with "" for its arguments."""
    found: list[tuple[str, str]] = []

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*path, name))
        for one in command.params:
            takes = not getattr(one, "is_flag", False) and path
            if takes:
                found.append((" ".join(path), one.opts[0] if one.opts[0][0] == "-" else ""))

    for module, _ in COMMANDS.values():
        import_module(f"normviz.cli.{module}")
    walk(typer.main.get_command(main), ())
    return found


PARAMETERS = parameters()


def tried(command: str, option: str, value: str) -> None:
    given = [f"{option}={value}"] if option else ["--", value]
    with case(command, option, repr(value)):
        assert_told(normviz(*command.split(), *(WITH.get(command, []) if option else []), *given))


@pytest.mark.slow
def test_any_value_of_any_option_is_taken_or_told() -> None:
    """Every option and every value, in pairs by their hashes."""
    assert {("sweep", "--on"), ("sweep", "--data"), ("bench load", "--churn")} <= {*PARAMETERS}
    options, values = (
        sorted(all_, key=lambda one: sha256(repr(one).encode()).digest())
        for all_ in (PARAMETERS, VALUES)
    )
    for n in range(max(len(options), len(values))):
        tried(*options[n % len(options)], values[n % len(values)])


def assert_told(done: Result) -> None:
    """Exit code 0 or 2, and never a traceback."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 2), done.output
    assert "Traceback" not in done.output
    assert done.exit_code == 0 or done.stderr


def sentence(done: Result) -> str:
    """The one line on standard error of a command that was refused."""
    assert_told(done)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("normviz: ") and done.stderr.count("\n") == 1
    return done.stderr


# Folders


FOLDERS = [
        ["app", "--data"], ["sweep", "depth=2,3", "--data"], ["export", "--data"],
        ["export-site"], ["export-site", "site", "--data"], ["claims", "run", "C1", "--data"],
        ["ship"], ["ship-maps", "--folder"], ["ship-maps", "--data"], ["ship-claims", "C1", "--folder"],
]  # fmt: skip


@pytest.mark.slow
def test_a_folder_of_nobody_and_one_that_cannot_be_are_told() -> None:
    for words in FOLDERS:
        with case(*words):
            told = sentence(normviz(*words, NOBODY))
            assert f"{NOBODY!r} is in the home folder of a user whom this machine does not" in told
            if words != ["export-site"]:
                told = sentence(normviz(*words, "/dev/null/x"))
                assert "/dev/null/x" in told
                assert "another" in told or words[0] in ("export", "export-site")


def test_a_data_folder_that_cannot_be_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = (["runs"], ["gc"], ["texts"], ["app"], ["sweep", "depth=2,3"])
    for words, folder in zip(commands, cycle([NOBODY, "/dev/null/x", f"/{LONG}"]), strict=False):
        with case(*words, folder):
            monkeypatch.setenv(VARIABLE, folder)
            assert repr(folder) in sentence(normviz(*words))
            done = normviz("status")
            assert done.exit_code == 1 and repr(folder) in done.stdout


FILES = [
        (["run", "--out", f"/{LONG}/b.csv"], f"--out names the folder '/{LONG}', which does not exist"),
        (["run", "--out", f"{LONG}.csv"], "can't be written: File name too long"),
        (["sweep", "depth=2,3", "--out", f"/{LONG}/b.csv"], "--out names the folder"),
        (["sweep", "depth=2,3", "--plot", f"/{LONG}/b.svg"], "--plot names the folder"),
        (["claims", "run", "C1", "--out", f"/{LONG}"], "--out names the folder"),
        (["export", "--out", f"/{LONG}/b.zip"], "--out names the folder"),
        (["export-site", f"/{LONG}"], "lacks the run"),
        (["bench", "norms", "--out", f"/{LONG}/b.json"], "--out names the folder"),
]  # fmt: skip


def test_a_file_that_cannot_be_written_is_told_before_anything_runs() -> None:
    for words, told in FILES:
        with case(*words):
            assert told in sentence(normviz(*words))


def test_a_name_of_bytes_that_are_no_text_is_printed_as_it_is(tmp_path: Path) -> None:
    out = f"{tmp_path}/\udcff.json"
    done = normviz("export", "--as", "json", "--out", out)
    assert_told(done)
    assert done.exit_code == 0 and done.stdout_bytes == os.fsencode(f"{out}\n")


def test_an_address_where_nobody_can_listen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normviz.cli.app.check_address", CHECK)
    for host in ("192.0.2.77", LONG, "::g", "\udcff", "0.0.0.0:1"):
        told = sentence(normviz("app", "--host", host))
        assert f"the page can't listen on {host[:80]!r}, port 8501" in told


# Words


def test_an_address_that_is_none_is_told() -> None:
    for url in ("http://[", "http://\udcff", "ftp://x", "http://x/?a"):
        told = sentence(normviz("export-site", "site", "--url", url))
        assert f"--url is {url!r}, allowed is an address" in told


def test_a_title_that_is_no_text_is_told_before_a_file_is_written(tmp_path: Path) -> None:
    told = sentence(normviz("export-site", str(tmp_path / "site"), "--title", "\udcff"))
    assert "--title is '\\udcff', which holds bytes that are not text" in told


def test_a_number_that_is_none_is_told() -> None:
    for words in (["bench", "norms", "--seconds"], ["bench", "load", "--churn"]):
        for value in ("nan", "inf", "-1"):
            done = normviz(*words, value)
            assert done.exit_code == 2
            told = done.stderr
            assert "Input should be" in told or f"seconds is {float(value)}" in told


def test_words_beyond_the_twentieth_of_a_search_are_told() -> None:
    told = sentence(normviz("runs", *["depth"] * 25))
    assert "the search has 25 words, allowed are up to 20: leave some out" in told
    assert normviz("runs", *["depth"] * 20).exit_code == 0


def test_a_sweep_says_which_lane_of_a_link_it_takes() -> None:
    lanes = [RunConfig(scheme=scheme) for scheme in ("pre", "post", "peri", "none")]
    done = normviz("sweep", f"http://x/?{encode(lanes)}", "depth=2,3")
    assert done.exit_code == 0
    assert "has 4 lanes: the sweep takes its settings from lane A" in done.stderr
    assert "lane" not in normviz("sweep", f"?{encode(lanes[:1])}", "depth=2,3").stderr
    assert "lane" not in normviz("sweep", "depth=2,3").stderr
