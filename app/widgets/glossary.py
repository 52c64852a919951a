"""Words of the trade on a page: a dotted button that opens the word's sentence beside it.

The browser opens the sentence by itself (a popover of HTML), by pointer, touch or keyboard.
"""

from __future__ import annotations

import re
from html import escape

import streamlit as st

from normviz.catalog import WORDS

from ..session.markdown import literal

MARK = re.compile(r"\[\[(?P<key>\w+)(?:\|(?P<shown>[^\]|]+))?\]\](?P<mark>[.,;:)]*)")
"""A word in a text of ours: [[nat]], or [[nat|nats]] where the sentence needs another form; with the marks
after it, which stay on its line (Firefox would begin one with them)."""


def marked(text: str) -> str:
    """Markdown with its words as buttons. Raises ValueError for a word that the glossary lacks."""
    return MARK.sub(_word, text)


def caption(text: str) -> None:
    """A caption whose words open their sentences. `text` is Markdown of ours or escaped by `literal`."""
    st.caption(marked(text), unsafe_allow_html=True)


def markdown(text: str) -> None:
    """The same as text of usual size."""
    st.markdown(marked(text), unsafe_allow_html=True)


def line(*keys: str) -> None:
    """A line that names words of the page."""
    with st.container(key="words_here"):
        caption(f"Words explained: {', '.join(f'[[{key}]]' for key in keys)}.")


def _word(match: re.Match[str]) -> str:
    word = WORDS[match["key"]]  # one that is not in the glossary raises here
    button = (
        f'<button type="button" class="word" popovertarget="word-{word.key}">'
        f"{escape(match['shown'] or word.label)}</button>"
    )
    return f'<span class="whole">{button}{match["mark"]}</span>' if match["mark"] else button


def sentences() -> None:
    """What the buttons open. A page shows it once."""
    cards = "".join(
        f'<div popover id="word-{word.key}" class="word-card"><b>{escape(word.label)}</b>: '
        f"{escape(word.sentence)}</div>"
        for word in WORDS
    )
    st.html(cards)


@st.dialog("Words", width="medium")
def every() -> None:
    """All words with their sentences, in alphabetical order."""
    for word in sorted(WORDS, key=lambda word: word.label.casefold()):
        st.markdown(f"**{literal(word.label)}**: {literal(word.sentence)}")
