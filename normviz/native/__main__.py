"""`python -m normviz.native` compiles the library of the fast engine."""

import sys

from .build import BuildError, build

try:
    build()
except BuildError as error:
    sys.exit(str(error))
