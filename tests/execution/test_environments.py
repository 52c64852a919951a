"""A child that has variables of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from normviz.execution import local


def test_each_child_has_its_own_variables_and_the_next_one_takes_those_that_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[str]()

    def start(*_: object, GPU: str, **more: Any) -> subprocess.Popen[bytes]:
        given.append(GPU)
        return subprocess.Popen(["sleep", "60"])

    monkeypatch.setattr(local, "start", start)
    own = [{"GPU": "0"}, {"GPU": "1"}]
    executor = local.Local[str](print, {}, tmp_path, 2, environments=own)
    first, _ = executor._start(), executor._start()
    executor._end(first)
    executor._start()
    executor.close()
    assert given == ["0", "1", "0"]
