"""`normviz app`: the page, in a browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..home import VARIABLE, home, shipped
from ..runs.store import Store, StoreDamaged, StoreError
from . import main
from .errors import complain
from .places import data_folder

EVERYWHERE = ("0.0.0.0", "::")


@main.command()
def app(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the page")] = 8501,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "localhost",
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser window")] = True,
) -> None:
    """Start the page. Ends with Ctrl-C, together with all processes that it started."""
    folder = data_folder(data) or home()
    try:
        Store(folder)
    except StoreDamaged:
        pass  # the server moves it aside and reports it, also on the page
    except StoreError as error:
        complain(error)
    check_address(host, port)
    page, start = shipped("app") / "main.py", shipped("app") / "start.py"
    options = {"server.port": port, "server.address": host, "server.headless": not browser}
    if host in EVERYWHERE:  # else Streamlit asks another host for this machine's address
        options["browser.serverAddress"] = "localhost"
    flags = [f"--{name}={str(value).lower()}" for name, value in options.items()]
    command = [sys.executable, str(start), "run", str(page), *flags]
    environment = {**os.environ, VARIABLE: str(folder.resolve())}
    os.chdir(page.parent)  # Streamlit reads its settings from here
    if os.name == "nt":
        raise typer.Exit(subprocess.run(command, env=environment).returncode)
    os.execve(sys.executable, command, environment)  # one process, so ending it ends everything


def check_address(host: str, port: int) -> None:
    """Complain if the address can't be bound; Streamlit would print a traceback."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
            if os.name != "nt":  # on Windows it would let two servers share a port
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except (OSError, ValueError, TypeError) as error:  # also if the host is not a valid name
        why = getattr(error, "strerror", None) or error
        complain(
            f"the page can't listen on {host[:80]!r}, port {port} ({why}): choose others with --host and "
            "--port; localhost is for this machine alone, 0.0.0.0 for all of its networks"
        )
