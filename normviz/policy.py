"""What a server allows: everything on one's own machine, less on a public server (NORMVIZ_HOSTED=1).

The policy is chosen once, when a store is opened, which holds it; whoever queues something asks it. A request
beyond its limits is refused with a sentence, never changed. A link to a bigger stored result still opens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Literal

from .config import RunConfig, estimated_gib, estimated_seconds
from .config import summary as own_machine_summary
from .cores import cores
from .home import Unusable, folder
from .limits import MAX_FILL_MINUTES, MAX_LANES

SWITCH, STORE = "NORMVIZ_HOSTED", "NORMVIZ_STORE_MB"
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
STORE_BYTES = 500 * 10**6
"""Of a shared server's stored runs, by default."""
CLEARANCE = 3
"""Free places of the queue for each waiting run of one network address, at least."""
STORE_FULL = (
    "the store of this shared server is full of runs that wait, train or ship: nothing new can be "
    "trained until some of them have ended, or its owner gives it more room (NORMVIZ_STORE_MB)"
)
NO_TEXTS = (
    "trains on somebody's own text, and this shared server neither takes such texts nor shows runs on them: "
    "train on it where NormViz is installed"
)
Kind = Literal["map", "claim", "assignment"]


class Misconfigured(Unusable, RuntimeError):
    """An environment variable has a value that is not allowed; the sentence says what is."""


class Refused(ValueError):
    """A request is refused; the sentence says why, and what is allowed."""


def demand(sentence: str | None) -> None:
    """Raise Refused with a policy's sentence; None is a permission."""
    if sentence is not None:
        raise Refused(sentence)


@dataclass(frozen=True)
class Open:
    """What is open when a visitor asks for more: runs, or minutes of the cells of maps and claims.

    own      of that visitor
    near     of their network address; None where it is unknown. Of runs, those that wait alone
    every    of all visitors, likewise
    is_full  the store is at its limit, and nothing in it may be deleted
    """

    own: float
    near: float | None
    every: float
    is_full: bool = False


@dataclass(frozen=True)
class Policy:
    """What a server allows. The defaults are those of one's own machine.

    is_shared     its visitors are strangers: only who asked for a run or a job may steer it, who asks for
                  settings that train already joins them, events are logged, and no sentence names a folder
    own_text      takes texts, and shows runs on them
    own_models    takes configurations and runs of own models
    depth, width, steps   of a run
    seconds       estimated seconds of one CPU core for a run
    gib           estimated memory of a run in GiB
    slots         runs that train at once, fewer on a machine with fewer cores
    paused        paused runs that keep their processes
    all_gib       estimated memory of all runs that have a process, paused ones too, in GiB
    open_runs     queued, running and paused runs of one visitor
    queue         queued runs of all visitors
    map_minutes   estimated minutes to fill a page of maps; `claim_minutes` to run a claim
    visitor_minutes   estimated minutes of one core of one visitor's maps and claims that have not ended,
    address_minutes   of one network address's, and
    all_minutes       of all visitors'
    processes     processes that fill maps and run claims; None for one a core
    grace         seconds after which a run without an open page is stopped
    steps_bytes   bytes of runs' steps that a server keeps in memory; a hero run takes 10**5, one of
                  depth 1000 about 10**7
    store_bytes   bytes of stored runs; None for no limit
    """

    is_shared: bool = False
    own_text: bool = True
    own_models: bool = True
    depth: float = inf
    width: float = inf
    steps: float = inf
    seconds: float = inf
    gib: float = inf
    slots: float = inf
    paused: int = 6
    all_gib: float = inf
    open_runs: float = inf
    queue: float = inf
    map_minutes: float = MAX_FILL_MINUTES
    claim_minutes: float = inf
    visitor_minutes: float = inf
    address_minutes: float = inf
    all_minutes: float = inf
    processes: int | None = None
    grace: float = inf
    steps_bytes: int = 128 * 2**20
    store_bytes: int | None = None

    def may(self, configs: Sequence[RunConfig], opened: Open | None = None) -> str | None:
        """The sentence that refuses new runs of these settings, None where they may be queued. Without
        `opened` the settings alone are judged."""
        sentences = (self._may_train(config) for config in configs)
        refused = next(filter(None, sentences), None)
        return refused or (None if opened is None else self._has_room(len(configs), opened))

    def _may_train(self, config: RunConfig) -> str | None:
        if why := self.may_read(config.text, "this run"):
            return why
        for name in ("depth", "width", "steps"):
            value, most = getattr(config, name), getattr(self, name)
            if value > most:
                return f"{name} is {value:,}, and this shared server trains up to {most:,}"
        if config.device == "cuda" and self.is_shared:
            return "device is 'cuda', and this shared server trains on its CPU: choose cpu"
        if (seconds := estimated_seconds(config)) > self.seconds:
            return (
                f"this run would take about {seconds:,.0f} s of one CPU core, and this shared server "
                f"gives a run up to {self.seconds:g} s: lower steps, depth, width, seq_len or batch"
            )
        if (gib := estimated_gib(config)) > self.gib:
            return (
                f"this run would take about {gib:,.2f} GiB of memory, and this shared server gives a "
                f"run up to {self.gib:g} GiB: lower depth, width, seq_len or batch"
            )
        return None

    def _has_room(self, new: int, opened: Open) -> str | None:
        if opened.own + new > self.open_runs:
            return (
                f"you have {opened.own} open runs and ask for {new} more, and this shared server gives each "
                f"visitor up to {self.open_runs}: stop some, or wait until they have ended"
            )
        if opened.every + new > self.queue:
            return (
                f"{opened.every} runs wait already and {new} more were asked for, and the queue of this "
                f"shared server holds {self.queue}: look at stored runs meanwhile, and try again in a minute"
            )
        if (near := opened.near) is not None:
            # So one address gets a quarter of the queue at most, and many of them together still leave places
            # for an address that has none.
            most = max(0, self.queue - opened.every - new) / CLEARANCE
            if near + new > (most if near else max(most, MAX_LANES)):
                return (
                    f"{near} runs from your network address wait already and {new} more were asked for, and "
                    f"this shared server now lets an address have up to {int(most)}, so that others find "
                    "free places: try again in a minute"
                )
        return STORE_FULL if opened.is_full else None

    def may_fill(self, kind: Kind, configs: Sequence[RunConfig], opened: Open) -> str | None:
        """The sentence that refuses new cells of a map, a claim or an assignment while so many minutes
        of cells are open, None where they may be queued."""
        seconds = sum(map(estimated_seconds, configs))
        sentences = [self.may_read(text, "this run") for text in {c.text for c in configs}]
        if kind == "map":  # claims and assignments have settings of ours
            sentences += [self.may(configs), self.may_take(kind, seconds / self.cells_at_once)]
        if refused := next(filter(None, sentences), None):
            return refused
        for whose, minutes, most in (
            ("you asked for", opened.own, self.visitor_minutes),
            ("your network address asked for", opened.near or 0.0, self.address_minutes),
            ("all visitors asked for", opened.every, self.all_minutes),
        ):
            if minutes + seconds / 60 > most:
                return (
                    f"this {kind} takes about {seconds / 60:.1f} min of one core, and the maps and claims "
                    f"that {whose} and that have not ended {minutes:.1f}; this shared server takes up to "
                    f"{most:g} min of them at once: try again when one has ended"
                )
        return STORE_FULL if opened.is_full else None

    @property
    def cells_at_once(self) -> int:
        """How many cells of maps and claims train at once."""
        return self.processes or cores()

    def may_take(self, kind: Kind, seconds: float) -> str | None:
        """The sentence that refuses a map, or a claim, of so many estimated seconds here, None where one may
        take them."""
        most = self.map_minutes if kind == "map" else self.claim_minutes
        if seconds <= 60 * most:
            return None
        who = "this shared server" if self.is_shared else "a page"
        return (
            f"this would take about {seconds / 60:,.0f} min, and {who} gives it up to {most:g} min"
        )

    def may_read(self, text: str, what: str) -> str | None:
        """The sentence that refuses what trains on a visitor's text (its hash, or empty), None where it may.
        It says the same whether the server has the text or not."""
        return f"{what} {NO_TEXTS}" if text and not self.own_text else None

    def may_steer(self, whose: str | None, visitor: str) -> bool:
        """Whether a visitor may pause, step or stop what `whose` asked for, or change its rate."""
        return not self.is_shared or whose == visitor

    def without_paths(self, sentence: str) -> str:
        """A sentence for visitors: strangers are not told where the data folder is."""
        if not self.is_shared:
            return sentence
        folders = {str(folder()), str(folder().resolve())}
        for path in sorted(folders, key=len, reverse=True):
            sentence = sentence.replace(f"{path}{os.sep}", "").replace(path, "the data folder")
        return sentence

    def help(self, name: str) -> str:
        """The end of a setting's help: this server's limit, or empty without one."""
        most = getattr(self, name) if name in ("depth", "width", "steps") else inf
        return "" if isinf(most) else f"This shared server trains up to {most:,}."

    def maps_summary(self) -> str:
        """The limits of maps as the page states them, or empty without one."""
        if isinf(self.visitor_minutes):
            return ""
        return f"This shared server gives a visitor {self.visitor_minutes:g} min of maps and claims at once."

    def summary(self) -> str:
        """The limits of a run as the page states them."""
        if not self.is_shared:
            return own_machine_summary()
        return (
            f"This server is shared. Up to depth {self.depth}, width {self.width}, {self.steps:,} steps "
            f"and {MAX_LANES} lanes; a run may take about {self.seconds:g} s of one CPU core and "
            f"{self.gib:g} GiB (estimated). Each visitor may have {self.open_runs} open runs, and "
            f"{self.queue} runs of all visitors may wait. The cores are shared equally "
            "among network addresses, and then among their visitors. An address may have a quarter of the "
            "waiting runs, and fewer if many wait. A run without "
            f"an open page is stopped after {self.grace:g} s, and so is a paused one if another run waits "
            "that long for its memory. "
            "Links to bigger stored results open all the same."
        )


SHARED = Policy(
    is_shared=True, own_text=False, own_models=False, depth=96, width=128, steps=2000, seconds=60.0, gib=0.25,
    slots=2, paused=4, all_gib=0.25, open_runs=16, queue=100, map_minutes=12.0, claim_minutes=12.0,
    visitor_minutes=12.0, address_minutes=36.0, all_minutes=72.0, processes=1, grace=60.0,
    steps_bytes=16 * 2**20, store_bytes=STORE_BYTES,
)  # fmt: skip
"""On a machine with one gigabyte (1024 MiB) and 100 visitors, the server takes up to 240 MiB and the
supervisor with its warm workers 400 (`normviz bench load`). A run with a process takes about 20 in
addition to its estimate, and six may have one. That leaves 264, so `all_gib` is the limit of one run."""


def from_environment() -> Policy:
    """The policy that the environment variables choose. Raises Misconfigured."""
    text = os.environ.get(SWITCH, "").strip().lower()
    if text not in ON + OFF:
        raise Misconfigured(f"{SWITCH} is {text[:40]!r}, allowed is 1 (hosted) or 0 (not)")
    policy = SHARED if text in ON else Policy()
    limit = _store_bytes()
    return policy if limit is None else replace(policy, store_bytes=limit)


def _store_bytes() -> int | None:
    """What $NORMVIZ_STORE_MB says, in bytes; None where it is not set."""
    text = os.environ.get(STORE, "").strip()
    if not text:
        return None
    is_whole = text.isascii() and text.isdecimal() and len(text) < 20  # int() has a digit limit
    if not is_whole or not 1 <= int(text) <= 10**7:
        raise Misconfigured(
            f"{STORE} is {text[:40]!r}, allowed is a whole number of megabytes from 1 to 10000000"
        )
    return int(text) * 10**6
