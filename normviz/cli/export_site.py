"""`normviz export-site DIR [RUN ...]`: replays as a folder that any static host serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from ..export.site import site, write
from ..export.site_duels import chosen_duels, shipped_duels
from ..shipped import adopt
from ..store import Store, StoreError
from . import main
from .complain import complain


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

    Nothing in DIR is overwritten. The pages link to each other relatively and ask no other host.
    """
    try:
        store = Store(data and data.expanduser())
        adopt(store)
        duels = [*shipped_duels(store), *chosen_duels(store, runs or [])]
        folder = folder.expanduser()
        for name in write(folder, site(duels, title, read_url(url))):
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
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            f"--url is {url[:80]!r}, allowed is an address such as https://host/folder/"
        )
    return url.rstrip("/") + "/"
