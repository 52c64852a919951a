"""python -m tests.bench.gpu OUT [--cpu] [--only SECTION,SECTION] [--seconds N]

Writes OUT/gpu.json and OUT/report.md after every section. --cpu runs it with small sizes on a CPU, which
tests the check itself. A section that fails says so, and the others go on. After N seconds none begins: the
last ones repeat in more detail what others say. It needs a checkout, and only PyTorch, NumPy, pydantic,
platformdirs, filelock, psutil and typer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

from .sections import SECTIONS


def main() -> int:
    """Exit code 1 where a section failed, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu")
    names = [it.__name__ for it in SECTIONS]
    parser.add_argument("out", type=Path, help="folder of the report")
    parser.add_argument("--cpu", action="store_true", help="on a CPU, with small sizes")
    parser.add_argument("--only", default=",".join(names), help="sections: %(default)s")
    parser.add_argument("--seconds", type=float, default=300.0, help="default: %(default)g")
    given, start = parser.parse_args(), time.monotonic()
    if unknown := set(only := given.only.split(",")) - set(names):
        parser.error(f"no section is called {', '.join(sorted(unknown))}")
    if not given.cpu and not torch.cuda.is_available():
        print("PyTorch finds no CUDA GPU here: --cpu tests the check itself", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "grad and param do not obey the gradient layout contract")
    given.out.mkdir(parents=True, exist_ok=True)
    found, report, failed = dict[str, Any](), list[str](), False
    for section in (it for it in SECTIONS if it.__name__ in only):
        began = time.monotonic()
        if began - start > given.seconds:
            report.append(f"## {section.__name__}: left out, after {given.seconds:g} s\n")
            print(report[-1], flush=True)
            continue
        try:
            found[section.__name__], lines = section("cpu" if given.cpu else "cuda")
        except Exception:
            failed, lines = True, ["FAILED", traceback.format_exc()]
        report += [f"## {section.__name__}, {time.monotonic() - began:.0f} s", *lines, ""]
        print("\n".join(report[-2 - len(lines) :]), flush=True)
        (given.out / "gpu.json").write_text(json.dumps(found, indent=1))
        (given.out / "report.md").write_text("\n".join(report))
    (given.out / "report.md").write_text("\n".join(report))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
