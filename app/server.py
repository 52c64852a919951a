"""What Streamlit runs: the page, and beside it the player's script, the socket of its numbers, and
charts as files."""

from __future__ import annotations

import streamlit as st
from pictures import pictures
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from stream import numbers

from normviz import player


async def _script(request: Request) -> Response:
    """The player, or Vega. The address names the content, so a browser asks for it once."""
    text = player.vega() if request.path_params["name"] == "vega" else player.script()
    return Response(
        text, media_type="text/javascript", headers={"Cache-Control": "max-age=31536000, immutable"}
    )


app = st.App(
    "main.py",
    routes=[
        Route("/normviz/{name}-{version}.js", _script),
        Route("/normviz/picture", pictures),
        WebSocketRoute("/normviz/numbers", numbers),
    ],
)
