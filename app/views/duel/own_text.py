"""A visitor's own text: the form to paste or upload it, its counts, and its deletion.

The page never shows a text again. A shared server takes none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import streamlit as st

from normviz.catalog import FAMILIES, TASKS
from normviz.config import RunConfig
from normviz.limits import MAX_SYMBOLS, MAX_TEXT_BYTES, MAX_TEXTS, characters_needed
from normviz.model import texts
from normviz.model.characters import TextError
from normviz.runs.store import StoreError

from ...session import duel, training
from ...session.backend import SharedBackend, shared
from ...session.duel import Duel
from ...session.markdown import literal, sentence
from ...session.page_state import chosen
from ...session.policy import policy
from ...widgets.buttons import button, submit
from . import complaint
from .values import taken

BOX = 1_250_000
"""Characters that the text area takes. Fewer than the largest message to the server, at any number of
bytes for each (.streamlit/config.toml); more than a text may have, so that no allowed text is cut."""

KEPT = (
    "Your text stays on the server that runs this page, as a file named by its hash. It is never put "
    "in a link and never shown again. Anybody who can open this page can see the curves of runs on it, and "
    "a line that each trained model writes, which can repeat the text. With its hash, which a link holds, "
    "they can also train on it or delete it. The losses of very small batches can reveal the characters of "
    "a text, and other curves can tell something too: do not give a text that must stay secret. Delete it "
    "with the button that appears here once it is used. The server keeps up to "
    f"{MAX_TEXTS} texts. To make room, it deletes the one used longest ago, but none that an open run or a "
    "run with a copied link needs."
)
ELSEWHERE = (
    "This server is shared and takes no text of yours. Where you install NormViz, this page and "
    "`normviz run --text book.txt` train on one."
)


def task(configs: Sequence[RunConfig], title: str, key: str, backend: SharedBackend) -> None:
    """The task of all lanes, and the form for a text if the task needs one. A server that takes no texts has
    that task in the list only where a link names it."""
    page_duel = duel.duel()
    value = "text" if page_duel.wants_text else configs[0].task
    duel.show(page_duel, key, value)
    learned = {name for config in configs for name in FAMILIES[config.family].tasks}
    if not policy().own_text and value != "text":
        learned.discard("text")
    offered = [task.key for task in TASKS if task.key in learned]
    st.selectbox(
        title, offered, key=key, format_func=TASKS.label, help=TASKS[value].sentence,
        on_change=taken(_choose), args=(page_duel, backend, key),
    )  # fmt: skip
    complaint.under(key)
    st.caption(TASKS[value].sentence)
    used = tuple(dict.fromkeys(config.text for config in configs if config.text))
    if not (used or page_duel.wants_text):
        return
    if not policy().own_text:
        st.caption(ELSEWHERE)
        return
    for text in used:
        _say(text, max(config.seq_len for config in configs if config.text == text))
    wanted = page_duel.wants_text or not all(map(texts.is_here, used))
    _box(max(config.seq_len for config in configs), wanted, backend)
    for text in used:
        _offer_deletion(text)
    st.caption(KEPT)


def _choose(page_duel: Duel, backend: SharedBackend, key: str) -> None:
    """Set the task. The task of one's own text waits for a text, unless one was used before."""
    value = chosen(key)
    page_duel.wants_text = value == "text" and not page_duel.text
    if page_duel.wants_text:
        page_duel.complain(None)
    else:
        duel.change(page_duel, "task", value, widget=key)
        training.by_itself(page_duel, backend)


def _say(text: str, seq_len: int) -> None:
    """Show a text's counts, or why it can't be trained on."""
    if why := texts.lacking("this setting", text, "paste it"):
        st.warning(sentence(why))
        return
    try:
        facts = texts.about(text)
    except TextError:  # just deleted, or damaged
        st.warning(sentence(texts.missing("this setting", text, "paste it")))
        return
    st.caption(f"Text {text[:8]}…: {facts.sentence()}")
    needed = characters_needed(seq_len)
    if facts.characters < needed:
        st.warning(
            f"Too short for sequences of {seq_len}, which need {needed:,} characters: lower the "
            "sequence length or give a longer text."
        )


def _box(seq_len: int, wanted: bool, backend: SharedBackend) -> None:
    """The form to paste or upload a text. Once a text is used, new widget keys clear the form."""
    page_duel, number = duel.duel(), st.session_state.get("text_box", 0)
    area, file = f"text_area_{number}", f"text_file_{number}"
    if page_duel.wants_text:
        st.info("Give a text below. Until then the lanes keep their present task.")
    with st.expander(
        "Give a text" if wanted else "Another text", expanded=wanted or bool(page_duel.text_problem)
    ):
        with st.form("text_form", border=False):
            st.text_area("Paste a text", key=area, height=120, max_chars=BOX)
            st.file_uploader(
                "or upload a file of plain text in UTF-8 (quicker for long texts)", key=file
            )
            submit("Use this text", _use, page_duel, backend, area, file, seq_len, key="use_text")
        if page_duel.text_problem:
            st.error(literal(sentence(page_duel.text_problem)))
        st.caption(
            f"Up to {MAX_TEXT_BYTES:,} bytes in UTF-8, and {characters_needed(seq_len):,} characters "
            f"or more for sequences of {seq_len}. Of more than {MAX_SYMBOLS} distinct characters the "
            f"rarest become one “other” symbol. A paste of more than {BOX:,} characters "
            "leaves the box as it was."
        )


def _use(page_duel: Duel, backend: SharedBackend, area: str, file: str, seq_len: int) -> None:
    """Store the text and set all lanes to it."""
    pasted, uploaded = chosen(area) or "", chosen(file)
    if not (pasted or uploaded):
        page_duel.text_problem = (
            "nothing was given: paste a text, or choose a file (a paste of more than "
            f"{BOX:,} characters is not taken, nor a file above 1 MB, marked red)"
        )
        return
    if pasted and uploaded:
        page_duel.text_problem = "a text was pasted and a file uploaded: clear one of them"
        return
    given = uploaded.getvalue() if uploaded else pasted.encode()
    try:
        key = texts.add(given, seq_len, backend.store.needed_texts)
    except (TextError, StoreError) as error:
        page_duel.text_problem = str(error)
        return
    _drop_writing()
    page_duel.text, page_duel.wants_text = key, False
    page_duel.text_problem, page_duel.notices = None, ()
    duel.change(page_duel, "text", key)
    training.by_itself(page_duel, backend)
    st.session_state["text_box"] = (chosen("text_box") or 0) + 1


def _drop_writing() -> None:
    """Delete what models wrote of texts that are no longer here."""
    with contextlib.suppress(StoreError):  # every page says what is wrong with the store
        shared().store.drop_writing(texts.listed())


def _offer_deletion(text: str) -> None:
    """A button to delete a text, where it is here."""
    if texts.is_here(text):
        button(
            "Delete this text from the server", _delete, duel.duel(), text, key=f"delete_{text}",
            icon=":material/delete:",
            help="With what models wrote of it. Curves of runs that trained on it stay",
        )  # fmt: skip


def _delete(page_duel: Duel, text: str) -> None:
    texts.delete(text)
    _drop_writing()
    page_duel.text = "" if page_duel.text == text else page_duel.text
