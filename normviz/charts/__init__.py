"""Lanes to Vega-Lite: charts of a duel, each a constant spec and the rows of the moment.

`chart(...)` of loss, layers and heatmap is a whole Vega-Lite dict; the page gets their specs once and
then only numbers (`normviz.player`). No Streamlit and no torch in here.
"""

from . import heatmap, layers, lines, loss, ratio, thumb
from .base import theme
from .palette import LaneStyle, lane_styles, scheme_style, styles_of
from .scale import Domain, quantised_domain

__all__ = [
    "Domain",
    "LaneStyle",
    "heatmap",
    "lane_styles",
    "layers",
    "lines",
    "loss",
    "quantised_domain",
    "ratio",
    "scheme_style",
    "styles_of",
    "theme",
    "thumb",
]
