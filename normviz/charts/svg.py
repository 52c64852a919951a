"""The parts of small pictures of curves: SVG without axes and script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence

from .palette import RED

Points = Sequence[tuple[float, float]]


def document(parts: Iterable[str], width: int, height: int) -> str:
    """The picture of some parts, `width` x `height` pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">{"".join(parts)}</svg>'
    )


def data_uri(svg: str) -> str:
    """A picture as the address of an image."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode('ascii')}"


def line(points: Points, color: str, dash: str, width: float) -> str:
    """A curve through points in pixels; `dash` in pixels, as "3 2", or empty for a solid one."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"'
        f' stroke-linejoin="round"{dashed}/>'
    )


def cross(x: float, y: float) -> str:
    """Where a run diverged: a red cross of 8 pixels round a point."""
    left, right, top, foot = x - 4, x + 4, y - 4, y + 4
    return (
        f'<path d="M{left:.1f} {top:.1f}L{right:.1f} {foot:.1f}M{left:.1f} {foot:.1f}L{right:.1f} {top:.1f}" '
        f'stroke="{RED}" stroke-width="2"/>'
    )
