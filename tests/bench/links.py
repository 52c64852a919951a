"""The process of `soak.py` that opens links in every page, without server and browser.

Each line of standard input is a link's query parameters as JSON. Every page's state reads it, as in a
session's first script run; one link in `every` also renders a whole page. It reports the results as
JSON, and each file that was written outside of the data folder.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import Counter
from dataclasses import replace
from typing import Any

import typer
from page_kit import VIEWS, view_at
from streamlit.testing.v1 import AppTest

from normviz.config import CHOICES, RANGES
from normviz.execution.client import SupervisorClient
from normviz.home import home
from normviz.lessons.by_hand.links import CODEC as HAND
from normviz.lessons.choose.answers import CODEC as CHOOSE
from normviz.links import DUEL
from normviz.studies.maps.link import CODEC as MAPS

LONGEST = 1500
"""Characters allowed in a sentence; the longest one names every placement."""
CODECS = {
    "duel": DUEL, "anatomy": replace(DUEL, view=("table",)), "hand": HAND, "maps": MAPS, "choose": CHOOSE,
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1,
    "os.truncate": 1, "sqlite3.connect": 1,
}  # fmt: skip
"""Audit events that change files, with the number of paths in their arguments."""


def states() -> None:
    """Inside a session: every page's state from each link; what came of it goes to the session.

    AppTest runs this function's source alone, so its imports are inside.
    """
    import json
    import traceback

    import streamlit as st
    from normviz.app.session import backend, duel
    from normviz.app.views.by_hand import state as hand_state
    from normviz.app.views.catalog import state as anatomy_state
    from normviz.app.views.choose import state as choose_state
    from normviz.app.views.maps import state as map_state

    from normviz.links import STREAMLIT
    from tests.bench.links import judged

    def arrived() -> duel.Duel:
        duel.arrive(it := duel.duel(), backend.opened())
        return it

    out = []
    for params in json.loads(st.session_state["links"]):
        for name, read in {
            "duel": arrived,
            "maps": map_state.maps,
            "anatomy": anatomy_state.anatomy,
            "hand": hand_state.hand,
            "choose": choose_state.choose,
        }.items():
            st.session_state.pop(name, None)
            st.session_state["arrived"] = True
            try:
                # Streamlit hides its own parameters from the script.
                st.query_params.from_dict({k: v for k, v in params.items() if k not in STREAMLIT})
                found = judged(name, read(), params)
            except Exception:
                found = traceback.format_exc(limit=-2)
            out.append((name, found))
    st.session_state["out"] = out


def judged(name: str, it: Any, params: dict[str, list[str]]) -> str:
    """ "taken" if the link was read, "told" if a sentence says what was not; else what is wrong."""
    problems = [p.sentence for p in it.link.problems] if it.link else []
    sentences = [*problems, *it.notices, *filter(None, [it.complaint])]
    for sentence in sentences:
        if "\n" in sentence or len(sentence) > LONGEST or "Traceback" in sentence:
            return f"no sentence: {sentence[:200]!r}"
    if problems or it.complaint:
        return "told"
    return _changed(name, it, params, sentences) or ("told" if sentences else "taken")


def _changed(name: str, it: Any, params: dict[str, list[str]], said: list[str]) -> str | None:
    """A setting that differs from the link although no sentence on the page says so; else None."""
    for sentence in CODECS[name].others(params):
        if sentence not in said:
            return f"nothing says {sentence!r}"
    for field in (*RANGES, *CHOICES) if name == "duel" else ():
        given = params.get(field, [""])[0].split(",")
        shown = [getattr(lane, field) for lane in it.lanes]
        if given != [""] and not all(_is(value, given) for value in shown):
            return f"{field} is another than {given!r}, and nothing says so"
    return None


def _is(value: float | str | None, given: list[str]) -> bool:
    if isinstance(value, str):
        return value in given
    return any(word == "off" if value is None else float(word) == value for word in given)


def main(every: int) -> None:
    """Read links until standard input ends, then print the results as JSON."""
    SupervisorClient.ensure = lambda self: None
    links = [json.loads(line) for line in sys.stdin]
    wrote, counts, wrong = set[str](), Counter[str](), list[str]()

    def note(event: str, args: tuple[Any, ...]) -> None:
        opened = event == "open" and bool(args[2] & WRITES)
        paths = args[: 1 if opened else CHANGES.get(event, 0)]
        wrote.update(
            os.path.abspath(os.fsdecode(path))
            for path in paths
            if isinstance(path, str | bytes | os.PathLike)
        )

    sys.addaudithook(note)
    for at in range(0, len(links), 500):
        session = AppTest.from_function(states, default_timeout=600)
        session.session_state["links"] = json.dumps(links[at : at + 500])
        session.run()
        if session.exception:
            wrong.append(session.exception[0].message)
            continue
        for name, found in session.session_state["out"]:
            counts[f"{name} {found}" if found in ("taken", "told") else "wrong"] += 1
            wrong += [] if found in ("taken", "told") else [f"{name}: {found}"]
    for i, params in enumerate(links[::every]):
        view = VIEWS[i % len(VIEWS)]
        try:
            drawn = view_at(view, params)
            wrong += [f"{view}: {it.message} {it.stack_trace[-3:]}" for it in drawn.exception]
        except Exception:
            wrong.append(traceback.format_exc(limit=-2))
        counts["pages drawn"] += 1
    ours = (f"{home()}{os.sep}", "/dev/")
    wrong += [f"wrote {path}" for path in sorted(wrote) if not f"{path}{os.sep}".startswith(ours)]
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    typer.run(main)
