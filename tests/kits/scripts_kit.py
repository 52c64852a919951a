"""Scripts to take away, run as a stranger would: in a Python that has no normviz."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ALONE = """
import contextlib, io, json, pathlib, sys, warnings
warnings.simplefilter("error")
sys.modules["normviz"] = None  # importing it fails
_, given, *paths = sys.argv
for path in paths:
    sys.argv = [path, *json.loads(given)]
    said, names = io.StringIO(), {"__name__": "__main__"}
    with contextlib.redirect_stdout(said):
        exec(compile(pathlib.Path(path).read_text(), path, "exec"), names)
    losses = names["losses"] if "losses" in names else [names["loss"].item()]
    print(json.dumps({"losses": losses, "said": said.getvalue()}))
"""


def run_alone(folder: Path, sources: list[str], *given: str) -> list[dict]:
    """What each script computed and said: {"losses": [...], "said": str}. One process runs all, each
    with the `given` words of its command line."""
    paths = [folder / f"{i}.py" for i in range(len(sources))]
    for path, source in zip(paths, sources, strict=True):
        path.write_text(source)
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, json.dumps(given), *map(str, paths)],
        capture_output=True, text=True, timeout=600, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
