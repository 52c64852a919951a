"""The files for hosts: what can be known of them without a container engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest
import yaml
from browser_kit import answers, wait_for

from normviz.cli.bench_server import free_port
from normviz.home import VARIABLE

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "assets" / "deploy"
TEXT = (DEPLOY / "Dockerfile").read_text()
START = (DEPLOY / "start.sh").read_text()
Lines = list[tuple[str, str]]


def stages() -> list[Lines]:
    """The Dockerfile's stages: of each the instructions with what follows them."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.M))
    found: list[Lines] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest.strip()))
    return found


BUILD, LAST = stages()


def said(lines: Lines, word: str) -> list[str]:
    return [rest for name, rest in lines if name == word]


def command() -> list[str]:
    """What the start command runs. `test_health` does that."""
    (line,) = re.findall(r"^(normviz .*) &$", START, re.M)
    return line.split()


def port() -> str:
    """That of the proxy, which is before the app."""
    (found,) = set(re.findall(r"listen (\d+) ", (DEPLOY / "nginx.conf").read_text()))
    return found


def test_everything_that_is_copied_is_there() -> None:
    copied = [rest.split() for rest in said(BUILD, "COPY")]
    sources = [source for *some, _ in copied for source in some]
    assert {"requirements.txt", "pyproject.toml", "normviz", "app", "assets"} <= set(sources)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for source in sources:
        assert any(path == source or path.startswith(f"{source}/") for path in tracked), source
    built, started = said(LAST, "COPY")
    assert built.split()[0] == "--from=build"
    *files, folder = started.split()
    assert set(files) <= set(tracked) and said(LAST, "CMD") == [f'["{folder}start.sh"]']
    assert {Path(file).name for file in files} == {"nginx.conf", "start.sh"}
    assert os.access(DEPLOY / "start.sh", os.X_OK) and '$(dirname "$0")' in START


def test_the_pinned_set_is_installed_before_the_package() -> None:
    runs = [rest for rest in said(BUILD, "RUN") if "pip install" in rest]
    assert [("-r requirements.txt" in run, "--no-deps" in run) for run in runs] == [
        (True, False), (False, True)
    ]  # fmt: skip
    order = [rest for word, rest in BUILD if word in ("COPY", "RUN")]
    pinned = next(i for i, rest in enumerate(order) if "-r requirements.txt" in rest)
    assert order[pinned - 1].startswith("requirements.txt"), (
        "its layer outlives changes of the code"
    )


def test_nobody_is_root_and_the_data_are_theirs() -> None:
    (user,) = said(LAST, "USER")
    _, made = said(LAST, "RUN")
    (volume,) = said(LAST, "VOLUME")
    assert user == "normviz" and f"--uid 1000 {user}" in made and f"-o {user} {volume}" in made
    words = [word for word, _ in LAST]
    assert words.index("USER") < words.index("CMD")
    environment = dict(pair.split("=", 1) for pair in said(LAST, "ENV")[0].split())
    assert environment["NORMVIZ_HOME"] == volume and environment["NORMVIZ_HOSTED"] == "1"


def test_ports_agree() -> None:
    assert said(LAST, "EXPOSE") == [port()]
    behind = command()[command().index("--port") + 1]
    assert f"server 127.0.0.1:{behind};" in (DEPLOY / "nginx.conf").read_text() and behind != port()
    assert command()[command().index("--host") + 1] == "127.0.0.1", "nobody gets past the proxy"
    _, front, _ = (DEPLOY / "space" / "README.md").read_text().split("---\n", 2)
    space = yaml.safe_load(front)
    assert (space["sdk"], str(space["app_port"])) == ("docker", port())


def test_no_file_names_another_host() -> None:
    for path in (DEPLOY / "Dockerfile", DEPLOY / "space" / "README.md"):
        assert set(re.findall(r"://([\w.]+)", path.read_text())) <= {"127.0.0.1"}


def setting_of_a_space(folder: Path) -> tuple[str, str]:
    """The commands of the Space's README, in a copy of the repository; returns the variable that they add
    to the Dockerfile."""
    shutil.copytree(DEPLOY, folder / "assets" / "deploy")
    (commands,) = re.findall(
        r"```bash\n(.*?)```", (DEPLOY / "space" / "README.md").read_text(), re.S
    )
    subprocess.run(["bash", "-e", "-c", commands], cwd=folder, check=True)
    assert (folder / "README.md").read_text().startswith("---\ntitle: NormViz")
    made = (folder / "Dockerfile").read_text()
    setting, _, value = made.removeprefix(TEXT).strip().removeprefix("ENV ").partition("=")
    assert made.startswith(TEXT) and setting not in TEXT
    return setting, value


def is_healthy(address: str) -> bool:
    """What the container's check says of a server."""
    (check,) = said(LAST, "HEALTHCHECK")
    python, *code = json.loads(check.partition("CMD ")[2])
    assert python == "python"
    asked = [word.replace(f":{port()}/", f":{address.rpartition(':')[2]}/") for word in code]
    return subprocess.run([sys.executable, *asked], capture_output=True).returncode == 0


@pytest.mark.slow
def test_no_other_host_is_asked_where_this_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit asks one, when it listens everywhere and was not told its own name."""
    from cli_kit import normviz

    seen: list[list[str]] = []
    monkeypatch.setattr("normviz.cli.app.os.execve", lambda _, words, __: seen.append(words))
    monkeypatch.setattr("normviz.cli.app.os.chdir", lambda _: None)
    monkeypatch.setattr("normviz.cli.app.check_address", lambda *_: None)
    for words in (["app", "--host", "0.0.0.0"], command()[1:]):
        normviz(*words, "--data", str(tmp_path))
    told = "--browser.serverAddress=localhost"
    assert [told in words for words in seen] == [True, False]


def test_streamlit_finds_its_settings_from_the_top_of_the_repository() -> None:
    """A host that runs `streamlit run app/main.py` there reads this file alone."""
    ours = (ROOT / "app" / ".streamlit" / "config.toml").read_text()
    assert (ROOT / ".streamlit" / "config.toml").read_text() == ours


@pytest.mark.slow
def test_streamlit_opens_the_page_with_the_requirements_alone(tmp_path: Path) -> None:
    """-S leaves out the package, to which only a link is installed. `normviz app` opens `main.py`."""
    address = f"--server.port={(port := free_port())}"
    packages = {"PYTHONPATH": sysconfig.get_path("purelib"), VARIABLE: str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", "streamlit", "run", "app/server.py", address], cwd=ROOT,
        env={**os.environ, **packages, "STREAMLIT_SERVER_HEADLESS": "true"}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: answers(f"http://localhost:{port}/_stcore/health"))
        with urllib.request.urlopen(f"http://localhost:{port}", timeout=60) as answer:
            assert b"NormViz</title>" in answer.read()
    finally:
        process.terminate()
        process.wait(60)


def test_the_app_finds_the_package_where_it_is_not_installed(tmp_path: Path) -> None:
    """-S leaves out what is installed."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'app')!r}); import search_path, os;"
        "from importlib.util import find_spec;"
        "print(find_spec('normviz').origin, os.environ['PYTHONPATH'], sep=chr(10))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": "/elsewhere"},
    )  # fmt: skip
    expected = os.pathsep.join(("/elsewhere", str(ROOT)))
    assert done.stdout.split() == [str(ROOT / "normviz" / "__init__.py"), expected], done.stderr
