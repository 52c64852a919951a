"""Everything that runs in another process: tasks, and the runs that train for the pages. Without PyTorch.

Tasks (of a terminal cells of a map and labs of a claim; a pasted model) run in child processes, or on a Ray
cluster:

executor    the protocol: events of tasks, their ends, stop; `studies.maps.ray` implements it with Ray
local       child processes of this one
process     how a process is started, and how its end is described
parent      a child's end of the pipe, also of a worker of the supervisor

Runs, and cells that a page asks for, wait in the store's queue. A supervisor trains them, each in a process
of its own:

    Streamlit server (no torch)  --starts-->  supervisor  --forks-->  worker, worker, ...
            |                                     |                      |
            +--------------- SQLite store --------+----------------------+

A run gets a warm process to itself, and the process ends with the run. So a stop frees everything, and a
crash ends nothing else. Only a quick measurement at initialisation returns its process, which then takes
the next one, and a cell of a map or a claim, whose process takes cells alone from then on. The server
holds the supervisor's standard input, and the supervisor holds a pipe to each worker. When either
closes, even by SIGKILL, the other end exits at once.
"""

from .executor import Began, Ended, Event, Executor, TaskError, no_result
from .local import Local

__all__ = ["Began", "Ended", "Event", "Executor", "Local", "TaskError", "no_result"]
