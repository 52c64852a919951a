"""Import this first: compiled modules are kept, also where the environment says not to keep them.

Each process of the tests, and each process that a test starts, would otherwise compile every module again.
What imports make until `pytest_collection_finish` is no garbage, and to look for it would take a second.
"""

from __future__ import annotations

import gc
import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.disable()
