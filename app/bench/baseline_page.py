"""The page that `normviz bench live` compares ours with: Altair charts that a fragment rebuilds."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

import streamlit as st

from normviz.charts import baseline
from normviz.duel.presets import PRESETS
from normviz.runs.frames import Frames, LaneFrame
from normviz.runs.shipped import adopt
from normviz.runs.store import Store

TICK_SECONDS = 0.1


@st.cache_resource
def hero() -> list[LaneFrame]:
    """The shipped hero, twice: four lanes."""
    store = Store(Path(tempfile.mkdtemp()))
    adopt(store)
    frames = Frames(store)
    runs = [run for lane in PRESETS["hero"].lanes() if (run := store.latest(lane.key))]
    return [frames.lane(run, f"{i} {run.config.scheme}", "grad_block") for i, run in
            enumerate(runs * 2)]  # fmt: skip


@st.fragment(run_every=TICK_SECONDS)
def draw() -> None:
    """Rerun as a fragment: draw the finished runs up to another step."""
    lanes = hero()
    step = 2 + next(st.session_state["ticks"]) % 198
    st.container(key="step").write(step)
    left, right = st.columns(2)
    left.altair_chart(baseline.loss(lanes, step), key="loss")
    right.altair_chart(baseline.bars(lanes, step), key="bars")
    for i, lane in enumerate(lanes):
        (left, right)[i % 2].altair_chart(baseline.heatmap(lane, step), key=f"heatmap{i}")


st.set_page_config(layout="wide")
st.session_state.setdefault("ticks", count())
draw()
