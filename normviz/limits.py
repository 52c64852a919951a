"""The limits of a run as a whole, and of what people ask for."""

from __future__ import annotations

MAX_MINUTES = 30.0
"""Estimated minutes of one CPU core that a run may take by the eager engine. The tape would allow more,
but a link must open on every machine."""

MAX_GIB = 4.0
"""Estimated memory of a run in GiB."""

MAX_GPU_GIB = 64.0
"""The same of a run that names a GPU (device=cuda). One with less memory says so when it runs out."""

MAX_LANES = 4
"""Lanes of a duel."""

SEEDS = 5
"""Runs of a lane after Repeat: itself and four with the next seeds."""

MAX_CELLS, MAX_SWEEP_CELLS = 1000, 10_000
"""Runs of a page's maps: cells of the grid times seeds; and of one `normviz sweep`."""

MAX_SWEEP_SEEDS = 50
"""Seeds of a sweep, of a map that a link names, and of a run in a terminal."""

MAX_FILL_MINUTES = 30.0
"""Estimated minutes of all cores to fill the maps of a page."""

MAX_MAPS = 8
"""Maps side by side on one page."""

MAX_SWEEP_HOURS = 12.0
"""Estimated hours of one CPU core for all runs of a sweep together, on this machine."""

MAX_TEXT_BYTES = 1_000_000
"""Bytes of a visitor's own text, in UTF-8 with one-character line ends."""

MAX_SYMBOLS = 512
"""Symbols that encode a text. With more distinct characters the rarest share the last symbol."""

HELD_OUT = 10
"""One character in so many, at the end of a text, is held out from training."""

MAX_TEXTS = 200
"""Texts that a data folder keeps. One more deletes the least recently used one that no open run reads, and no
run whose link was copied."""

TEXT_DIGITS = 32
"""Hexadecimal digits of a text's SHA-256 that identify it in configs and links."""

QUICK_SECONDS, QUICK_GIB = 0.4, 0.5
"""Up to these estimates, a measurement at initialisation needs no process of its own."""


def characters_needed(seq_len: int) -> int:
    """Least number of characters to cut sequences from; as many as one sequence needs are held out."""
    return HELD_OUT * (seq_len + 1)
