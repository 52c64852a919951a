"""`python -m normviz.runner`: the supervisor of the store in $NORMVIZ_HOME, until stdin ends."""

import sys

from .supervisor import serve

if __name__ == "__main__":
    sys.exit(serve())
