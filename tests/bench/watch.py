"""Cost of a watch: a GPT-2-shaped model of transformers in one loop, alone, under `normviz.watch`, and under
`wandb.watch` in offline mode, in alternating rounds. Each watches at its own default cadence.

Every kind has a model of its own from the same seed. A round is some steps of each kind, one after another;
the order turns from round to round. Ratios are of whole rounds to the round alone: of the time, and of the
time that the training thread had a core, which other work on the machine disturbs less.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
import typer
from transformers import GPT2Config, GPT2LMHeadModel

from normviz.own_model.notebook import Notebook
from normviz.own_model.watch import FIRST, PLAIN, Watch

from .kit import interleaved, median_range, visited

STEPS = 20
"""Steps of a kind in a round."""
WARM = FIRST + PLAIN


class Loop:
    """A training loop of one kind."""

    def __init__(self, kind: str, blocks: int, width: int, tokens: int, batch: int) -> None:
        torch.manual_seed(0)
        self.shape = batch, tokens
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=1024, n_embd=width, n_layer=blocks, n_head=max(1, width // 64),
                n_positions=tokens, bos_token_id=0, eos_token_id=0,
            )
        )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.draws = torch.Generator().manual_seed(1)
        self.log, self.end = _watched(kind, self.model, self.optimizer)

    def steps(self, count: int) -> tuple[float, float]:
        """Seconds of so many steps, and seconds of them that this thread had a core."""
        start, worked = time.perf_counter(), time.thread_time()
        for _ in range(count):
            ids = torch.randint(1024, self.shape, generator=self.draws)
            loss = self.model(input_ids=ids, labels=ids).loss
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.log(loss)
        return time.perf_counter() - start, time.thread_time() - worked


def main(
    rounds: int = 20,
    blocks: int = 6,
    width: int = 256,
    tokens: int = 128,
    batch: int = 4,
    threads: int = 1,
    charts: int = 5,
) -> None:
    """Print ratios of `rounds` rounds, and how soon a notebook has its charts, in `charts` new pages."""
    torch.set_num_threads(threads)
    print(
        f"watch: GPT-2 of {blocks} blocks of width {width}, {tokens} tokens, batch {batch}, AdamW, {threads} "
        f"threads, torch {torch.__version__}; {rounds} alternating rounds of {STEPS} steps after {WARM} steps"
    )
    # wandb writes to a folder that goes, and says nothing.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.environ |= {"WANDB_DIR": folder, "WANDB_SILENT": "true", "WANDB_CACHE_DIR": folder}
        lines = list(_ratios(rounds, blocks, width, tokens, batch))
    print(*lines, first_chart(charts), sep="\n")


def _ratios(rounds: int, *shape: int) -> Iterator[str]:
    kinds = ["alone", "normviz.watch"] + ["wandb.watch"] * bool(find_spec("wandb"))
    loops = {kind: Loop(kind, *shape) for kind in kinds}
    for loop in loops.values():
        loop.steps(1)
    early = {kind: loop.steps(WARM - 1) for kind, loop in loops.items()}
    found = interleaved({k: partial(loop.steps, STEPS) for k, loop in loops.items()}, rounds)
    for kind, loop in loops.items():
        whole, core = (
            [one[i] / alone[i] for one, alone in zip(found[kind], found["alone"], strict=True)]
            for i in (0, 1)
        )
        yield (
            f"  {kind:14} {1e3 * median(one[0] for one in found[kind]) / STEPS:8.1f} ms a step  ratio "
            f"{median_range(whole, 3)}; time on a core {median_range(core, 3)}, "
            f"of the {WARM - 1} steps before {early[kind][1] / early['alone'][1]:.3f}{loop.end()}"
        )
    if "wandb.watch" not in kinds:
        yield "  wandb.watch is not measured: wandb is not installed (pip install wandb)"


SEEN = """() => new Promise((done) => {
  const look = () => document.querySelector(".nv-loss canvas") && document.querySelector(".nv-bars canvas")
    ? requestAnimationFrame(() => done(performance.timeOrigin + performance.now())) : setTimeout(look, 1);
  look();
})"""
"""When the charts of a frame are there, in milliseconds since 1970."""


def first_chart(rounds: int) -> str:
    """Milliseconds from the call of the first `optimizer.step()` to the charts in Chromium, as a notebook
    shows them, in new pages; beside those until Python has written the numbers. What a notebook's server
    takes to hand an output to the browser is not in it."""
    found = []
    with visited() as page:
        page.set_default_timeout(120_000)
        for _ in range(rounds):
            loop = Loop("alone", 2, 64, 32, 2)
            outputs: list[_Output] = []

            def display(
                data: dict[str, str], outputs: list[_Output] = outputs, **_: Any
            ) -> _Output:
                outputs.append(_Output(data["text/html"]))
                return outputs[-1]

            watch = Watch(loop.model, loop.optimizer, to=None)
            watch._displays.append(Notebook(watch, display))
            page.set_content(f"<!doctype html><body>{outputs[0].html}")
            frame = page.frames[1]
            frame.wait_for_function("typeof normvizPlayer !== 'undefined'")
            ids = torch.randint(1024, loop.shape)
            loop.model(input_ids=ids, labels=ids).loss.backward()
            began = 1e3 * time.time()
            loop.optimizer.step()
            watch.flush()  # as the end of a cell, or the next forward pass, does
            written = 1e3 * time.time()
            page.evaluate(outputs[1].html.removeprefix("<script>").removesuffix("</script>"))
            found.append((frame.evaluate(SEEN) - began, written - began))
            watch.close()
    whole, python = zip(*found, strict=True)
    return (
        f"  first charts in Chromium after the first optimizer.step() began, ms: {median_range(whole, 0)} in "
        f"{rounds} new pages; Python's part {median_range(python, 0)}; without what a notebook's server takes"
    )


class _Output:
    """An output of a cell."""

    def __init__(self, html: str) -> None:
        self.html = html

    def update(self, data: dict[str, str], **_: Any) -> None:
        """Replace it."""
        self.html = data["text/html"]


def _watched(
    kind: str, model: Any, optimizer: Any
) -> tuple[Callable[[Any], None], Callable[[], str]]:
    """What logs a loss, and what ends the watch and says what it recorded."""
    if kind == "normviz.watch":
        it = Watch(model, optimizer, to=None)

        def end() -> str:
            it.close()
            steps = it.result.steps
            return f"; {len(steps.layer_steps)} of {len(steps)} steps recorded"

        return (lambda loss: None), end
    if kind == "wandb.watch":
        import wandb

        run = wandb.init(mode="offline", project="normviz-bench")
        run.watch(model, log="all")

        def finish() -> str:
            run.finish()
            return f"; wandb {wandb.__version__}, log=all"

        return (lambda loss: run.log({"loss": loss.item()})), finish
    return (lambda loss: None), (lambda: "")


if __name__ == "__main__":
    typer.run(main)
