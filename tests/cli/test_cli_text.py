"""The terminal with a text of one's own: naming its file, listing, deleting."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_kit import TINY, normviz, run_json
from task_kit import WORDS, with_task

from normviz import RunConfig
from normviz.home import VARIABLE
from normviz.links import encode
from normviz.model import texts


def test_a_text_is_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_bytes(WORDS.replace("\n", "\r\n").encode())
    for words in ((), ("hero", "task=text")):
        got = run_json(*words, *TINY, "--text", str(tmp_path / "book.txt"))
        assert (got["config"]["task"], got["config"]["text"]) == ("text", texts.add(WORDS))
        assert got["chance"] == texts.about(got["config"]["text"]).entropy


def test_the_text_of_a_link_can_be_left_for_another_task(tiny: RunConfig) -> None:
    link = f"http://x/?{encode([with_task(tiny, 'text')])}"
    assert run_json(link, "task=copy", "steps=1")["config"]["task"] == "copy"


def test_texts_are_listed_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    key = texts.add(WORDS)
    listed = normviz("texts").stdout
    assert listed.startswith(f"{key}  {len(WORDS):,} characters, ")
    assert (
        "1 of at most 200. One more deletes the least recently used text that no open run" in listed
    )
    assert normviz("texts", "--delete", key).stdout.startswith(f"deleted {key}")
    assert normviz("texts").stdout.startswith("0 of at most")
    for bad in (key, "../x"):
        result = normviz("texts", "--delete", bad)
        assert result.exit_code == 2
        assert result.stderr.startswith("normviz: ")
