"""The Maps page: where does each placement train? Two settings are the axes, and each cell is a run."""

from __future__ import annotations

import shlex
from contextlib import suppress

import pandas as pd
import streamlit as st

from normviz.charts import theme
from normviz.charts.map import chart
from normviz.export.pictures import Format, captioned, picture
from normviz.runs.engines import computed_by
from normviz.studies.maps.grid import SweepError
from normviz.studies.maps.layout import maps, spanned
from normviz.studies.maps.link import caption
from normviz.studies.maps.summary import table

from ...session import address
from ...session.backend import SharedBackend, shared
from ...widgets import glossary
from ...widgets.copy_button import copy_link
from ...widgets.download import download
from . import fill, knobs, state
from .state import Maps


def page() -> None:
    """The page, from top to bottom."""
    backend = shared()
    page_maps = state.maps()
    address.show(page_maps.asked.params())
    with st.container(key="head"):
        st.markdown("# Where does it train?")
    knobs.show(page_maps)
    fill.show(page_maps, backend)
    glossary.line(
        "placement",
        "depth",
        "rate",
        "warmup",
        "cell",
        "chance",
        "floor",
        "nat",
        "diverged",
        "init",
        "seed",
    )
    show_downloads(page_maps, backend)


# Downloads: link, tables, picture and terminal command.


def show_downloads(page_maps: Maps, backend: SharedBackend) -> None:
    """The buttons to copy the link and to download files, and the command."""
    results = fill.looked(page_maps, backend)

    def rows() -> pd.DataFrame:
        return table(page_maps.asked.grid, results.points)

    # Streamlit makes the files outside of the script run, where there is no address.
    origin = caption(
        page_maps.asked.grid, *page_maps.asked.fields, (st.context.url or "/maps").partition("?")[0]
    )

    def drawn(kind: Format) -> bytes:
        spec = chart(maps(page_maps.asked.grid, results.points, page_maps.asked.fields))
        by = computed_by((point.engine for point in results.points), "cells")
        spec = captioned(spec, [*origin, by])
        return picture(spec, kind, config=theme(False), in_process=True)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        copy_link("copy_maps", page_maps.asked.query())
        with st.popover("Download", icon=":material/download:"):
            for label, make, name, kind in (
                ("Cells (CSV)", lambda: rows().to_csv(index=False), "maps.csv", "text/csv"),
                ("Cells (Parquet)", lambda: rows().to_parquet(index=False), "maps.parquet",
                 "application/vnd.apache.parquet"),
                ("Picture (SVG)", lambda: drawn("svg"), "maps.svg", "image/svg+xml"),
                ("Picture (PNG)", lambda: drawn("png"), "maps.png", "image/png"),
            ):  # fmt: skip
                ready = bool(results.points)
                download(label, make, f"normviz-{name}", kind, ready=ready, key=f"take_{name}")
    terminal = st.expander("The same in a terminal", key="maps_terminal", on_change="rerun")
    if terminal.open:
        terminal.code(command(page_maps), language="bash", wrap_lines=True)


def command(page_maps: Maps) -> str:
    """The `normviz sweep` command of these maps, without settings at their defaults."""
    words = [f"{name}={value}" for name, value in page_maps.asked.words.items() if name != "seeds"]
    words.append(f"seeds={page_maps.asked.grid.seeds}")
    command = " ".join(["normviz sweep", *map(shlex.quote, words)])
    with suppress(SweepError):  # a sweep draws no map of axes without a number
        spanned(page_maps.asked.grid)
        command += " --plot maps.svg"
    return command
