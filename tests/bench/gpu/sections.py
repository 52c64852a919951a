"""The sections of the check: each takes "cuda" or "cpu", and returns what it found and lines for people."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import profile as profiler

from normviz import config as configs
from normviz.cli.bench_speed import encoder, lean, peer_step
from normviz.config import CHOICES, ConfigError, RunConfig, engine_here, estimated_seconds
from normviz.model.flat import Flat
from normviz.runs.store import Store
from normviz.studies.maps import Done, make, sweep
from normviz.studies.norm_cost.findings import verdict
from normviz.studies.norm_cost.measure import measure
from normviz.studies.norm_cost.result import CostSetting
from normviz.training import loop
from normviz.training.captured import Replayed
from normviz.training.eager import Eager
from normviz.training.events import Diverged, Event, Finished, Started, Step
from normviz.training.schedule import coarse
from normviz.training.stacked import together

Found = tuple[Any, list[str]]
configs.MAX_GIB = 64.0  # in this process: 96 blocks of width 512 are more than a run is allowed
LARGE = RunConfig(depth=24, width=256, heads=8, batch=8, seq_len=64, steps=30)
TINY = RunConfig(depth=4, seq_len=16, batch=4, steps=2)
SIZES = {
    "cuda": {
        "hero 12x32": RunConfig(device="cuda"),
        "24x256": LARGE.replace(device="cuda"),
        "48x512": LARGE.replace(device="cuda", depth=48, width=512, batch=4, steps=12),
        "96x512": LARGE.replace(device="cuda", depth=96, width=512, steps=8),
    },
    "cpu": {
        "hero 4x32": RunConfig(depth=4, steps=24, device="cpu"),
        "2x64": RunConfig(depth=2, width=64, steps=12, device="cpu"),
    },
}
"""What is measured, and on a CPU small sizes instead."""
HEROES = {on: next(iter(sizes.values())) for on, sizes in SIZES.items()}
ON_TAPE = ("hero 12x32", "24x256", *SIZES["cpu"])
"""Sizes that the CPU trains to the end too: the others take minutes."""
ROUNDS = 5


def events(config: RunConfig, engine: Any, record: Collection[int] | None = ()) -> Iterator[Event]:
    """A run by "eager", "tape" or "captured"."""
    return loop.train(config, record=record, engine=engine)


def losses(run: Iterable[Event]) -> np.ndarray:
    return np.array([event.loss for event in run if isinstance(event, Step)])


def apart(a: float, b: float) -> float:
    """Relative difference."""
    return float(abs(a - b) / max(abs(a), abs(b), 1e-30))


def machine(on: str) -> Found:
    found: dict[str, Any] = {
        "torch": torch.__version__, "python": sys.version.split()[0], "cores": os.cpu_count(),
        "engine of the CPU": engine_here()[0], "TF32": torch.backends.cuda.matmul.allow_tf32,
    }  # fmt: skip
    if on == "cuda":
        it = torch.cuda.get_device_properties(0)
        ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(ask, capture_output=True, text=True).stdout.split()[:1]
        found |= {"gpu": it.name, "GiB": it.total_memory / 2**30, "driver": driver}
    return found, [str(found)]


def variants() -> Iterator[tuple[str, RunConfig]]:
    """Settings whose first step is compared: each choice alone, and the other families."""
    crossed = (
        "scheme", "norm", "qk_norm", "v_norm", "activation", "optimizer", "positions", "sinks", "tied",
        "rounding", "parametrisation", "attn_gate",
    )  # fmt: skip
    changes: list[dict[str, Any]] = [{it: one.key} for it in crossed for one in CHOICES[it]]
    for change in (*changes, {"dropout": 0.1}, {"zloss": 1e-3}, {"softcap": 5.0}):
        try:
            yield " ".join(f"{k}={v}" for k, v in change.items()), TINY.replace(**change)
        except ConfigError:  # a choice that needs another one
            continue
    tasks = {"rnn": "markov", "lstm": "markov", "vit": "digits", "mlp": "digits", "gnn": "karate"}
    for family, task in tasks.items():
        yield f"family={family}", RunConfig(family=family, task=task).replace(depth=3, steps=2)


def first_step(config: RunConfig, dtype: torch.dtype = torch.float32) -> tuple[float, torch.Tensor]:
    """The loss and all gradients of a run's first step, which has its probes and its update too."""
    device = loop.find_device(config.device)
    torch.set_default_dtype(dtype)
    try:
        model, task = loop.begin(config)
        model.to(device, dtype)
        flat = Flat(model, device)
        engine = Eager(config, model, flat)
        inputs, targets = task.tensors(0, device)
        inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
        (loss, _), grads = engine.step((inputs, targets), True), flat.grads.double().cpu()
        engine.update(config.lr, grads.norm().item(), engine.layers())
        return loss, grads
    finally:
        torch.set_default_dtype(torch.float32)


def first_steps(on: str) -> Found:
    """A first step of each setting beside float64 on the CPU; float32 on the CPU tells what rounding does.

    Too far is a loss off by more than 1e-5, or gradients by more than 1e-3, and by more than 20 times what
    float32 on the CPU is off. With rounding to few bits, where one number on an edge moves all, 1e-2 and 0.1.
    """
    rows, bad = dict[str, dict[str, float]](), []
    for name, config in variants():
        loss, grads = first_step(config.replace(device="cpu"), torch.float64)
        rows[name] = row = {}
        for where, device in (("", on), (", CPU", "cpu")):
            its, own = first_step(config.replace(device=device))
            row[f"loss{where}"] = apart(its, loss)
            row[f"gradients{where}"] = ((own - grads).norm() / grads.norm()).item()
        least = {"loss": 1e-5, "gradients": 1e-3}
        if name.startswith("rounding"):
            least = {"loss": 1e-2, "gradients": 0.1}
        if any(row[it] > max(far, 20 * row[f"{it}, CPU"]) for it, far in least.items()):
            bad.append(name)
    lines = [f"{len(rows)} settings compared, {len(bad)} too far: {bad}"]
    for what in ("loss", "gradients"):
        worst = sorted(rows, key=lambda name: -rows[name][what])[:3]
        lines.append(f"largest {what}: " + ", ".join(f"{it} {rows[it][what]:.1e}" for it in worst))
    return {"rows": rows, "too far": bad}, lines


CAPTURED: tuple[dict[str, Any], ...] = (
    {}, {"scheme": "post"}, {"dropout": 0.1}, {"norm": "powernorm"}, {"norm": "tapernorm"},
    {"norm": "batchnorm"}, {"optimizer": "muon"}, {"optimizer": "sgd", "momentum": 0.9},
    {"parametrisation": "completep"}, {"clip": 0.5}, {"scheme": "hyper"}, {"scheme": "mhc"},
    {"scheme": "denseformer"}, {"scheme": "value_residual"}, {"lr": 10.0}, {"scheme": "branchnorm"},
    {"positions": "rope", "sinks": "on"}, {"tied": "on"}, {"task": "prose_split"},
)  # fmt: skip


def captured_is_eager(on: str) -> Found:
    """Whether the captured step's losses and probes are eager's bit by bit, and eager's the same twice."""
    base, rows = TINY.replace(steps=60 if on == "cuda" else 8, device=on), {}
    for change in CAPTURED:
        config = base.replace(**change)
        three = ("eager", "eager", "captured")
        first, again, captured = (bits(events(config, it, {0, 1, 5, 30, 31, 59})) for it in three)
        rows[str(change)] = {"captured": captured == first, "eager twice": again == first}
    counts = {it: sum(row[it] for row in rows.values()) for it in ("captured", "eager twice")}
    bad = [name for name, row in rows.items() if not all(row.values())]
    return rows, [f"of {len(rows)} settings bit by bit as eager: {counts}; not: {bad}"]


def bits(run: Iterable[Event]) -> list[tuple[bytes, bytes | None]]:
    """The loss and the probes of each step."""
    return [
        (np.float64(it.loss).tobytes(), None if it.layers is None else it.layers.tobytes())
        for it in run
        if isinstance(it, Step)
    ]


def runs(on: str) -> Found:
    """Whole runs beside the CPU's. It says NOT where the first loss is off by more than 1e-5, one of the
    first five by 1e-3, or the mean of the last 20 by 0.03 nats."""
    rows, lines = {}, []
    for size, config in SIZES[on].items():
        eager, captured = (losses(events(config, it)) for it in ("eager", "captured"))
        engine, steps = ("tape", config.steps) if size in ON_TAPE else ("eager", 2)
        torch.set_num_threads(os.cpu_count() or 1)
        cpu = losses(events(config.replace(device="cpu", steps=steps), engine))
        torch.set_num_threads(1)
        off = [apart(x, y) for x, y in zip(eager[:5], cpu[:5], strict=False)]
        ends = [float(it[: len(cpu)][-20:].mean()) for it in (eager, cpu)]
        rows[size] = {
            "steps compared": len(cpu), "first loss": off[0], "first losses": max(off),
            "mean of the last 20": ends, "captured is eager": np.array_equal(eager, captured),
        }  # fmt: skip
        fine = off[0] < 1e-5 and max(off) < 1e-3 and abs(ends[0] - ends[1]) < 0.03
        lines.append(f"{size}: {'as' if fine else 'NOT as'} on the CPU: {rows[size]}")
    return rows, lines


def waits(on: str) -> Found:
    """How often the host waits for the GPU in a step."""
    rows = {}
    for engine in ("eager", "captured") if on == "cuda" else ():
        for record in ((), range(12)):
            run = events(HEROES[on].replace(steps=12), engine, record)
            next(it for it in run if isinstance(it, Step) and it.step == 8)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                next(run)
                torch.cuda.set_sync_debug_mode("default")
            waited = ["called a synchronizing" in str(it.message) for it in said]
            rows[f"{engine}{', probes' if record else ''}"] = sum(waited)
    return rows, [str(rows)]


def kernels(on: str) -> Found:
    """Kernels and copies of a captured step, of one hero and of a map's stack, and their time on the GPU."""
    if on == "cpu":
        return {}, []
    base, rows = HEROES[on].replace(steps=12), {}
    stacks = {
        depth: [base.replace(depth=depth, init_seed=i) for i in range(60)] for depth in (12, 24)
    }
    every = {"hero": (((0, it) for it in events(base, "captured")), 0)}
    every |= {
        f"60 runs of {d} blocks": (together(of, torch.device(on)), 59) for d, of in stacks.items()
    }
    for name, (run, last) in every.items():
        steps = (it for i, it in run if i == last and isinstance(it, Step))
        next(it for it in steps if it.step == 8)
        with profiler() as seen:
            next(steps)
            torch.cuda.synchronize()
        found = [it for it in seen.events() if str(it.device_type).endswith("CUDA")]
        ms = sum(it.device_time for it in found) / 1e3
        rows[name] = {"kernels and copies": len(found), "ms": ms}
    return rows, [str(rows)]


def stack(on: str) -> Found:
    """Runs of a stack beside the same alone, and milliseconds a step of stacks."""
    steps, ms = 12 if on == "cpu" else 40, dict[int, float]()
    base = HEROES[on].replace(steps=steps)
    alone = [base.replace(init_seed=i, lr=base.lr * 2.0 ** (i % 3 - 1)) for i in range(8)]
    alone[1] = alone[1].replace(clip=1.0)
    got = defaultdict[int, list[Event]](list)
    for i, event in together(alone, torch.device(on), coarse(base)):
        got[i].append(event)
    pairs = [(losses(got[i]), losses(events(alone[i], "eager", coarse(base)))) for i in (0, 1, 7)]
    off = max(apart(x, y) for own, its in pairs for x, y in zip(own[:10], its[:10], strict=True))
    for n in (1, 4) if on == "cpu" else (1, 8, 32, 128, 512):
        run = together([base.replace(init_seed=i) for i in range(n)], torch.device(on))
        last = (it for i, it in run if i == n - 1 and isinstance(it, Step))
        ms[n] = 1e3 * statistics.median(np.diff([time.perf_counter() for _ in last])[5:].tolist())
    each = ", ".join(f"{n} runs {x:.2f} ms, {x / n:.3f} a run" for n, x in ms.items())
    lines = [f"first 10 losses within {off:.1e} of the runs alone; a step: {each}"]
    return {"first 10 losses": off, "ms a step of all": ms}, lines


def divergence(on: str) -> Found:
    """Where runs diverge: eager and captured on the device, eager on the CPU."""
    rows = {}
    for change in ({"lr": 10.0}, {"depth": 16, "lr": 0.03}, {"lr": 10.0, "optimizer": "sgd"}):
        config = HEROES[on].replace(**{"scheme": "none", "steps": 100, **change})
        three = [(config, "eager"), (config, "captured"), (config.replace(device="cpu"), "eager")]
        ends = [[str(it) for it in events(*one) if isinstance(it, Diverged)] for one in three]
        rows[str(change)] = ends
    alike = sum(row[0] == row[1] == row[2] for row in rows.values())
    return rows, [f"{alike} of {len(rows)} end alike: {rows}"]


def memory(on: str) -> Found:
    """Out of memory: what is raised, and that the process trains on."""
    if on == "cpu":
        return {}, []
    found = dict[str, Any]()
    for share, config in ((0.005, SIZES[on]["48x512"]), (1.0, HEROES[on])):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(share)
        try:
            said = str(losses(events(config.replace(steps=2), "eager")))
        except Exception as error:
            said = f"{type(error).__name__}, MemoryError {isinstance(error, MemoryError)}: {error}"
        found[f"{share:.1%} of the memory"] = said[:300]
    return found, [str(found)]


def milliseconds(step: Callable[[], object], n: int) -> float:
    """Median of n steps, each waited for."""
    marks = [time.perf_counter()]
    for _ in range(n):
        step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        marks.append(time.perf_counter())
    return 1e3 * statistics.median(np.diff(marks).tolist())


def speed(on: str) -> Found:
    """Milliseconds a step of each engine, and of PyTorch's own encoder: medians of rounds, in which all take
    their turn. A run makes a new batch a step; torch.nn and lean eager reuse one."""
    table, lines = dict[str, dict[str, list[float]]](), []
    for size, config in SIZES[on].items():
        n = max(2, min(20, config.steps // 6))
        ours = ["eager", "eager, probes", "captured", "captured, probes"]
        ours += ["captured, TF32"] * (on == "cuda") + ["tape, one core of the CPU"] * (
            size in ON_TAPE
        )
        steps: dict[str, Callable[[], object]] = {
            "torch.nn": peer_step(encoder(config).to(on), config),
            "lean eager": peer_step(lean(config).to(on), config),
        }
        for name in ours:
            whole = config.replace(steps=8 + ROUNDS * n, device="cpu" if "CPU" in name else on)
            run = events(whole, name.split(",")[0], range(whole.steps) if "probes" in name else ())
            next(run)
            steps[name] = partial(next, run)
        for name, step in steps.items():  # warm up; a captured step keeps the format of its capture
            torch.backends.cuda.matmul.allow_tf32 = "TF32" in name
            milliseconds(step, 2 if "CPU" in name else 8)
        torch.backends.cuda.matmul.allow_tf32 = False
        found = defaultdict[str, list[float]](list)
        for k in range(ROUNDS):
            for name in (*list(steps)[k:], *list(steps)[:k]):
                found[name].append(milliseconds(steps[name], n))
        table[size] = dict(found)
        for name, ms in found.items():
            said = f"{statistics.median(ms):.2f} ms a step ({min(ms):.2f} to {max(ms):.2f})"
            lines.append(f"{size}, {name}: {said}")
    return table, lines


def processes(on: str) -> Found:
    """Runs of several processes at once, forked from a server that has PyTorch, as the supervisor's are."""
    context, rows = get_context("forkserver"), {}
    context.set_forkserver_preload(["normviz.execution.preload"])
    for engine in ("eager", "captured"):
        for n in (1, 2, 4) if on == "cuda" else (1, 2):
            with ProcessPoolExecutor(n, context, _share, (context.Barrier(n),)) as pool:
                rows[f"{engine}, {n}"] = list(pool.map(_process, [(on, engine)] * n))
    return rows, [f"{name}: {row}" for name, row in rows.items()]


def _share(barrier: Any) -> None:
    global begun
    begun = barrier


def _process(what: tuple[str, str]) -> dict[str, float]:
    """Milliseconds a step after all processes have begun, and MiB of the GPU that PyTorch has."""
    torch.set_num_threads(1)
    run = events(HEROES[what[0]].replace(steps=120), what[1])
    next(it for it in run if isinstance(it, Step) and it.step == 20)
    begun.wait(60)
    ms = milliseconds(partial(next, run), 90)
    return {"ms a step": ms, "MiB": torch.cuda.memory_reserved() / 2**20}


def grid(on: str) -> Found:
    """A map's 300 cells: five depths, six rates, ten seeds, a stack a depth; with the layers that a map
    records, and without. And one cell on the CPU."""
    depths, rates, seeds, steps = (
        ((4, 8, 12, 16, 24), 6, 10, 200) if on == "cuda" else ((2, 3), 2, 2, 8)
    )
    base, tables = RunConfig(steps=steps), {}
    for name, record in (("no layers", ()), ("layers as a map", coarse(base))):
        tables[name] = rows = {}
        for depth in depths:
            began = begun = time.perf_counter()
            cells = [
                base.replace(
                    device=on, depth=depth, lr=3e-4 * 3.0**k, init_seed=seed, data_seed=seed
                )
                for k in range(rates)
                for seed in range(seeds)
            ]
            ended = 0
            for i, event in together(cells, torch.device(on), record):
                if i == 0 and isinstance(event, Started):
                    begun = time.perf_counter()
                ended += isinstance(event, Finished)
            seconds = time.perf_counter() - began
            rows[depth] = {"cells": ended, "seconds": seconds, "to begin": begun - began}
    began = time.perf_counter()
    losses(events(base.replace(device="cpu"), "tape"))
    one = time.perf_counter() - began
    lines = [f"one of 12 blocks on one core of the CPU in {one:.2f} s"]
    for name, rows in tables.items():
        whole, ended = (sum(row[it] for row in rows.values()) for it in ("seconds", "cells"))
        lines.append(f"{name}: {ended} cells in {whole:.1f} s: {rows}")
    return {"depths": tables, "one cell on one core": one}, lines


BEGIN = """
import sys, time
began = time.perf_counter()
from normviz import RunConfig, train
from normviz.training.events import Step
config = RunConfig(device=sys.argv[1], depth=int(sys.argv[2]), steps=60)
marks = [time.perf_counter()]
marks += [time.perf_counter() for event in train(config, record=(0, 30)) if isinstance(event, Step)]
last = (marks[-1] - marks[-21]) / 20
print(marks[0] - began, marks[-1] - marks[0] - 60 * last)
"""


def begin(on: str) -> Found:
    """Seconds that a run takes more than its later steps do, in a fresh process: `Speed.begin` of a GPU."""
    depth, rows = str(HEROES[on].depth), list[list[float]]()
    for _ in range(3 if on == "cuda" else 1):
        said = subprocess.run(
            [sys.executable, "-c", BEGIN, on, depth], capture_output=True, text=True, check=True
        ).stdout.split()
        rows.append([float(it) for it in said])
    return rows, [f"imports and beginning of a run, in seconds: {rows}"]


def product(on: str) -> Found:
    """Runs as `normviz.train` makes them by itself: which device and engine, why, and seconds a run."""
    rows, base = {}, HEROES[on]
    sizes = {"hero": base, "hero, long": base.replace(steps=10 * base.steps)}
    if on == "cuda":
        sizes["24x256"] = LARGE.replace(steps=200)
    sizes["z-loss"] = base.replace(zloss=1e-3)
    for name, config in sizes.items():
        for device in (on, "auto"):
            began = time.perf_counter()
            events = list(loop.train(config.replace(device=device)))
            started = next(it for it in events if isinstance(it, Started))
            rows[f"{name}, {device}"] = {
                "seconds": time.perf_counter() - began, "estimated": estimated_seconds(
                    config.replace(device=device)
                ), "device": started.device, "engine": started.engine, "why": started.why,
            }  # fmt: skip
    return rows, [f"{name}: {row}" for name, row in rows.items()]


def fallback(on: str) -> Found:
    """A pass that can't be captured goes on as it is, and the GPU works after it."""
    x = torch.ones(4, device=on)
    replayed = Replayed(torch.device(on), 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [replayed(lambda: x * x.sum().item()).tolist() for _ in range(4)]
    fine = found == [[4.0] * 4] * 4
    after = bits(events(TINY.replace(device=on, steps=8), "captured"))
    fine &= after == bits(events(TINY.replace(device=on, steps=8), "eager"))
    words = [str(it.message) for it in said]
    return {"fine": fine, "said": words}, [f"{'fine' if fine else 'NOT fine'}: {words}"]


def sweep_of_300(on: str) -> Found:
    """A map's cells by `sweep`, as the page and the command line train them, into a store."""
    shape = ((4, 8, 12, 16, 24), 6, 10, 200) if on == "cuda" else ((2, 3), 2, 2, 8)
    depths, rates, seeds, steps = shape
    rows = {}
    for device in ("cuda", "cpu") if on == "cuda" else ("auto",):
        base = RunConfig(steps=steps, device=device)
        axes = {"depth": depths, "lr": [3e-4 * 3.0**k for k in range(rates)]}
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            news = list(sweep(Store(Path(folder)), make(base, axes, seeds)))
            seconds = time.perf_counter() - began
        done = [it.measured for it in news if isinstance(it, Done)]
        kinds = Counter(
            (it.started.device, it.started.engine) if it.started else it.message for it in done
        )
        rows[device] = {"seconds": seconds, "cells": {str(k): n for k, n in kinds.items()}}
    return rows, [f"device={name}: {row}" for name, row in rows.items()]


def norms(on: str) -> Found:
    """Norm cost: ratios to LayerNorm."""
    with tempfile.TemporaryDirectory() as folder:
        *_, made = measure(CostSetting(device=on, seconds=5), Store(Path(folder)))
    rows = {
        f"{it.variant}, {it.context}, {it.passes}": [it.seconds, it.ratio.median]
        for it in made.rows
    }
    return rows, [verdict(made)]


SECTIONS = (
    machine, first_steps, captured_is_eager, fallback, divergence, memory, waits, stack, speed, sweep_of_300,
    runs, norms, product, begin, kernels, processes, grid,
)  # fmt: skip
