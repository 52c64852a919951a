"""Makes NormViz importable from a checkout, for hosts that install only requirements.txt."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if importlib.util.find_spec("normviz") is None and (ROOT / "normviz").is_dir():
    sys.path.append(str(ROOT))
    paths = (os.environ.get("PYTHONPATH"), str(ROOT))  # for the processes that train
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
