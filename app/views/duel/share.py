"""Sharing: the duel's link, the code to embed it, and its files to download."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from normviz import links
from normviz.config import seeds_of
from normviz.export import archive, replay, script, write_configs
from normviz.links import encode
from normviz.observed import Settings
from normviz.runs import Run, names
from normviz.runs import lane as run_lane
from normviz.runs.store import retention

from ...session import address, duel
from ...session.backend import SharedBackend
from ...session.duel import Duel
from ...widgets.buttons import button
from ...widgets.copy_button import copy_link
from ...widgets.download import download
from .lanes import Lane, runs

TEXT = "link_text"
"""The key of the part with the link as text. It is rendered once it is open: drawing code takes Streamlit
1.5 MB of scripts, a quarter of the page."""


def query(page_duel: Duel) -> str:
    """The query string of a duel and its view."""
    return links.query(page_duel.params())


def url() -> str:
    """The duel's whole URL."""
    place = urlsplit(st.context.url or "")
    return f"{place.scheme}://{place.netloc}{place.path or '/'}?{query(duel.duel())}"


def title(lanes: list[Lane]) -> str:
    """ "Pre-LN against Post-LN"."""
    return names.title([lane.config for lane in lanes])


def settings(lanes: list[Lane], beside: Run | None) -> list[Settings]:
    """What describes each run of the charts: the lanes' settings, and the record of an observed run."""
    return [*(lane.config for lane in lanes), *([beside.config] if beside else [])]


def caption(lanes: list[Lane], beside: Run | None = None) -> list[str]:
    """What saved charts say of their origin: the duel, its settings, its engines and its address."""
    began = {run.id: run.started.engine for run in runs(lanes) if run.started}
    repeats = [run.config for lane in lanes for run in lane.repeats]
    return [*names.caption(settings(lanes, beside), began.values(), repeats), url()]


def show(lanes: list[Lane], backend: SharedBackend, beside: Run | None = None) -> None:
    """Buttons to copy link and embed code, the files, and the link as text."""
    page_duel = duel.duel()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        link, keep = query(page_duel), partial(_keep, lanes, backend)
        copy_link("copy_link", link, copied=keep)
        copy_link("copy_embed", link, "Copy embed code", f"NormViz: {title(lanes)}", keep)
        with st.popover("Download", icon=":material/download:"):
            _files(lanes, backend, beside)
        large = address.presents()
        button(
            "Usual size" if large else "For a projector", address.present, not large,
            key="projector", icon=":material/present_to_all:",
            help="The charts with larger text, without the settings at the left",
        )  # fmt: skip
    text = st.expander("The link, and the same in a terminal", key=TEXT, on_change="rerun")
    if text.open:
        with text:
            st.code(url(), language=None, wrap_lines=True)
            for lane in lanes:
                command = f"normviz run '?{encode([lane.config])}'"
                st.code(command, language="bash", wrap_lines=True)


def _keep(lanes: list[Lane], backend: SharedBackend) -> None:
    """Mark the runs of a copied link, so that retention keeps them."""
    retention.link(backend.store, [run.id for run in runs(lanes)])


def _files(lanes: list[Lane], backend: SharedBackend, beside: Run | None) -> None:
    """One download button for each file. Files with numbers need a finished run in every lane; they hold
    the observed run beside the lanes too."""
    shown = [*runs(lanes), *([beside] if beside else [])]
    done = all(lane.is_current for lane in lanes) and not any(run.is_open for run in shown)
    if not done:
        st.caption("Replay and numbers can be downloaded once every lane has been trained.")

    # Streamlit makes the files outside of the script run, where there is no session duel.
    probe = duel.duel().probe

    def taken() -> list[Lane]:
        return [_taken(lane, backend) for lane in lanes]

    def every() -> list[run_lane.Lane]:
        if beside is None:
            return taken()
        letter = run_lane.LETTERS[len(lanes)]
        return [*taken(), run_lane.stored_lane(letter, beside, backend.frames)]

    named = names.file_name(settings(lanes, beside))
    for label, make, name, kind, ready, about in (
        ("Replay (HTML)", lambda: replay(every(), probe), "normviz.html", "text/html", done,
         "One file that replays this duel with no server and no network. It takes some seconds to prepare"),
        ("Numbers (CSV)", lambda: archive(every(), "csv"), "normviz-csv.zip", "application/zip", done,
         "Every number of every lane and seed in tidy tables, with a dictionary of their columns"),
        ("Numbers (Parquet)", lambda: archive(every(), "parquet"), "normviz-parquet.zip", "application/zip",
         done, "The same tables for pandas, polars, DuckDB or R"),
        ("Settings (JSON)", lambda: write_configs(taken()), "normviz.json", "application/json", True,
         "`normviz run --config normviz.json` repeats them"),
        *(
            (f"Lane {lane.letter} as a script (.py)", partial(_script, lane, backend),
             f"normviz-{lane.letter}-{names.in_file(lane.config.scheme)}.py", "text/x-python", True,
             "Plain PyTorch without NormViz, with the same final loss"
             + (f" as {seeds_of(lane.config)}" if lane.repeats else ""))
            for lane in lanes
        ),
    ):  # fmt: skip
        file = name.replace("normviz", named, 1)
        download(label, make, file, kind, ready=ready, key=f"take_{name}", help=about)
    st.caption(
        "The replay takes some seconds to prepare. PNG, SVG and PDF of a chart: at its upper right corner."
    )


def _script(lane: Lane, backend: SharedBackend) -> str:
    return script(_taken(lane, backend))


def _taken(lane: Lane, backend: SharedBackend) -> Lane:
    """The lane with the numbers that its runs have now; without those of earlier settings."""
    current = lane.recordings if lane.is_current else ()
    return Lane(lane.letter, lane.config, tuple(map(backend.frames.recording, current)))
