"""`python -m normviz.native` compiles the library of the fast engine, and with `--wasm` its module for
browsers."""

import sys
from pathlib import Path

from .build import BuildError, build, build_wasm

MODULE = Path(__file__).parents[2] / "assets" / "player" / "tape.wasm"

try:
    if sys.argv[1:] == ["--wasm"]:
        build_wasm(MODULE)
    elif sys.argv[1:]:
        sys.exit(f"got {' '.join(sys.argv[1:])!r}, allowed is --wasm or nothing")
    else:
        build()
except BuildError as error:
    sys.exit(str(error))
