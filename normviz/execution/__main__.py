"""`python -m normviz.execution PIPE NICENESS`: a child process of `Local`."""

import os
import sys
from multiprocessing.connection import Connection

from .child import main
from .process import lower_priority

if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    lower_priority(int(sys.argv[2]))
    main(Connection(int(sys.argv[1])))
