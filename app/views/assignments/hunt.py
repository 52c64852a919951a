"""A bug hunt: the code, the guess, and on request what the doctor says."""

from __future__ import annotations

import streamlit as st

from normviz.lessons.assignments import FINDINGS, BugHunt

from ...session.markdown import literal
from ...widgets.download import download


def show(hunt: BugHunt) -> None:
    """The hunt, from top to bottom."""
    st.markdown(
        f"{literal(hunt.sentence)} This code has one bug about its norms, which `normviz doctor` finds. Find "
        "it yourself first, by reading or by training it."
    )
    download("Download the code", lambda: hunt.planted, hunt.file, "text/x-python", key="hunt_file",
             icon=":material/download:")  # fmt: skip
    with st.container(height=420, key="hunt_code"):
        st.code(hunt.planted, language="python", line_numbers=True)
    guess = st.radio(
        "Which of the doctor's findings is it?", list(FINDINGS), index=None, key=f"hunt_{hunt.key}",
        captions=[literal(means) for means in FINDINGS.values()],
    )  # fmt: skip
    if guess is not None:
        right = guess == hunt.finding
        st.markdown(f"**{'Right' if right else 'Not quite'}.** "
                    f"{'' if right else 'Read the code again, or look at the solution.'}")  # fmt: skip
    with st.expander("Solution", key=f"solution_{hunt.key}"):
        st.markdown(f"**{literal(hunt.finding)}.** The doctor says: {literal(hunt.says)}.")
        st.markdown("Without the bug:")
        st.code(hunt.right, language="python", wrap_lines=True)
        st.markdown("To ask the doctor yourself:")
        st.code(f"normviz doctor {hunt.file}:build", language="bash")
