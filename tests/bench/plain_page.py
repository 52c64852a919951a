"""The Streamlit page that ours is compared with: charts that anybody would write first, in a fragment that
rebuilds them at every tick, with their rows inside and a mark for every cell."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from normviz.catalog.probes import PROBES
from normviz.lessons.presets import PRESETS
from normviz.runs.frames import Frames
from normviz.runs.lane import Lane, stored_lane
from normviz.runs.shipped import adopt
from normviz.runs.store import Store

TICK_SECONDS = 0.1


@st.cache_resource
def hero() -> list[Lane]:
    """The shipped hero, twice: four lanes."""
    store = Store(Path(tempfile.mkdtemp()))
    adopt(store)
    frames = Frames(store)
    runs = [run for lane in PRESETS["hero"].lanes() if (run := store.latest(lane.key))]
    return [stored_lane(f"{i} {run.config.scheme}", run, frames) for i, run in enumerate(runs * 2)]


@st.fragment(run_every=TICK_SECONDS)
def draw() -> None:
    """Rerun as a fragment: draw the finished runs up to another step."""
    lanes = hero()
    step = 2 + next(st.session_state["ticks"]) % 198
    st.container(key="step").write(step)
    left, right = st.columns(2)
    left.altair_chart(losses(lanes, step), key="loss")
    right.altair_chart(bars(lanes, step), key="bars")
    for i, lane in enumerate(lanes):
        (left, right)[i % 2].altair_chart(heatmap(lane, step), key=f"heatmap{i}")


def losses(lanes: list[Lane], steps: int) -> alt.Chart:
    """Loss curves of the first `steps` steps."""
    tables = [
        pd.DataFrame({"step": np.arange(n), "loss": lane.recording.losses[:n], "lane": lane.label})
        for lane in lanes
        if (n := min(steps, len(lane.recording.losses)))
    ]
    y = alt.Y("loss", scale=alt.Scale(type="log"))
    return alt.Chart(pd.concat(tables)).mark_line().encode(x="step", y=y, color="lane")


def bars(lanes: list[Lane], steps: int) -> alt.Chart:
    """The last record before `steps`, layer by layer."""
    table = pd.concat([cells(lane, steps).query("step == step.max()") for lane in lanes])
    y = alt.Y("value", scale=alt.Scale(type="log"))
    return alt.Chart(table).mark_point().encode(x="layer:O", xOffset="lane", y=y, color="lane")


def heatmap(lane: Lane, steps: int) -> alt.Chart:
    """A rectangle for every layer and record before `steps`."""
    color = alt.Color("value", scale=alt.Scale(type="log", scheme="viridis"))
    y = alt.Y("layer:O", sort="descending")
    return alt.Chart(cells(lane, steps)).mark_rect().encode(x="step:O", y=y, color=color)


def cells(lane: Lane, steps: int) -> pd.DataFrame:
    """A row for every layer and record before `steps`."""
    recorded = lane.recording.layers("grad_block")
    at = recorded.step[recorded.step < steps]
    values, first = recorded.drawn[: len(at)], PROBES["grad_block"].first_layer
    layers = np.arange(first, lane.recording.depth + 1)
    return pd.DataFrame(
        {
            "step": np.repeat(at, len(layers)), "layer": np.tile(layers, len(at)),
            "value": values.ravel(), "lane": lane.label,
        }
    )  # fmt: skip


st.set_page_config(layout="wide")
st.session_state.setdefault("ticks", count())
draw()
