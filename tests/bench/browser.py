"""A visit of the page that trains, its speed beside the native engine and torch.nn, and its verdicts.

Wall time, since Chromium's processes have clocks of their own.
"""

from __future__ import annotations

import gzip
import random
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import torch
import typer
from browser_kit import files_at
from live_kit import in_browser, put_live_page
from playwright.sync_api import Page

from normviz import RunConfig, train
from normviz.browser.link import BROWSER_TASKS, VARIANTS, variant
from normviz.browser.model import browser_model
from normviz.browser.page import live_schemes
from normviz.catalog import INITS
from normviz.cli.bench_speed import REFERENCE, encoder, peer_step
from normviz.home import shipped
from normviz.lessons.presets import PRESETS
from normviz.player import folder, joined
from normviz.runs import Recording, collect
from normviz.runs.archive import load
from normviz.runs.lane import Lane
from normviz.training.engine import Unsupported
from normviz.training.events import Step

from .kit import interleaved, median_range, visited

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


def main(rounds: int = 5, configs: int = 20, seed: int = 0) -> None:
    """Print visits, steps a second in alternating rounds, and how many configs have the same verdict."""
    torch.set_num_threads(1)
    _print_visits(rounds)
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
        _print_speed(page, rounds)
        _print_verdicts(page, _configs(configs, seed))


@contextmanager
def _hero_page() -> Iterator[tuple[str, Path]]:
    """The address of the page that trains, from a server of files on this machine, and its folder."""
    runs = {
        it.config.key: it
        for path in (shipped("assets") / "runs").glob("hero*.npz")
        for it in load(path)
    }
    hero = PRESETS["hero"].lanes()
    lanes = [Lane(name, c, (runs[c.key],)) for name, c in zip("AB", hero, strict=True)]
    with tempfile.TemporaryDirectory() as name:
        put_live_page(Path(name), [lanes], [lanes[0].config.depth], schemes=live_schemes())
        with files_at(Path(name)) as address:
            yield f"{address}/live.html", Path(name)


def _print_visits(rounds: int) -> None:
    """A visitor's first chart, and the hero with both lanes at once; each visit in a new browser."""
    first, trained, memory, loaded = list[float](), list[float](), 0, {"live.html"}
    with _hero_page() as (address, place):
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
        files = [place / name for name in loaded - {"vega.js"} if (place / name).is_file()]
        packed = sum(len(gzip.compress(file.read_bytes())) for file in files)
    print(
        f"{rounds} visits of the page that trains, each in a new Chromium, from files on this machine\n"
        f"  until the first chart of a finished duel, s: {median_range(first, 2)}\n"
        f"  the hero, 200 steps, both lanes at once, s: {median_range(trained, 2)}\n"
        f"  loaded until it was trained, packed, without Vega: {packed / 1000:.0f} kB\n"
        f"  memory of both models: {memory / 1e6:.0f} MB",
        flush=True,
    )


def _print_speed(page: Page, rounds: int) -> None:
    config, short = RunConfig(steps=20_000), RunConfig(steps=STEPS)
    page.evaluate("async (lane) => { globalThis.hero = await opened(lane); }", in_browser(config))
    step, reached = peer_step(encoder(config), config), 0

    def browser() -> float:
        nonlocal reached
        reached += STEPS
        return page.evaluate("(until) => hero.until(until)", reached) / 1000

    def timed(call: Callable[[], object]) -> float:
        since = time.perf_counter()
        call()
        return time.perf_counter() - since

    timers = {
        "in Chromium": browser,
        "native train()": lambda: timed(lambda: collect(train(short))),
        REFERENCE: lambda: timed(lambda: [step() for _ in range(STEPS)]),
    }
    interleaved(timers, 1)  # what is compiled or loaded first is not a step
    found = interleaved(timers, rounds)
    page.evaluate("hero.close()")
    print(
        f"steps a second of the hero's Pre-LN, {rounds} alternating rounds of {STEPS} steps, wall time"
    )
    for name, seconds in found.items():
        print(f"  {name:16} {median_range([STEPS / x for x in seconds], 1)}", flush=True)


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


def _print_verdicts(page: Page, configs: list[RunConfig]) -> None:
    lines, same = [], 0
    apart: dict[str, list[float]] = {
        "the browser and native": [],
        "PyTorch's operations and native": [],
    }
    for config in configs:
        lane = in_browser(config)
        page.evaluate("async (lane) => { globalThis.run = await opened(lane); }", lane)
        page.evaluate("(steps) => run.until(steps)", config.steps)
        made = page.evaluate(
            "(task) => { run.close(); return verdictOf(run, task); }", lane["task"]
        )
        native = collect(train(config))
        steps = (event for event in train(config, engine="eager") if isinstance(event, Step))
        eager = [step.loss for step in islice(steps, FIRST)]
        for some, losses in zip(apart.values(), (map(float, made["losses"]), eager), strict=True):
            some.append(_difference(losses, native))
        if made["kind"] == native.verdict.kind:
            same += 1
            continue
        lines.append(
            f"  {config.canonical()}: {made['sentence']} / native {native.verdict.sentence}"
        )
    print(
        f"the same verdict in {same} of {len(configs)} configs: lanes of presets, then random ones"
    )
    print(f"  largest relative difference of the first {FIRST} losses")
    for words, some in apart.items():
        print(
            f"    {words:32} within 1e-5 in {sum(off <= 1e-5 for off in some)}; median "
            f"{median(some):.1e}, most {max(some):.1e}"
        )
    for line in lines:
        print(line)


def _difference(losses: Iterable[float], native: Recording) -> float:
    pairs = zip(losses, native.losses[:FIRST].tolist(), strict=False)
    return max(abs(a - b) / abs(b) for a, b in pairs)


if __name__ == "__main__":
    typer.run(main)
