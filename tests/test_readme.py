"""The documents are true: commands are what CI runs, tables and tree are what there is, links work."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normviz.catalog import INITS, NORMS, SCHEMES, TASKS
from normviz.catalog.registry import Registry
from normviz.cli import main
from normviz.cli.run import read_config
from normviz.hosted import LIMITS
from normviz.limits import EAGER_NORMS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PACKAGE = (ROOT / "normviz" / "README.md").read_text()
START, TESTS, TERMINAL = re.findall(r"```bash\n(.*?)\n```", README, re.DOTALL)
DOCUMENTS = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
)  # fmt: skip
EACH = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def prose(path: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What a link may name in a document: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """Relative links of a document that lead to no file, or to no heading of it."""
    broken: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        name, _, anchor = link.partition("#")
        to = path.parent / name if name else path
        if re.match(r"\w+:", link):
            continue
        if not to.exists() or (anchor and anchor not in anchors(to)):
            broken.append(link)
    return broken


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_ci_runs_the_test_command() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    for command in TESTS.split(" && "):
        assert command in ci


def test_every_run_of_the_tests_prints_the_twenty_slowest() -> None:
    """Both run pytest without a word more, so that its settings hold for both; CI runs again what failed."""
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    pytest_alone = ".venv/bin/python -m pytest"
    assert TESTS.split(" && ")[-1] == pytest_alone
    assert ci.index(f"{pytest_alone} || code=$?") == next(
        i for i, line in enumerate(ci) if pytest_alone in line
    )
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "--durations=20" in settings["addopts"].split()


def test_both_commands_install_the_pinned_set_first() -> None:
    assert all("pip install -r requirements.txt" in command for command in (START, TESTS))
    assert "torch==2.13.0" in (ROOT / "requirements.txt").read_text()


@pytest.mark.parametrize("registry", [SCHEMES, NORMS, INITS, TASKS], ids=lambda r: r.kind)
def test_every_choice_is_named(registry: Registry) -> None:
    assert [record.key for record in registry if f"`{record.key}`" not in PACKAGE] == []


def test_the_number_of_placements_is_right() -> None:
    for text in (README, PACKAGE):
        assert re.findall(r"(\d+) placements", text) == [str(len(SCHEMES))]


def test_the_number_of_norms_on_the_tape_is_right() -> None:
    (counts,) = re.findall(r"(\d+) of\s+the (\d+) norms", PACKAGE)
    assert counts == (str(len(NORMS) - len(EAGER_NORMS)), str(len(NORMS)))


def test_the_limits_of_hosted_mode_are_those_of_the_code() -> None:
    text = (ROOT / "assets" / "deploy" / "README.md").read_text()
    table = text.split("| what | limit |\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.strip("| ").split(" | ")[1] for row in table] == [
        f"{LIMITS.depth}",
        f"{LIMITS.width}",
        f"{LIMITS.steps:,}",
        f"{LIMITS.lanes}",
        f"{LIMITS.seconds:g} s of one core and {LIMITS.gib:g} GiB",
        f"{LIMITS.open_runs}",
        f"{LIMITS.queue}",
        f"{LIMITS.fill_minutes:g} minutes; {LIMITS.fills} of each a visitor, {LIMITS.address_fills} of "
        "each a network address, in an order that is fair to addresses",
        f"{LIMITS.texts}, of up to {LIMITS.text_bytes:,} bytes each",
    ]


def test_the_tree_names_what_there_is() -> None:
    tree = PACKAGE.split("normviz/\n")[1].split("```")[0]
    inside = [w for line in tree.splitlines() if line.startswith("  ") for w in line[2:16].split()]
    assert len(inside) > 20
    for name in inside:
        assert (ROOT / "normviz" / name).exists(), name
    for name in re.findall(r"^(\w+)/", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_the_picture_is_there() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for name in pictures:
        assert (ROOT / name).stat().st_size > 10_000


@EACH
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    assert broken_links(path) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One, two\n[a](#one-two) [b](#three) [c](page.md) [d](gone.md) [e](https://x.y)"
    )
    assert broken_links(page) == ["#three", "gone.md"]


@EACH
def test_every_file_that_a_document_names_exists(path: Path) -> None:
    """Names in backticks with a suffix or a folder, from the document's folder or from the top."""
    named = re.findall(r"`([\w./*-]+(?:\.(?:py|js|toml|md)|/))`", prose(path))
    missing = [
        name
        for name in named
        if not any(any(at.glob(name.rstrip("/"))) for at in (path.parent, ROOT))
    ]
    assert missing == []


@EACH
def test_every_command_that_a_document_names_exists(path: Path) -> None:
    """In blocks of code and in backticks."""
    found = re.findall(
        r"(?:^|`|/bin/|&& |=1 )normviz ([a-z][\w-]*)", path.read_text(), re.MULTILINE
    )
    for name in sorted(set(found)):
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0, name
    for name in re.findall(r"tests\.bench\.([a-z]\w*)", path.read_text()):
        assert (ROOT / "tests" / "bench" / f"{name}.py").exists(), name


@pytest.mark.parametrize("text", [README, PACKAGE], ids=["README", "normviz/README"])
def test_the_terminal_examples_parse(text: str) -> None:
    lines = [
        line
        for block in re.findall(r"```bash\n(.*?)\n```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    parsed = 0
    for line in lines:
        words = re.sub(r"\s+#.*", "", line).split()
        if words[:2] == ["normviz", "run"]:
            named = [w.strip("'") for w in words[2:] if not w.startswith("-") and "." not in w]
            read_config([w for w in named if not re.fullmatch(r"[\d,]+|all", w)])
            parsed += 1
    assert parsed >= 3


@pytest.mark.slow
def test_ranges_hold_the_pinned_set() -> None:
    """requirements.txt satisfies pyproject's ranges: pip would install nothing more."""
    check = [sys.executable, "-m", "pip", "check"]
    assert subprocess.run(check, capture_output=True, text=True).returncode == 0
