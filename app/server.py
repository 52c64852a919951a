"""What Streamlit runs: the page, and beside it the player's script, the socket of its numbers, charts
as files, and what a container asks to know whether all is well."""

from __future__ import annotations

import streamlit as st
from healthz import healthz
from pictures import pictures
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from stream import numbers

from normviz.player import SCRIPTS, version


async def _script(request: Request) -> Response:
    """The player, or Vega. The address names the content, so a browser asks for it once."""
    texts = {f"{name}-{version(text)}": text for name, text in SCRIPTS.items()}
    if (text := texts.get(request.path_params["script"])) is None:
        return PlainTextResponse("This script is of another release: reload the page.", 404)
    return Response(
        text, media_type="text/javascript", headers={"Cache-Control": "max-age=31536000, immutable"}
    )


app = st.App(
    "main.py",
    routes=[
        Route("/healthz", healthz),
        Route("/normviz/{script}.js", _script),
        Route("/normviz/picture", pictures),
        WebSocketRoute("/normviz/numbers", numbers),
    ],
)
