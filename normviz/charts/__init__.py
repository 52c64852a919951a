"""Frames to Vega-Lite: charts of a duel, each a constant spec and the data of the moment.

`chart(...)` of loss, bars, heatmap and layers returns what st.vega_lite_chart takes. The spec part
stays equal from tick to tick, so the browser only swaps data; no Streamlit and no torch in here.
"""

from . import bars, heatmap, layers, loss
from .heatmap_data import Buffer
from .loss import ZOOM
from .palette import LaneStyle, lane_styles, scheme_style
from .scale import Domain, quantised_domain

__all__ = [
    "ZOOM",
    "Buffer",
    "Domain",
    "LaneStyle",
    "bars",
    "heatmap",
    "lane_styles",
    "layers",
    "loss",
    "quantised_domain",
    "scheme_style",
]
