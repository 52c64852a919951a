"""A chart on a page: in the theme of all pages, light or dark, with its finding as alternative text."""

from __future__ import annotations

from typing import Any

import streamlit as st

from normviz.charts import theme
from normviz.charts.base import Spec


def chart(spec: Spec, alt: str, key: str, **options: Any) -> Any:
    """Draw it as wide as its place; `options` is what `st.vega_lite_chart` takes."""
    config = {**theme(st.context.theme.type == "dark"), **spec.get("config", {})}
    themed = {**spec, "config": config}
    return st.vega_lite_chart(themed, width="stretch", alt=alt, theme=None, key=key, **options)
