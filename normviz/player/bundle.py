"""The player's script: some small files joined to one, and Vega beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from ..home import shipped

PARTS = (
    "shape.js",
    "chart.js",
    "cursor.js",
    "source.js",
    "walk_build.js",
    "walk.js",
    "draw.js",
    "hands.js",
    "picture.js",
    "panel.js",
    "player.js",
)
"""Each uses what the ones before it define."""

SNIPPET = "globalThis.normvizVega = { vegaEmbed };"


def folder() -> Path:
    """Where the player's files lie."""
    return shipped("assets") / "player"


@lru_cache(maxsize=1)
def script() -> str:
    """The player as one script that needs no module loader: it also runs in a file from disk.

    It leaves one name behind, `normvizPlayer`.
    """
    parts = [(folder() / part).read_text("utf-8") for part in PARTS]
    joined = "\n".join(re.sub(r"^import .*\n", "", part, flags=re.M) for part in parts)
    joined = re.sub(r"^export ", "", joined, flags=re.M)
    return (
        f"(() => {{\n{joined}\nglobalThis.normvizPlayer = {{ mount, embedded, socket }};\n}})();\n"
    )


@lru_cache(maxsize=1)
def css() -> str:
    """The player's style sheet; all its names start with nv."""
    return (folder() / "player.css").read_text("utf-8")


@lru_cache(maxsize=1)
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it leaves the name `normvizVega` behind."""
    return (folder() / "vega.js").read_text("utf-8")


class Scripts(Mapping[str, str]):
    """The scripts that a page loads, in this order. Each is read when it is first asked for."""

    READERS: ClassVar = {"vega": vega, "player": script}

    def __getitem__(self, name: str) -> str:
        return self.READERS[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.READERS)

    def __len__(self) -> int:
        return len(self.READERS)


SCRIPTS = Scripts()


@lru_cache(maxsize=4)
def version(text: str) -> str:
    """Names a script's content, so that a browser may keep it for good."""
    return sha256(text.encode()).hexdigest()[:12]


def build_vega() -> str:
    """The same, made anew from vl-convert, which carries the Vega that Altair was written for."""
    import vl_convert

    # Its hundreds of short names stay inside.
    return f"(() => {{\n{vl_convert.javascript_bundle(SNIPPET)}\n}})();\n"
