"""Everything that runs in another process: tasks, and the runs that train for the pages. Without PyTorch.

child       a process that does one task after another: our end of it, and its own
executor    the protocol of tasks of a terminal (cells of a map, labs of a claim; also a pasted model):
            events, ends, stop; `studies.maps.ray` implements it with Ray
local       children of this process that do such tasks
process     how a process is started, and how its end is described

Runs, and cells that a page asks for, wait in the store's queue. A supervisor trains them, each in a process
of its own:

    Streamlit server (no torch)  --starts-->  supervisor  --forks-->  worker, worker, ...
            |                                     |                      |
            +--------------- SQLite store --------+----------------------+

A run gets a warm worker to itself, a `child` whose first task is to warm up and whose next one is the run,
and the worker ends with the run. So a stop frees everything, and a crash ends nothing else. Only a quick
measurement at initialisation returns its worker. Cells of maps and claims have workers of their own, of low
priority, which take one cell after another. The server holds the supervisor's standard input, and the
supervisor holds a pipe to each worker. When either closes, even by SIGKILL, the other end exits at once.
"""

from .executor import Began, Ended, Event, Executor, TaskError, no_result
from .local import Local

__all__ = ["Began", "Ended", "Event", "Executor", "Local", "TaskError", "no_result"]
