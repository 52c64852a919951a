"""`python -m normviz.norm_cost`: one measurement for the page, reported as lines of JSON on stdout.

It reads a setting as one line of JSON and exits when its standard input closes, because then the
client is gone or stopped it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict

from ..config import ConfigError
from ..home import home
from ..store import StoreError
from .lab import BusyError, Doing, run
from .result import Measurement
from .setting import Setting


def main() -> None:
    """Read the setting, measure, report."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other prints must not mix with the JSON lines

    def say(**words: object) -> None:
        out.write(json.dumps(words) + "\n")
        out.flush()

    line = sys.stdin.readline()
    threading.Thread(target=_leave_with_stdin, daemon=True).start()
    try:
        for news in run(Setting(**json.loads(line)), home()):
            match news:
                case Doing(words):
                    say(doing=words)
                case Measurement():
                    say(done=True)
                case _:
                    say(**asdict(news))
    except (BusyError, ConfigError, StoreError, ValueError) as error:
        say(problem=str(error))
    except OSError as error:
        say(problem=f"the result can't be kept: {error}")
    except MemoryError:
        say(problem="it needs more memory than this machine has: lower width or tokens")


def _leave_with_stdin() -> None:
    while sys.stdin.readline():
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
