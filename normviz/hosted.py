"""Hosted mode: the limits for each visitor of a public server.

NORMVIZ_HOSTED=1 turns it on. The limits apply to requests: a link to a bigger stored result still
opens and replays. A request beyond them is refused with a sentence, never changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from . import config as usual
from .config import RunConfig, estimated_gib, estimated_seconds
from .home import Unusable, folder
from .limits import MAX_FILL_MINUTES

SWITCH, STORE = "NORMVIZ_HOSTED", "NORMVIZ_STORE_MB"
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class Misconfigured(Unusable, RuntimeError):
    """An environment variable has a value that is not allowed; the sentence says what is."""


class Refused(ValueError):
    """A request is refused; the sentence says why, and what is allowed."""


@dataclass(frozen=True)
class Limits:
    """Limits of a hosted server, most of them per visitor.

    seconds       estimated seconds of one CPU core for a run
    gib           estimated memory of a run in GiB
    slots         runs that train at once, fewer on a machine with fewer cores
    paused        paused runs that keep their processes
    all_gib       estimated memory of all runs that have a process, paused ones too, in GiB
    open_runs     queued, running and paused runs of one visitor
    queue         queued runs of all visitors
    fill_minutes  estimated minutes of one core for the maps and claims of one visitor that wait or train,
    address_minutes  of one network address, and
    all_minutes   of all visitors
    processes     processes that fill maps and run claims
    grace         seconds after which a run without an open page is stopped
    store_mb      megabytes (10**6 bytes) of stored runs
    """

    depth: int = 96
    width: int = 128
    steps: int = 2000
    lanes: int = 4
    seconds: float = 60.0
    gib: float = 0.25
    slots: int = 2
    paused: int = 4
    all_gib: float = 0.25
    open_runs: int = 16
    queue: int = 100
    fill_minutes: float = 12.0
    address_minutes: float = 36.0
    all_minutes: float = 72.0
    processes: int = 1
    grace: float = 60.0
    store_mb: int = 500


LIMITS = Limits()
"""On a machine with one gigabyte (1024 MiB) and 100 visitors, the server takes up to 240 MiB and the
supervisor with its warm workers 400 (`normviz bench load`). A run with a process takes about 20 in
addition to its estimate, and six may have one. That leaves 264, so `all_gib` is the limit of one run."""


def limits() -> Limits | None:
    """The limits in hosted mode, else None. Raises Misconfigured."""
    text = os.environ.get(SWITCH, "").strip().lower()
    if text not in ON + OFF:
        raise Misconfigured(f"{SWITCH} is {text[:40]!r}, allowed is 1 (hosted) or 0 (not)")
    return LIMITS if text in ON else None


def store_bytes() -> int | None:
    """Maximal size of the store in bytes; None for no limit. Raises Misconfigured."""
    text, here = os.environ.get(STORE, "").strip(), limits()
    if not text:
        return here.store_mb * 10**6 if here else None
    is_whole = text.isascii() and text.isdecimal() and len(text) < 20  # int() has a digit limit
    if not is_whole or not 1 <= int(text) <= 10**7:
        raise Misconfigured(
            f"{STORE} is {text[:40]!r}, allowed is a whole number of megabytes from 1 to 10000000"
        )
    return int(text) * 10**6


def without_paths(sentence: str) -> str:
    """A sentence for visitors: on a shared server it does not say where the data folder is."""
    if limits() is None:
        return sentence
    folders = {str(folder()), str(folder().resolve())}
    for path in sorted(folders, key=len, reverse=True):
        sentence = sentence.replace(f"{path}{os.sep}", "").replace(path, "the data folder")
    return sentence


def verify() -> None:
    """Raises Misconfigured if an environment variable has a value that is not allowed."""
    limits()
    store_bytes()


def processes(otherwise: int | None = None) -> int | None:
    """Processes that fill maps: the limit in hosted mode, else the argument."""
    here = limits()
    return here.processes if here else otherwise


def check(configs: Sequence[RunConfig]) -> None:
    """Raises Refused for runs that exceed this server's limits."""
    here = limits()
    if here is None:
        return
    for config in configs:
        for name in ("depth", "width", "steps"):
            value, most = getattr(config, name), getattr(here, name)
            if value > most:
                raise Refused(f"{name} is {value:,}, and this shared server trains up to {most:,}")
        if (seconds := estimated_seconds(config)) > here.seconds:
            raise Refused(
                f"this run would take about {seconds:,.0f} s of one CPU core, and this shared server "
                f"gives a run up to {here.seconds:g} s: lower steps, depth, width, seq_len or batch"
            )
        if (gib := estimated_gib(config)) > here.gib:
            raise Refused(
                f"this run would take about {gib:,.2f} GiB of memory, and this shared server gives a "
                f"run up to {here.gib:g} GiB: lower depth, width, seq_len or batch"
            )


def check_lanes(n: int) -> None:
    """Raises Refused for a duel with too many lanes."""
    here = limits()
    if here and n > here.lanes:
        raise Refused(f"these are {n} lanes, and this shared server trains up to {here.lanes}")


def check_minutes(seconds: float) -> None:
    """Raises Refused for a map or claim that takes too many estimated seconds."""
    most = fill_minutes()
    if limits() and seconds > 60 * most:
        raise Refused(
            f"this would take about {seconds / 60:,.0f} min, and this shared server gives it up to "
            f"{most:g} min"
        )


def fill_minutes() -> float:
    """Estimated minutes that filling the maps of a page may take."""
    here = limits()
    return here.fill_minutes if here else MAX_FILL_MINUTES


def allowed(name: str) -> str:
    """The end of a setting's help: this server's limit, or empty without one."""
    here = limits()
    if here is None or name not in ("depth", "width", "steps"):
        return ""
    return f"This shared server trains up to {getattr(here, name):,}."


def summary() -> str:
    """The limits of a run as the page states them."""
    here = limits()
    if here is None:
        return usual.summary()
    return (
        f"This server is shared. Up to depth {here.depth}, width {here.width}, {here.steps:,} steps "
        f"and {here.lanes} lanes; a run may take about {here.seconds:g} s of one CPU core and "
        f"{here.gib:g} GiB (estimated). Each visitor may have {here.open_runs} open runs, and "
        f"{here.queue} runs of all visitors may wait. The cores are shared equally "
        "among network addresses, and then among their visitors. An address may have a quarter of the "
        "waiting runs, and fewer if many wait. A run without "
        f"an open page is stopped after {here.grace:g} s, and so is a paused one if another run waits that "
        "long for its memory. "
        "Links to bigger stored results open all the same."
    )
