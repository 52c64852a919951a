"""`python -m normviz.execution.supervise`: the supervisor of the store in $NORMVIZ_HOME, until stdin ends."""

import os
import sys

from ..runs.store import StoreDamaged, StoreError
from .client import DAMAGED, UNUSABLE
from .supervisor import serve

if __name__ == "__main__":
    try:
        sys.exit(serve())
    except StoreError as error:
        print(f"normviz: {error}", file=sys.stderr, flush=True)
        # At once: a thread waits for standard input, and Python would abort over its lock.
        os._exit(DAMAGED if isinstance(error, StoreDamaged) else UNUSABLE)
