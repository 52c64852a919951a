"""Hatch's build hook: an install compiles the library where there is a C++ compiler.

Without a compiler the wheel has no library and suits every platform. Training then uses eager.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = "normviz/native"


class TapeHook(BuildHookInterface):
    """Adds the library to a wheel; for an editable install it puts the library beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel has."""
        made = _builder(Path(self.root, FOLDER, "build.py"))
        try:
            if version == "editable":
                made.build()
                return
            self.folder = tempfile.TemporaryDirectory()
            target = Path(self.folder.name, made.LIBRARY.name)
            made.build(target)
        except made.BuildError as error:
            self.finalize(version, build_data, "")
            self.app.display_warning(f"NormViz is installed without its fast engine: {error}")
            return
        build_data["force_include"][str(target)] = f"{FOLDER}/{target.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder of the library."""
        if hasattr(self, "folder"):
            self.folder.cleanup()


def _builder(file: Path) -> ModuleType:
    """`build.py` by its path: NormViz's dependencies are not installed yet."""
    spec = importlib.util.spec_from_file_location("normviz_tape_build", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform() -> str:
    """This machine's tag; the library may need a newer C library than manylinux allows."""
    linux = ("manylinux", "musllinux")
    return next(tag.platform for tag in sys_tags() if not tag.platform.startswith(linux))
