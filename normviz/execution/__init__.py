"""Tasks in other processes: what runs them, and what is heard of them. Without PyTorch.

executor  the protocol: events of tasks, their ends, stop; `sweep.tasks` implements it with Ray
local     child processes of this one: maps, labs and cost measurements
parent    a child's end of the pipe, also of a worker of the supervisor
process   how a process of ours is started, and how its end is described
"""

from .executor import Began, Ended, Event, Executor, Progress, TaskError, no_result
from .local import Local

__all__ = ["Began", "Ended", "Event", "Executor", "Local", "Progress", "TaskError", "no_result"]
