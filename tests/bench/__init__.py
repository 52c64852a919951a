"""Benchmarks for developers, `python -m tests.bench.NAME` in a checkout. They use the tests' kits."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "kits"))
