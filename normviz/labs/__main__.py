"""`python -m normviz.labs NAME`: a config as JSON a line in, its readings and CPU seconds a line out."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from importlib import import_module

from ..config import RunConfig


def main() -> None:
    """Answer until standard input closes."""
    os.nice(15)  # as a sweep's workers: a page stays responsive beside it
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else that prints may come between
    measure = import_module(f"normviz.labs.{sys.argv[1]}").measure
    for line in sys.stdin:
        began = time.process_time()
        readings = measure(RunConfig.model_validate_json(line))
        plain = {name: v if math.isfinite(v) else math.nan for name, v in readings.items()}
        answer = {"values": plain, "seconds": time.process_time() - began}
        try:
            print(json.dumps(answer), file=out, flush=True)
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(1)


if __name__ == "__main__":
    main()
