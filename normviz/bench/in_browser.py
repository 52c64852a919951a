"""`normviz bench browser`: a browser's training beside the native engine and torch.nn, and its verdicts.

Needs playwright and chromium. Wall time, since Chromium's processes have clocks of their own.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import torch

from ..catalog import INITS
from ..config import RunConfig
from ..duel.presets import PRESETS
from ..export.browser_task import browser_task
from ..export.lane import ExportLane
from ..export.live import live_page, live_schemes
from ..export.live_link import BROWSER_TASKS, VARIANTS, variant
from ..home import shipped
from ..player import SCRIPTS, folder, joined
from ..runs import Recording, collect
from ..runs.archive import load
from ..training.events import Step
from ..training.loop import train
from ..training.tape.browser import browser_model
from ..training.tape.compile import Unsupported
from .browser import visited
from .speed import REFERENCE, encoder, peer_step

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEPS = 60
"""Of a timed piece."""
FIRST = 10
"""Losses that are compared."""

SCRIPT = """
const wasm = Uint8Array.from(atob(given.wasm), (c) => c.charCodeAt(0));
const url = URL.createObjectURL(new Blob([given.worker], { type: "text/javascript" }));
globalThis.opened = (lane) => new Promise((ready, fail) => {
  const worker = new Worker(url), rows = [];
  worker.onmessage = ({ data }) => {
    if (data.error) fail(new Error(data.error));
    const until = (wanted) => new Promise((done) => {
      Object.assign(worker, { wanted, done, since: performance.now() });
      worker.postMessage({ until: wanted });
    });
    if (data.ready) ready({ until, rows, close: () => worker.terminate() });
    if (!data.rows) return;
    rows.push(...data.rows);
    if (data.isOver || data.at >= worker.wanted) worker.done(performance.now() - worker.since);
  };
  worker.postMessage({ open: { ...lane, wasm } });
});
globalThis.verdictOf = ({ rows }, { chance, floor }) => {
  const { bad } = rows.at(-1), losses = rows.map(({ loss }) => loss);
  const verdict = bad ? normvizVerdict.divergedVerdict(bad) : normvizVerdict.judge(losses, chance, floor);
  return { losses: losses.map(String), ...verdict };
};
"""


def measure(rounds: int, configs: int, seed: int) -> str:
    """Steps a second in alternating rounds; then how many of so many configs have the same verdict."""
    torch.set_num_threads(1)
    with visited() as page:
        page.goto("about:blank")
        given = {
            "wasm": b64encode((folder() / "tape.wasm").read_bytes()).decode(),
            "worker": f"(() => {{\n{joined('worker.js')}\n}})();\n",
        }
        verdict = (
            f"{joined('verdict.js')}\nglobalThis.normvizVerdict = {{ judge, divergedVerdict }};"
        )
        page.evaluate(f"(given) => {{ {SCRIPT} }}", given)
        page.evaluate(f"() => {{ {verdict} }}")
        speed, verdicts = _speed(page, rounds), _verdicts(page, _configs(configs, seed))
    return "\n".join([*_visits(rounds), *speed, *verdicts])


@contextmanager
def _hero_page() -> Iterator[tuple[str, Path]]:
    """The address of the page that trains, from a server of files on this machine, and its folder."""
    runs = {
        it.config.key: it
        for path in (shipped("assets") / "runs").glob("hero*.npz")
        for it in load(path)
    }
    hero = PRESETS["hero"].lanes()
    lanes = [ExportLane(name, c, runs[c.key]) for name, c in zip("AB", hero, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        texts = {f"{name}.js": text.encode() for name, text in SCRIPTS.items()}
        page = live_page(
            [lanes], schemes=live_schemes(), depths=[lanes[0].config.depth], norms=["layernorm"],
            scripts=tuple(texts),
        )  # fmt: skip
        for name, content in [*texts.items(), *page]:
            Path(folder, name).write_bytes(content)
        quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=folder)) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_address[1]}/live.html", Path(folder)
            server.shutdown()


def _visits(rounds: int) -> list[str]:
    """A visitor's first chart, and the hero with both lanes at once; each visit in a new browser."""
    first, trained, memory, loaded = list[float](), list[float](), 0, set[str]()
    with _hero_page() as (address, folder):
        for _ in range(rounds):
            with visited() as page:
                page.goto(address)
                page.wait_for_function("document.querySelector('.nv-loss canvas')")
                first.append(page.evaluate("performance.now()") / 1000)
                page.get_by_role("button", name="Train", exact=True).click()
                page.evaluate("normvizPage.then((live) => { globalThis.live = live; })")
                page.wait_for_function("live.seconds", timeout=600_000)
                trained.append(page.evaluate("live.seconds"))
                memory = page.evaluate("live.duel.lanes.reduce((sum, lane) => sum + lane.bytes, 0)")
                names = "performance.getEntriesByType('resource').map(({ name }) => name)"
                loaded |= {name.rsplit("/", 1)[-1] for name in page.evaluate(names)}
        files = [folder / name for name in {*loaded, "live.html"} if (folder / name).is_file()]
        packed = sum(
            len(gzip.compress(file.read_bytes())) for file in files if file.name != "vega.js"
        )
    lines = [
        f"{rounds} visits of the page that trains, each in a new Chromium, from files on this machine"
    ]
    for words, some in (
        ("until the first chart of a finished duel", first),
        ("the hero, 200 steps, both lanes at once", trained),
    ):
        lines.append(
            f"  {words}: {statistics.median(some):.2f} s ({min(some):.2f} to {max(some):.2f})"
        )
    return [
        *lines,
        f"  loaded until it was trained, packed, without Vega: {packed / 1000:.0f} kB",
        f"  memory of both models: {memory / 1e6:.0f} MB",
    ]


def _lane(config: RunConfig) -> dict[str, Any]:
    return {
        "model": browser_model(config),
        "task": browser_task(config.task, with_text=True),
        "start": {"init": config.init, "initSeed": config.init_seed, "dropout": config.dropout},
        "settings": {
            "lr": config.lr, "edits": [], "warmup": config.warmup, "schedule": config.schedule,
            "steps": config.steps, "beta1": config.beta1, "beta2": config.beta2,
            "weightDecay": config.weight_decay, "clip": config.clip, "dataSeed": config.data_seed,
        },
    }  # fmt: skip


def _speed(page: Page, rounds: int) -> list[str]:
    config = RunConfig(steps=20_000)
    page.evaluate("async (lane) => { globalThis.hero = await opened(lane); }", _lane(config))
    reached = 0

    def browser() -> float:
        nonlocal reached
        reached += STEPS
        return page.evaluate("(until) => hero.until(until)", reached) / 1000

    short, step = RunConfig(steps=STEPS), peer_step(encoder(config), config)

    def timed(call: Callable[[], object]) -> float:
        since = time.perf_counter()
        call()
        return time.perf_counter() - since

    timers: dict[str, Callable[[], float]] = {
        "in Chromium": browser,
        "native train()": lambda: timed(lambda: collect(train(short))),
        REFERENCE: lambda: timed(lambda: [step() for _ in range(STEPS)]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for timer in timers.values():
        timer()  # what is compiled or loaded first is not a step
    for _ in range(rounds):
        for name, timer in timers.items():
            seconds[name].append(timer())
    page.evaluate("hero.close()")
    lines = [
        f"steps a second of the hero's Pre-LN, {rounds} alternating rounds of {STEPS} steps, wall time"
    ]
    for name, some in seconds.items():
        middle, low, high = (STEPS / x for x in (statistics.median(some), max(some), min(some)))
        lines.append(f"  {name:16} {middle:6.1f} ({low:.1f} to {high:.1f})")
    return lines


def _configs(count: int, seed: int) -> list[RunConfig]:
    """The lanes of presets that a browser trains, then random settings of the page."""
    found: dict[str, RunConfig] = {}
    for preset in PRESETS:
        for config in preset.lanes():
            try:
                if config.task in BROWSER_TASKS and browser_model(config):
                    found[config.key] = config
            except Unsupported:
                continue
    rng, schemes = random.Random(seed), live_schemes()
    while len(found) < count:
        config = RunConfig(
            scheme=rng.choice(schemes), init=rng.choice(INITS.keys()), dropout=rng.choice((0.0, 0.0, 0.1)),
            lr=rng.choice((3e-4, 1e-3, 3e-3, 1e-2)), warmup=rng.choice((0, 50)),
            task=rng.choice(BROWSER_TASKS), init_seed=rng.randrange(99), data_seed=rng.randrange(99),
        )  # fmt: skip
        norm, depths = rng.choice(list(VARIANTS[variant(config)].items()))
        config = config.replace(
            norm=norm, depth=rng.choice([depth for depth in depths if depth <= 12])
        )
        found[config.key] = config
    return list(found.values())[:count]


def _verdicts(page: Page, configs: list[RunConfig]) -> list[str]:
    lines, same = [], 0
    apart: dict[str, list[float]] = {
        "the browser and native": [],
        "PyTorch's operations and native": [],
    }
    for config in configs:
        lane = _lane(config)
        page.evaluate("async (lane) => { globalThis.run = await opened(lane); }", lane)
        page.evaluate("(steps) => run.until(steps)", config.steps)
        made = page.evaluate(
            "(task) => { run.close(); return verdictOf(run, task); }", lane["task"]
        )
        native = collect(train(config))
        is_same = made["kind"] == native.verdict.kind
        same += is_same
        steps = (event for event in train(config, engine="eager") if isinstance(event, Step))
        eager = [step.loss for step in islice(steps, FIRST)]
        for some, losses in zip(apart.values(), (map(float, made["losses"]), eager), strict=True):
            some.append(_difference(losses, native))
        if not is_same:
            settings = {
                k: v for k, v in config.model_dump().items() if v != getattr(RunConfig(), k)
            }
            lines.append(
                f"  {json.dumps(settings)}: {made['sentence']} / native {native.verdict.sentence}"
            )
    return [
        f"the same verdict in {same} of {len(configs)} configs: lanes of presets, then random ones",
        f"  largest relative difference of the first {FIRST} losses",
        *(
            f"    {words:32} within 1e-5 in {sum(off <= 1e-5 for off in some)}; median "
            f"{statistics.median(some):.1e}, most {max(some):.1e}"
            for words, some in apart.items()
        ),
        *lines,
    ]


def _difference(losses: Iterable[float], native: Recording) -> float:
    pairs = zip(losses, native.losses[:FIRST].tolist(), strict=False)
    return max(abs(a - b) / abs(b) for a, b in pairs)
