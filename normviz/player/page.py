"""One HTML file that replays a duel without server and network; or a page of a folder of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, TypedDict, Unpack

from ..observed import Settings
from ..runs import names
from ..runs.lane import Lane
from .bundle import SCRIPTS, css
from .message import (
    CARRIED,
    VIEWS,
    ChartOptions,
    Sent,
    choices,
    message,
    numbers,
    offered,
    plans,
    walkable,
)

DOCUMENT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
{head}
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 1200px; padding: 0 1rem;
  background: #fff; color: #31333f; }}
{css}
</style></head>
<body>{body}</body></html>
"""
"""Every page that holds the player."""
REPLAY = """{ways}<main><h1>{title}</h1><p>{words}</p><div id="player"></div></main>
{scripts}
{start}"""
LINE_ENDS = "p { white-space: pre-line; }"
"""The words above a replay keep their line ends."""


def document(title: str, body: str, head: str = "", style: str = "") -> str:
    """A page with the player's style sheet, on white. `body`, `head` and `style` are HTML and CSS."""
    return DOCUMENT.format(title=escape(title), head=head, css=f"{style}\n{css()}", body=body)


def script_tags(scripts: Sequence[str] = (), more: str = "") -> str:
    """The scripts of SCRIPTS and `more`, in the page; or the names of the files that hold them, where there
    are any."""
    named = [f'<script src="{escape(name)}"></script>' for name in scripts]
    inside = [*SCRIPTS.values(), more] if more else SCRIPTS.values()
    return "\n".join(named or [f"<script>{inline(text)}</script>" for text in inside])


START = """<script type="application/json" id="numbers">{numbers}</script>
<script>
const messages = JSON.parse(document.getElementById("numbers").textContent);
const player = normvizPlayer.mount(document.getElementById("player"), {{
  source: normvizPlayer.embedded(messages) }});
player.update({{ topic: {{ runs: [0], probe: {probe}, dark: false }}, start: "replay", nonce: 0,
  name: {name}, caption: {caption} }});
</script>"""
"""How the charts of a replay start."""
FOLLOW = """<script>
const player = normvizPlayer.mount(document.getElementById("player"), {{
  source: normvizPlayer.posted() }});
player.update({{ topic: {{ runs: [0], probe: {probe}, dark: false }}, start: "follow", nonce: 0,
  name: {name}, caption: {caption} }});
</script>"""
"""How those of a run start whose numbers another window posts."""


class SharedFiles(TypedDict, total=False):
    """What a replay among others shares with them, where it need not be one file.

    scripts  names of the files beside it that hold SCRIPTS, in their order
    head     further HTML of its head
    up       the file beside it that lists all
    before   the file beside it to read before this one, if there is one
    after    the file beside it to read after this one, if there is one
    """

    scripts: Sequence[str]
    head: str
    up: str
    before: str
    after: str


def page(
    lanes: Sequence[Lane],
    title: str,
    words: str,
    probe: str | None = None,
    **outside: Unpack[SharedFiles],
) -> str:
    """The file's text; `probe` is shown first. Raises ValueError for no lane, or one that nobody ran."""
    if not lanes:
        raise ValueError("a replay needs at least one lane, got none")
    configs = [lane.config for lane in lanes]
    engines = [engine for lane in lanes for engine in lane.engines]
    lanes, keys = [_begun(lane) for lane in lanes], offered(lanes)
    every = choices(keys, any(lane.recording.config.family != "decoder" for lane in lanes))
    pool: dict[str, int] = {}
    probes = {key: _probe(lanes, key, every, pool) for key in keys}
    file: dict[str, Any] = {"probes": probes, "charts": [json.loads(text) for text in pool]}
    same = [probe["numbers"].pop("repeats", []) for probe in probes.values()]
    file["repeats"] = same[0]  # they don't depend on the probe
    written = [probe["numbers"].pop("writings", []) for probe in probes.values()]
    own = any(getattr(config, "text", "") for config in configs)
    file["writings"] = (
        [] if own else written[0]
    )  # no file to take away has parts of a visitor's text
    if set(CARRIED) <= set(keys) and walkable(lanes):
        runs = [lane.recording for lane in lanes]
        file["walk"] = {
            "carried": numbers(runs, [0] * len(runs)),
            "walk": plans(runs, live=False),
        }
    start = START.format(
        numbers=in_script(file),
        name=in_script(names.file_name(configs)),
        caption=in_script(names.caption(configs, engines)),
        probe=in_script(probe if probe in keys else keys[0]),
    )
    scripts = script_tags(outside.get("scripts", ()))
    return replay_document(title, words, start, scripts, _ways(outside), outside.get("head", ""))


def _begun(lane: Lane) -> Lane:
    """The lane without repeats that have not begun."""
    begun = (run for run in lane.repeats[1:] if len(run.steps))
    return replace(lane, recordings=(lane.recording, *begun))


def posted_page(settings: Settings, probe: str) -> str:
    """A page whose charts draw what another window posts to it, each time `posted`."""
    named = names.title([settings])
    start = FOLLOW.format(
        name=in_script(names.file_name([settings])),
        caption=in_script(names.caption([settings], [])), probe=in_script(probe),
    )  # fmt: skip
    return replay_document(f"NormViz: {named}", "", start, script_tags())


def replay_document(
    title: str, words: str, start: str, scripts: str, ways: str = "", head: str = ""
) -> str:
    """A page of charts alone, with its title, words and links above them."""
    body = REPLAY.format(
        ways=ways, title=escape(title), words=escape(words), scripts=scripts, start=start
    )
    return document(title, body, head, LINE_ENDS)


def posted(lane: Lane, probes: Sequence[str], live: bool) -> dict[str, Any]:
    """What a window posts to a `posted_page`: all numbers so far of one lane, probe by probe, and once each
    chart and what all probes have alike."""
    each = {key: message([lane], key, Sent(), live=live, options=ChartOptions()) for key in probes}
    pool: dict[str, int] = {}
    shared: dict[str, Any] = {}
    for probe_message in each.values():
        shared |= {name: probe_message.pop(name) for name in ALIKE}
        probe_message["charts"] = {
            name: pool.setdefault(json.dumps(spec), len(pool))
            for name, spec in probe_message["charts"].items()
        }
    return {"shared": shared, "charts": [json.loads(text) for text in pool], "probes": each}


ALIKE = ("probes", "palette", "comparing")
"""Parts of a message that do not depend on the probe."""


def _ways(outside: SharedFiles) -> str:
    """Links to the files beside this one; empty for a file alone."""
    named = [
        ("All duels", outside.get("up")),
        ("Back", outside.get("before")),
        ("Next", outside.get("after")),
    ]
    links = [f'<a href="{escape(file)}">{label}</a>' for label, file in named if file]
    return f"<nav><p>{' · '.join(links)}</p></nav>" if links else ""


def _probe(
    lanes: Sequence[Lane], probe: str, every: list[dict[str, str]], pool: dict[str, int]
) -> dict[str, Any]:
    """Numbers of one probe, and every way to look at them; charts by their place in `pool`."""
    sent = Sent()
    first = message(lanes, probe, sent, live=False, options=ChartOptions())
    first |= {"probes": every}
    del first["charts"]
    looks = {}
    for view in VIEWS:
        for linear in (False, True):
            sent.charts = None
            options = ChartOptions(linear=linear, view=view)
            out = message(lanes, probe, sent, live=False, options=options, walk=False)
            charts = {
                name: pool.setdefault(json.dumps(spec), len(pool))
                for name, spec in out["charts"].items()
            }
            look = {name: out[name] for name in ("view", "domain", "between", "sets")}
            looks[f"{view} {'linear' if linear else 'log'}"] = {**look, "charts": charts}
    return {"numbers": first, "looks": looks}


def in_script(value: Any) -> str:
    """A value as JSON that is safe between script tags: no text in it can end the script."""
    return json.dumps(value).replace("<", "\\u003c")


def inline(source: str) -> str:
    """A script that is safe between script tags."""
    return source.replace("</script", "<\\/script")
