"""Training in processes of its own: a supervisor that keeps warm workers, one process a run.

    Streamlit server (no torch)  --starts-->  supervisor  --forks-->  worker, worker, ...
            |                                     |                      |
            +--------------- SQLite store --------+----------------------+

A run gets a warm process to itself and the process ends with the run: stopping frees everything,
and a crash takes nothing else along. Only a quick measurement at initialisation hands its process
back, warm for whoever comes next. The server holds the supervisor's standard input and the
supervisor a pipe to each worker; when either is gone, even by SIGKILL, the other end leaves at once.
"""
