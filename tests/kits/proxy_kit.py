"""The container's start command on free ports of this machine: Debian's nginx before an app."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from browser_kit import free_port, wait_for

DEPLOY = Path(__file__).parents[2] / "assets" / "deploy"


def _takes(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxied(
    folder: Path, app: Path | None = None, changes: Mapping[str, str] | None = None, **more: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`start.sh` with other ports and folders, and perhaps other `changes` of the proxy's settings. Yields
    the proxy's address and the process.

    app   a script that is started instead of `normviz app`, with its words
    more  environment variables
    """
    assert shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin"), "install Debian's nginx"
    ports = {"8501": str(free_port()), "8502": str(free_port())}
    new = {**ports, **(changes or {})}
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("nginx.conf", "start.sh"):
        text = (DEPLOY / name).read_text()
        for before, after in new.items():
            text = text.replace(before, after)
        if (
            name == "nginx.conf" and os.geteuid() == 0
        ):  # its workers could not read pytest's folders
            text = f"user root;\n{text}"
        (folder / name).write_text(text)
    (folder / "bin").mkdir()
    (folder / "bin" / "normviz").write_text(
        f'#!/bin/sh\nexec {sys.executable} {app or "-m normviz"} "$@"\n'
    )
    (folder / "bin" / "normviz").chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin", "NORMVIZ_HOSTED": "1",
        "NORMVIZ_HOME": str(folder / "data"), "TMPDIR": str(folder), **more,
    }  # fmt: skip
    process = subprocess.Popen(
        ["bash", str(folder / "start.sh")], env=environment, stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(
            lambda: process.poll() is not None or all(_takes(int(port)) for port in ports.values())
        )
        assert process.poll() is None
        yield f"http://127.0.0.1:{ports['8501']}", process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
