"""Scripts to take away, run as a stranger would: in a Python that has no normviz."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

ALONE = """
import contextlib, io, json, os, pathlib, sys, warnings
warnings.simplefilter("error")
sys.modules["normviz"] = None  # importing it fails
for line in sys.stdin:
    folder, given, paths = json.loads(line)
    os.chdir(folder)
    for path in paths:
        sys.argv = [path, *given]
        said, names = io.StringIO(), {"__name__": "__main__"}
        with contextlib.redirect_stdout(said):
            exec(compile(pathlib.Path(path).read_text(), path, "exec"), names)
        print(json.dumps({"losses": names["losses"], "said": said.getvalue()}), flush=True)
"""


class _Alone:
    """A process that runs scripts, one after another, until one of them fails. It loads PyTorch once."""

    def __init__(self) -> None:
        self.errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", ALONE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        atexit.register(self.end)

    def run(self, folder: Path, paths: list[Path], given: tuple[str, ...]) -> list[dict]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps([str(folder), given, list(map(str, paths))]), file=self.process.stdin)
        self.process.stdin.flush()
        lines = [self.process.stdout.readline() for _ in paths]
        if not all(lines):
            raise AssertionError(self.end()[-3000:])
        return [json.loads(line) for line in lines]

    def end(self) -> str:
        """Ends the process; returns its standard error."""
        if self.errors.closed:
            return ""
        self.process.communicate()
        with self.errors:
            self.errors.seek(0)
            return self.errors.read()


_idle: list[_Alone] = []


def run_alone(folder: Path, sources: list[str], *given: str) -> list[dict]:
    """What each script computed and said: {"losses": [...], "said": str}, each with the `given` words
    of its command line. One process runs all, also those of later calls, until a script fails."""
    paths = [folder / f"{i}.py" for i in range(len(sources))]
    for path, source in zip(paths, sources, strict=True):
        path.write_text(source)
    alone = _idle.pop() if _idle else _Alone()
    found = alone.run(folder, paths, given)
    _idle.append(alone)
    return found
