"""Vega itself, here or in a process of its own.

Its engine stays in a process that has drawn once, with about 100 MB: a server lets another process
draw, which ends with the picture. That process runs this file alone, so it starts in milliseconds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from typing import Any

IMAGE = re.compile(r'<image[^>]*?href="(?!data:)([^"]*)"')
"""An image that lies elsewhere."""

ID = re.compile(r'\bid="|url\(#|xlink:href="#')
"""Where an SVG sets or uses an id."""

DENSITY = 72
"""Pixels an inch at which a PNG has the size of its SVG, before `scale`."""

SECONDS = 60.0
"""What a picture may take, and wait before that; a usual one takes about one."""

ALONE = threading.Lock()
"""Each is a process of 100 MB that has a core to itself: they wait for each other."""


def draw(spec: dict[str, Any], kind: str, scale: float) -> bytes:
    """A whole Vega-Lite chart as "png" or "svg". Raises ValueError for an image that lies elsewhere."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    # allowed_base_urls guards data alone (vl-convert 1.9 fetches images all the same on the way
    # from SVG to PNG), so they are refused here, in between.
    if (elsewhere := IMAGE.search(svg)) is not None:
        raise ValueError(f"a picture can't fetch the image {elsewhere[1]!r}: put it into the chart")
    return svg.encode() if kind == "svg" else vl_convert.svg_to_png(svg, scale=scale, ppi=DENSITY)


def part(name: str, spec: dict[str, Any]) -> str:
    """A chart as SVG for a document of several, where an id may be taken once: its ids begin with `name`."""
    return ID.sub(rf"\g<0>{name}-", draw(spec, "svg", 1).decode())


def parts_and_card(specs: dict[str, dict[str, Any]], card: str) -> tuple[dict[str, str], bytes]:
    """Charts as SVG by name, and the SVG `card` as PNG with the charts that its comments name. Raises
    ValueError where one can't be drawn."""
    import vl_convert

    charts = {name: part(name, spec) for name, spec in specs.items()}
    for name, svg in charts.items():
        card = card.replace(f"<!--{name}-->", svg)
    return charts, vl_convert.svg_to_png(card, scale=1, ppi=DENSITY)


def draw_in_process(spec: dict[str, Any], kind: str, scale: float) -> bytes:
    """What `draw` returns, from another process, one at a time. Raises ValueError where it can't be drawn."""
    command = [sys.executable, "-I", __file__]
    if not ALONE.acquire(timeout=SECONDS):
        raise ValueError(f"other pictures are drawn first, for {SECONDS:g} s by now: try again")
    try:
        done = subprocess.run(
            command,
            input=json.dumps({"spec": spec, "kind": kind, "scale": scale}).encode(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"this picture is not drawn after {SECONDS:g} s") from None
    finally:
        ALONE.release()
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(lines[-1] if lines else f"the drawing ended with code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # training has precedence
    try:
        content = draw(**json.load(sys.stdin))
    except ValueError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(content)
