"""The documents are true: commands are what CI runs, tables and tree are what there is, links work."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from crossing_kit import case
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from normviz.catalog import NORMS, SCHEMES
from normviz.catalog.models import census
from normviz.cli import main
from normviz.cli.run import read_chosen
from normviz.studies.claims import CLAIMS

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


def test_ci_runs_the_commands_of_the_readme() -> None:
    """And both commands install the pinned set first."""
    ci = (ROOT / ".ci" / "run").read_text()
    assert all(command in ci for command in TESTS.split(" && "))
    assert all("pip install -r requirements.txt" in command for command in (START, TESTS))


def test_the_pinned_set_is_within_the_ranges() -> None:
    """Else pip would install something else after it."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    lines += (ROOT / "tests" / "requirements.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and line[0] != "#")
    pins = {canonicalize_name(name): version.split()[0] for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    for requirement in map(Requirement, wanted):
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), (requirement, version)


def test_counts_are_those_of_the_code() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    for text in (README, PACKAGE, changes):
        assert re.findall(r"(\d+) placements", text) == [str(len(SCHEMES))]
    said = re.findall(r"(\d+) (norms|claims)\b", changes)
    assert said == [(str(len(NORMS)), "norms"), (str(len(CLAIMS)), "claims")]
    assert f"transformers {census().transformers} " in changes
    (counts,) = re.findall(r"(\d+) of\s+the (\d+) norms", PACKAGE)
    assert counts == (str(sum(norm.tape for norm in NORMS)), str(len(NORMS)))


def test_the_tree_names_what_there_is() -> None:
    tree = PACKAGE.split("normviz/\n")[1].split("```")[0]
    inside = [w for line in tree.splitlines() if line.startswith("  ") for w in line[2:16].split()]
    assert len(inside) > 14
    for name in inside:
        assert (ROOT / "normviz" / name).exists(), name
    for name in re.findall(r"^(\w+)/", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_what_a_document_names_exists() -> None:
    """Links with their headings, pictures, files in backticks, from its folder or the top, and commands."""
    commands = set(get_command(main).commands)
    for path in DOCUMENTS:
        with case(path.relative_to(ROOT)):
            text = path.read_text()
            assert broken_links(path) == []
            named = re.findall(r"`([\w./*-]+(?:\.(?:py|js|toml|md)|/))`", prose(path))
            places = (path.parent, ROOT)
            assert [
                it for it in named if not any(any(at.glob(it.rstrip("/"))) for at in places)
            ] == []
            said = r"(?:^|`|/bin/|&& |=1 )normviz ([a-z][\w-]*)"
            assert set(re.findall(said, text, re.MULTILINE)) <= commands
            for name in re.findall(r"tests\.bench\.([a-z]\w*)", text):
                at = ROOT / "tests" / "bench" / name
                assert at.is_dir() or at.with_suffix(".py").exists(), name


def test_what_the_python_examples_import_is_there() -> None:
    for path in DOCUMENTS:
        for block in re.findall(r"```python\n(.*?)\n```", path.read_text(), re.DOTALL):
            for line in re.findall(r"^(?:from (?!\.)|import )normviz.*$", block, re.MULTILINE):
                with case(line):
                    exec(line, {})


def test_the_terminal_examples_parse() -> None:
    parsed = 0
    for text in (README, PACKAGE):
        for line in "\n".join(re.findall(r"```bash\n(.*?)\n```", text, re.DOTALL)).splitlines():
            words = re.sub(r"\s+#.*", "", line).split()
            if words[:2] == ["normviz", "run"]:
                named = [w.strip("'") for w in words[2:] if not w.startswith("-") and "." not in w]
                read_chosen([w for w in named if not re.fullmatch(r"[\d,]+|all", w)])
                parsed += 1
    assert parsed >= 6
