"""A page of a static site that trains: `live.html`, its models, and all that it loads.

Nothing is computed on a server. The visitor's browser trains both lanes, each in a worker, by the tape
compiled to WebAssembly. The page's charts are those of the app (`browser.templates`).
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalog import INITS, NORMS, PROBES, SCHEMES, TASKS
from ..config import RANGES, SETTINGS, RunConfig
from ..lessons.presets import PRESETS
from ..links import PINNED, encode
from ..observed import configured
from ..player import document, folder, in_script, joined, script_tags, version
from ..player.message import packed
from ..player.walk import walk
from ..runs import Recording, names
from ..runs.lane import LETTERS, Lane
from ..training.engine import Unsupported
from .link import (
    BROWSER_NORMS,
    BROWSER_TASKS,
    DEPTHS,
    MOST_STEPS,
    USUAL_NORMS,
    VARIANTS,
    live_link,
    model_file,
    variant,
)
from .model import browser_model
from .task import browser_task, prose_codes
from .templates import templates

FIRST = PRESETS["hero"].lanes()
EXAMPLES = [RunConfig(task=task, dropout=p) for p in (0.0, 0.1) for task in ("markov", "prose")]
"""A lane of each of VARIANTS."""

BODY = """{up}<main><h1>{heading}</h1><p>{words}</p>
<form id="settings" aria-label="Settings of both lanes">
<div class="row">
<span id="pair"></span>
<button>Train</button>
<button type="button" id="pause" disabled>Pause</button>
<button type="button" id="step" disabled>Step</button>
<button type="button" id="stop" disabled>Stop</button>
<label>Rate now <input id="rate" inputmode="decimal" autocomplete="off" disabled></label></div>
<details><summary>More settings: norm, depth, rate, task, seed</summary><div id="more">
<fieldset id="lane0"><legend>Lane A</legend></fieldset>
<fieldset id="lane1"><legend>Lane B</legend></fieldset>
<fieldset id="shared"><legend>Both lanes</legend></fieldset></div></details>
</form>
<p id="problem" role="alert"></p>
<div role="status"><p><b>A</b> <span id="verdict0"></span></p><p><b>B</b> <span id="verdict1"></span></p>
<p id="note"></p></div>
<div id="player"></div>
<p>These settings as a link: <code id="link"></code>.
The same words after the address of the app open them there. <a id="app" hidden>Open them there</a></p></main>
<footer>{foot}</footer>
<script type="application/json" id="live">{data}</script>
{scripts}"""
STYLE = """h1 { font-size: 1.3rem; margin: 0; }
h1 + p { margin: .1rem 0 .5rem; }
nav p { margin: 0; font-size: .85rem; }
#more { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: .6rem 1.4rem; }
fieldset { border: 1px solid #8885; border-radius: .5rem; display: grid; gap: .4rem .8rem; min-width: 0;
  grid-template-columns: repeat(auto-fill, minmax(115px, 1fr)); align-content: start; }
summary { cursor: pointer; padding: .3rem 0; font-size: .85rem; }
[role=status] { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 1.4rem;
  font-size: .9rem; margin: .2rem 0; }
[role=status] p { margin: 0; }
#note:empty, #problem:empty { display: none; }
#settings label { display: flex; flex-direction: column; font-size: .82rem; min-width: 0; }
#settings :is(input, select, button) { font: inherit; box-sizing: border-box; height: 2.5rem; min-width: 0;
  padding: .2rem .5rem; color: inherit; background: #8881; border: 1px solid #8885; border-radius: .5rem; }
#settings select { width: 100%; }
#settings .row { display: flex; flex-wrap: wrap; gap: .4rem .5rem; align-items: end; }
#pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; flex: 1 1 21rem;
  max-width: 32rem; }
#settings .row input { width: 5.5rem; }
#settings button { cursor: pointer; min-width: 4.4rem; }
#settings button:not([type]) { background: #2f6fde; border-color: #2f6fde; color: #fff; }
#settings button[disabled] { opacity: .5; cursor: default; }
#settings[hidden] { display: none; }
#problem { color: #b3261e; margin: .2rem 0; }
code { overflow-wrap: anywhere; }
footer { font-size: .85rem; border-top: 1px solid #8885; margin-top: 1.5rem; }
@media (max-width: 640px) {
  h1 { font-size: 1.1rem; }
  h1 + p { font-size: .9rem; line-height: 1.3; }
  #settings .row button { flex: 1 1 4.4rem; }
  #settings .row :disabled, #settings .row label:has(:disabled) { display: none; }
  [role=status] { font-size: .85rem; line-height: 1.35; }
}"""
LIVE_TITLE = "Train two placements in your browser"
WORDS = "Choose two placements and press Train: your browser trains both. Nothing is sent anywhere."
FOOT = (
    "A placement is loaded once, and then needs no network. Initial values, batches and dropout have the "
    "bits of the app. Losses differ in the last digits, because the order of additions differs, and training "
    "amplifies that. Tried on Linux in Chromium, and as one file in Firefox and WebKitGTK. Not tried: Safari "
    "and real phones. It needs WebAssembly with SIMD, workers and DecompressionStream. Not offered here: "
    "placements with several streams, some others such as nGPT and Admin, norms that read the batch, your "
    "own text, and settings that this form does not have. The app has them."
)


def live_script() -> str:
    """The script of the page, without the player's. The page has no script of its own in it, which a strict
    Content-Security-Policy would refuse."""
    start = 'live(document.body, JSON.parse(document.getElementById("live").textContent))'
    return f"(() => {{\n{joined('live.js')}\nglobalThis.normvizPage = {start};\n}})();\n"


def live_schemes() -> list[str]:
    """The placements that a browser trains. Quick: it compiles a model of one block of each."""
    schemes = []
    for scheme in SCHEMES.keys():  # noqa: SIM118 (a registry)
        try:
            browser_model(RunConfig(scheme=scheme, depth=1))
        except Unsupported:
            continue
        schemes.append(scheme)
    return schemes


def live_page(
    duels: Iterable[Sequence[Lane]],
    head: str = "",
    *,
    one_file: bool = False,
    up: str = "",
    schemes: Sequence[str] | None = None,
    depths: Sequence[int] = (),
    norms: Sequence[str] = BROWSER_NORMS,
    scripts: Sequence[str] = (),
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the page's files. `duels` are finished ones, of which it replays those that
    it could train; `scripts` are the names of the files beside it that hold the player's scripts. One file
    has USUAL_NORMS alone, so that it stays small."""
    schemes, depths = live_schemes() if schemes is None else schemes, depths or DEPTHS
    wanted = USUAL_NORMS if one_file else norms
    variants = {
        kind: {
            norm: [d for d in some if d in depths] for norm, some in of.items() if norm in wanted
        }
        for kind, of in VARIANTS.items()
    }
    wasm = (folder() / "tape.wasm").read_bytes()
    codes = gzip.compress(prose_codes(), 9, mtime=0)
    wasm_name, codes_name = f"tape-{version(wasm.hex())}.wasm", f"prose-{version(codes.hex())}.bin"
    files = {wasm_name: wasm, codes_name: codes}
    finished = _offered(duels, schemes)
    shipped = {link: f"duel-{version(link)}.bin" for link in finished}
    files |= {shipped[link]: packed_json(shipped_duel(lanes)) for link, lanes in finished.items()}
    own = live_script()
    own_name = f"live-{version(own)}.js"
    models = _models(schemes, variants)
    if one_file:
        inside = files | dict(models)
    else:
        first = shipped.get(encode(FIRST), "")
        inside = {first: files.pop(first)} if first else {}
        yield own_name, own.encode()
        yield from files.items()
        yield from models
    data = {
        "wasm": wasm_name,
        "prose": codes_name,
        "packed": b64encode(packed_json(page_data(schemes, depths, variants))).decode(),
        "worker": f"(() => {{\n{joined('worker.js')}\n}})();\n",
        "shipped": shipped,
        "files": {name: b64encode(content).decode() for name, content in inside.items()},
    }
    body = BODY.format(
        heading=LIVE_TITLE, words=escape(WORDS), foot=escape(FOOT),
        scripts=script_tags(more=own) if one_file else script_tags((*scripts, own_name)),
        up=f'<nav><p><a href="{escape(up)}">All duels</a></p></nav>' if up else "",
        data=in_script(data),
    )  # fmt: skip
    yield "live.html", document(f"NormViz: {LIVE_TITLE}", body, head, STYLE).encode()


def _offered(duels: Iterable[Sequence[Lane]], schemes: Sequence[str]) -> dict[str, Sequence[Lane]]:
    """The finished duels that the page could train, by their links."""
    links = ((live_link([configured(lane.config) for lane in lanes]), lanes) for lanes in duels)
    return {
        link: lanes
        for link, lanes in links
        if link and all(lane.config.scheme in schemes for lane in lanes)
    }


def _models(
    schemes: Sequence[str], variants: Mapping[str, Mapping[str, Sequence[int]]]
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of models, each with all depths of a placement, norm and variant."""
    for scheme, example in product(schemes, EXAMPLES):
        for norm, depths in variants[variant(example)].items():
            lane = example.replace(scheme=scheme, norm=norm)
            of_depth = {depth: _model(lane.replace(depth=depth)) for depth in depths}
            yield model_file(lane), packed_json(of_depth)


def page_data(
    schemes: Sequence[str],
    depths: Sequence[int],
    variants: Mapping[str, Mapping[str, Sequence[int]]] = VARIANTS,
) -> dict[str, Any]:
    """What the page has before the first model: the form, the tasks and the charts."""
    steps = {"low": 1, "high": MOST_STEPS, "whole": True, "above": False}
    seed, rate, warmup, dropout = (
        vars(RANGES[name]) for name in ("init_seed", "lr", "warmup", "dropout")
    )

    def labelled(registry: Any, keys: Sequence[str]) -> list[dict[str, str]]:
        return [{"key": key, "label": registry.label(key)} for key in keys]

    return {
        "pinned": PINNED,
        "first": encode(FIRST),
        "titles": {name: setting.title for name, setting in SETTINGS.items()} | {"seed": "seed"},
        "offered": {
            "scheme": labelled(SCHEMES, schemes),
            "norm": labelled(NORMS, list(variants[""])),
            "init": labelled(INITS, list(INITS.keys())),
            "depth": [{"key": depth, "label": str(depth)} for depth in depths],
            "task": labelled(TASKS, BROWSER_TASKS),
            "lr": rate, "warmup": warmup, "steps": steps, "dropout": dropout, "init_seed": seed,
            "data_seed": seed, "seed": seed,
        },
        "variants": variants,
        "tasks": {key: browser_task(key) for key in BROWSER_TASKS},
        "templates": templates(depths, schemes),
    }  # fmt: skip


def packed_json(content: Any) -> bytes:
    """JSON, packed by gzip; the same bytes for the same content."""
    return gzip.compress(json.dumps(content, separators=(",", ":")).encode(), 9, mtime=0)


def _model(config: RunConfig) -> dict[str, Any]:
    return {**browser_model(config), "walk": walk(config)}


def shipped_duel(lanes: Sequence[Lane]) -> dict[str, Any]:
    """A finished duel as `trained` of the player has it."""
    configs = [configured(lane.config) for lane in lanes]
    return {
        "lanes": [_lane(i, lane, configs) for i, lane in enumerate(lanes)],
        "walk": [walk(config) for config in configs],
        "verdicts": [lane.verdict for lane in lanes],
        "name": names.file_name(configs),
        "caption": names.caption(configs, [e for lane in lanes for e in lane.engines]),
    }


def _lane(index: int, lane: Lane, among: Sequence[RunConfig]) -> dict[str, Any]:
    recording, config = lane.recording, among[index]
    steps, measured = recording.steps, ~np.isnan(recording.steps.held_out)
    name = " ".join(names.lane_name(LETTERS[index], config, among).split())
    bad = recording.first_bad
    return {
        "name": name, "short": LETTERS[index], "scheme": config.scheme, "depth": config.depth,
        "steps": config.steps, "chance": recording.chance, "floor": recording.floor, "edits": config.lr_edits,
        "loss": packed(steps.loss), "bad": None if bad is None else {"step": bad.step, "layer": bad.layer},
        "heldOut": [steps.step[measured].tolist(), packed(steps.held_out[measured])],
        "records": steps.layer_steps.tolist(),
        "layers": {key: packed(_values(recording, key)) for key in recording.probes},
    }  # fmt: skip


def _values(recording: Recording, probe: str) -> NDArray[np.float64]:
    """[m, layers] values of a probe, a cosine as its distance from 1, which single precision keeps."""
    values = recording.values(probe)[:, PROBES[probe].first_layer :]
    return 1.0 - values if PROBES[probe].shown == "one_minus" else values
