"""`python -m normviz.labs NAME`: a config as JSON a line in, its readings and CPU seconds a line out.

A lab takes a turn to train, so that nothing is timed beside it; one that times has ALONE and takes its
own. What can't be measured comes out as one sentence, and ends it.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from importlib import import_module

from ..config import ConfigError, RunConfig
from ..home import home
from ..norm_cost.lab import BusyError
from ..store import StoreError
from ..store.machine_lock import Turn


def main() -> None:
    """Answer until standard input closes."""
    os.nice(15)  # as a sweep's workers: a page stays responsive beside it
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else that prints may come between
    lab = import_module(f"normviz.labs.{sys.argv[1]}")
    turn = None if getattr(lab, "ALONE", False) else Turn(home())
    for line in sys.stdin:
        if turn is not None:
            turn.wait(math.inf)
        began = time.process_time()
        try:
            readings = lab.measure(RunConfig.model_validate_json(line))
        except (BusyError, ConfigError, StoreError, ValueError) as error:
            print(json.dumps({"problem": str(error)}), file=out, flush=True)
            return
        finally:
            if turn is not None:
                turn.leave()
        plain = {name: v if math.isfinite(v) else math.nan for name, v in readings.items()}
        answer = {"values": plain, "seconds": time.process_time() - began}
        try:
            print(json.dumps(answer), file=out, flush=True)
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(1)


if __name__ == "__main__":
    main()
