"""One HTML file that replays a duel without server and network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..frames import LaneFrame
from .bundle import css, script, vega
from .message import Sent, choices, message
from .specs import VIEWS, Look

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 1200px; padding: 0 1rem;
  background: {paper}; color: {ink}; }}
{css}
</style></head>
<body><h1>{title}</h1><p>{words}</p><div id="player"></div>
<script>{vega}</script>
<script>{script}</script>
<script type="application/json" id="numbers">{numbers}</script>
<script>
const messages = JSON.parse(document.getElementById("numbers").textContent);
const player = normvizPlayer.mount(document.getElementById("player"), {{
  source: normvizPlayer.embedded(messages) }});
player.update({{ runs: [0], probe: {probe}, dark: false, start: "replay", nonce: 0 }});
</script></body></html>
"""


def page(
    title: str, words: str, frames: Mapping[str, Sequence[LaneFrame]], probe: str | None = None
) -> str:
    """The file's text: `frames` are the duel's lanes by probe; `probe` is shown first."""
    if not frames:
        raise ValueError("a replay needs at least one probe's lanes, got none")
    offered = choices(list(frames))
    file = {key: _probe(lanes, offered) for key, lanes in frames.items()}
    return PAGE.format(
        title=escape(title),
        words=escape(words),
        paper="#ffffff",
        ink="#31333f",
        css=css(),
        vega=_inline(vega()),
        script=_inline(script()),
        numbers=json.dumps(file).replace("<", "\\u003c"),
        probe=json.dumps(probe if probe in frames else next(iter(frames))),
    )


def _probe(lanes: Sequence[LaneFrame], offered: list[dict[str, str]]) -> dict[str, Any]:
    """Numbers of one probe, and every way to look at them."""
    sent = Sent()
    numbers = {**message(lanes, sent, live=False, look=Look()), "probes": offered}
    looks = {}
    for view in VIEWS:
        for linear in (False, True):
            sent.charts = None
            out = message(lanes, sent, live=False, look=Look(linear=linear, view=view))
            out["probes"] = offered
            del out["lanes"]  # the numbers have them
            looks[f"{view} {'linear' if linear else 'log'}"] = out
    return {"numbers": numbers, "looks": looks}


def _inline(source: str) -> str:
    """A script that may stand between script tags."""
    return source.replace("</script", "<\\/script")
