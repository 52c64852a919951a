"""`normviz export-site DIR [RUN ...]`: replays as a folder that any static host serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from ..export.site import site, write
from ..export.site_duels import chosen_duels, shipped_duels
from ..home import expanded
from ..shipped import adopt
from ..store import StoreError
from . import main
from .complain import complain
from .places import stored


@main.command("export-site")
def export_site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN ...]", help="Numbers or keys of runs; A,B is one duel of both"
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the index page")] = "NormViz",
    url: Annotated[str, typer.Option(help="Where DIR will be served, for previews of links")] = "",
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
) -> None:
    """Write the presets, the tour and chosen runs as pages that replay without this server.

    No file in DIR is overwritten. The pages use relative links and load nothing from another host.
    """
    try:
        address = read_url(url)
        check_title(title)
        folder = expanded(folder)
        store = stored(data)
        adopt(store)
        duels = [*shipped_duels(store), *chosen_duels(store, runs or [])]
        for name in write(folder, site(duels, title, address)):
            if name.endswith(".html"):
                typer.echo(folder / name)
    except (ValueError, StoreError) as error:
        complain(error)
    except OSError as error:
        complain(f"{str(error.filename)!r} can't be written: {error.strerror}")


def read_url(url: str) -> str:
    """The address of the folder, with a slash at its end. Raises ValueError with a sentence."""
    if not url:
        return ""
    if not _is_address(url):
        raise ValueError(
            f"--url is {url[:80]!r}, allowed is an address such as https://host/folder/"
        )
    return url.rstrip("/") + "/"


def _is_address(url: str) -> bool:
    try:
        url.encode()
        parts = urlsplit(url)
    except ValueError:  # bytes that are not text, or an incomplete IPv6 address
        return False
    known = parts.scheme in ("http", "https") and bool(parts.netloc)
    return known and not parts.query and not parts.fragment


def check_title(title: str) -> None:
    """Raises ValueError with a sentence for a title that a page can't contain."""
    try:
        title.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"--title is {title[:80]!r}, which holds bytes that are not text: allowed is text in UTF-8"
        ) from None
