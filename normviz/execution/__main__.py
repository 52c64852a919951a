"""`python -m normviz.execution PIPE NICENESS`: a child process of `Local`; does one task after another."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from multiprocessing.connection import Connection

from .executor import Ended, TaskError, no_result
from .parent import Parent
from .process import lower_priority


def main(pipe: int, niceness: int) -> None:
    """Answer until the parent is gone. What a task prints goes elsewhere."""
    os.set_inheritable(pipe, False)
    lower_priority(niceness)
    parent = Parent(Connection(pipe))
    while True:
        _do_task(parent)
        gc.collect()


def _do_task(parent: Parent) -> None:
    """Send the task's end; the parent knows which task it is."""
    try:
        function, arguments = parent.receive()
        parent.send(Ended(None, function(*arguments)))
        return
    except TaskError as error:
        problem = str(error)
    except Exception as error:  # the next task may succeed
        traceback.print_exc()
        problem = no_result(error)
    parent.send(Ended(None, problem=problem))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
