"""The glossary: one plain sentence a word, every mark on a page has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import normviz.app.widgets.glossary as widgets
import pytest

from normviz.catalog import WORDS

APP = Path(__file__).parents[2] / "app"
OURS = ("by_hand", "catalog", "choose", "claims", "duel", "maps", "runs")
PAGES = [APP / "views" / name / "page.py" for name in OURS]


def texts(path: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said:
            yield node.value


def line_words(path: Path) -> list[str]:
    """The words that a page names by `glossary.line`."""
    calls = (
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    )
    return [
        argument.value
        for call in calls
        if ast.unparse(call.func) == "glossary.line"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_each_word_has_one_sentence_that_is_read_once() -> None:
    for word in WORDS:
        assert word.sentence.endswith(".") and word.sentence[0].isupper(), word
        assert not re.search(r"[.!?;] ", word.sentence), f"more than one sentence: {word}"
        assert len(word.sentence) <= 190, (len(word.sentence), word)


def test_every_mark_on_a_page_is_a_word() -> None:
    marks = [
        found["key"]
        for path in APP.rglob("*.py")
        for text in texts(path)
        for found in widgets.MARK.finditer(text)
    ]
    named = [key for path in PAGES for key in line_words(path)]
    assert marks and named
    assert {*marks, *named} <= set(WORDS.keys())
    assert set(WORDS.keys()) - {*marks, *named} <= {
        "block", "gain", "lane", "l2", "entropy", "logit", "batch", "step",
    }, "a word that no page shows"  # fmt: skip


def test_a_mark_is_a_button_and_an_unknown_word_is_an_error() -> None:
    button = '<button type="button" class="word" popovertarget="word-nat">{}</button>'
    assert widgets.marked("2 [[nat]]") == f"2 {button.format('nat')}"
    assert widgets.marked("2 [[nat|nats]] [a](b)") == f"2 {button.format('nats')} [a](b)"
    with pytest.raises(ValueError, match="nonsense"):
        widgets.marked("[[nonsense]]")
