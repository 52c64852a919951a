"""The player's script: its ES modules joined to one, and Vega beside it.

A replay opens from a disk, where a browser loads no modules, and the bundler of vl-convert takes no
modules of ours. So they are joined here, in the order of their imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from ..home import shipped

ENTRY = "player.js"
"""The module whose imports lead to all others."""

IMPORT = re.compile(r"^(?:import|export) {[^}]*} from \"\./(\w+\.js)\";\n", re.M)
NAMES = "mount, embedded, posted, socket"
"""What a page uses of the modules."""

SNIPPET = "globalThis.normvizVega = { vegaEmbed };"


def folder() -> Path:
    """Where the player's files lie."""
    return shipped("assets") / "player"


@lru_cache(maxsize=1)
def script() -> str:
    """The player as one script that needs no module loader: it also runs in a file from disk.

    It leaves one name behind, `normvizPlayer`.
    """
    return f"(() => {{\n{joined(ENTRY)}\nglobalThis.normvizPlayer = {{ {NAMES} }};\n}})();\n"


def joined(module: str) -> str:
    """A module after those that it imports, in one scope, in which a name can be taken once."""
    texts: dict[str, str] = {}
    _add(module, texts)
    return re.sub(r"^export ", "", "\n".join(texts.values()), flags=re.M)


def _add(module: str, texts: dict[str, str]) -> None:
    """Put the texts of a module's imports, and then its own, after those that are there."""
    if module in texts:
        return
    text = (folder() / module).read_text("utf-8")
    for other in IMPORT.findall(text):
        _add(other, texts)
    texts[module] = IMPORT.sub("", text)


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
    """`vega.js`, made again from vl-convert, which carries the Vega that Altair was written for."""
    import vl_convert

    # Its hundreds of short names stay inside.
    return f"(() => {{\n{vl_convert.javascript_bundle(SNIPPET)}\n}})();\n"
