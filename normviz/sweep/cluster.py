"""The way to a Ray cluster: what `--on` may name, and a connection that says when it is lost.

Ray is an optional extra, imported by nobody but `Cluster`.
"""

from __future__ import annotations

import os
import re
import socket
import time
from typing import Any

from ..cores import cores
from .grid import SweepError

PATIENCE = 20.0
"""Seconds without a node that could train until a cluster counts as lost."""

ALLOWED = (
    "local (this machine), ray (a Ray started here for this sweep), ray:auto (the cluster that runs "
    "here) or ray:HOST:PORT (a cluster that this machine has joined)"
)
QUICK = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "10",
    "RAY_gcs_server_request_timeout_seconds": "10",
}
"""How long Ray looks for a cluster that was named: many minutes by itself."""

LEFT = "has lost its node on this machine"
START = "`ray start --head` starts one, `ray start --address HOST:PORT` joins it elsewhere"


def read_address(word: str) -> str | None:
    """What `--on` names, as the address of a `Cluster`; None for processes of this machine.

    Raises SweepError.
    """
    if word in ("local", "ray"):
        return None if word == "local" else "local"
    address = word.removeprefix("ray:")
    if address != word and (address == "auto" or re.fullmatch(r"[^\s:/]+:\d{1,5}", address)):
        return address
    raise SweepError(f"--on is {word!r}, allowed is {ALLOWED}")


class Cluster:
    """A connection to Ray, good for one sweep.

    address  "local" starts a Ray here that ends with the connection, "auto" takes the one that runs
             here, HOST:PORT one that this machine has joined
    at_most  cells at once; None for as many as there are cores

    Raises SweepError where there is none.
    """

    def __init__(self, address: str, at_most: int | None = None) -> None:
        self.address, self.at_most = address, at_most
        self.ray = _ray({} if address == "local" else QUICK)
        if ":" in address and (error := _silence(address)):
            raise SweepError(f"no Ray cluster answers at {address} ({error}): {START}")
        try:
            self._connect()
            here = self.ray.get_runtime_context()
            self._gcs, self._node = here.gcs_address, here.get_node_id()
            self.cores = self._count()
        except Exception as error:  # Ray raises Exception itself, and much else
            self.close()
            raise SweepError(
                f"no Ray cluster at {address!r} took this machine in ({in_words(error)}): {START}"
            ) from None
        self._seen = time.monotonic()

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address == "local":
            # Cells hand over kilobytes; without a number Ray takes a third of the memory.
            ours = {"num_cpus": self.at_most or cores(), "object_store_memory": 100 * 2**20}
            self.ray.init("local", include_dashboard=False, **ours, **quiet)
        else:
            self.ray.init(self.address, **quiet)

    def check(self) -> None:
        """Count the cores that are there now. Raises SweepError when there have been none for long,
        or when this machine is no longer part of it."""
        # Asked for its nodes, Ray would wait long, or end this process, where nobody answers.
        self.cores = 0 if _silence(self._gcs) else self._count()
        if self.cores:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > PATIENCE:
            raise self.lost(f"has had no node that can train for {PATIENCE:g} seconds")

    def lost(self, how: str) -> SweepError:
        """The sentence of a cluster that will not train what is left."""
        return SweepError(
            f"the Ray cluster at {self._gcs} {how}: {START}; what has ended is stored, and the same "
            "command runs the rest"
        )

    def _count(self) -> int:
        nodes = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
        if self._node not in nodes:
            raise self.lost(LEFT)
        cores = int(sum(node["Resources"].get("CPU", 0) for node in nodes.values()))
        return min(cores, self.at_most or cores)

    def close(self) -> None:
        """Leave; Ray ends what we have in progress there."""
        self.ray.shutdown()


def _ray(settings: dict[str, str]) -> Any:
    """The library, which reads its settings when it is imported."""
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise SweepError(
            "--on ray needs Ray, which is not installed here: "
            "`pip install -r requirements.txt -e '.[cluster]'` adds it"
        ) from None
    return ray


def _silence(address: str) -> str | None:
    """Why nobody answers at HOST:PORT; None where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return None


def in_words(error: BaseException) -> str:
    """What was at the bottom of it, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = str(error) or type(error).__name__
    return words.strip().splitlines()[-1] if "Traceback" in words else " ".join(words.split())
