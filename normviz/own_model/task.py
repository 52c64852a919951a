"""A pasted configuration is inspected in a process of its own, with bounds on its time and memory."""

from __future__ import annotations

import logging
import sys
import warnings

from ..execution.executor import TaskError

CPU_SECONDS = 60
"""CPU time of the process that inspects."""
MEMORY = 6 << 30
"""Bytes of its address space; PyTorch alone takes about 2 GB of it."""
NEXT = "give fewer or smaller blocks, or run `normviz inspect config.json` yourself, which has no such limit"
"""What to do where one of these limits ended an inspection."""


def inspected(text: str) -> str:
    """The anatomy of a configuration, as JSON; both are texts. Raises TaskError with a sentence."""
    _bound()
    from .anatomy import inspect_config
    from .source import offline

    offline()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    try:
        return inspect_config(text).to_json()
    except MemoryError:
        raise TaskError(
            f"the model needs more memory than an inspection may take: {NEXT}"
        ) from None
    except ValueError as error:
        raise TaskError(str(error)) from error


def _bound() -> None:
    """Limits of this process; Windows has none, and there the server's clock is the only one."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for kind, limit in (
        (resource.RLIMIT_CPU, int(used) + CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))
