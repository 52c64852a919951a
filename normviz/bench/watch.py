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
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from ..own_model.notebook import Notebook
from ..own_model.watch import FIRST, PLAIN, Watch
from .browser import visited

STEPS = 20
"""Steps of a kind in a round."""
WARM = FIRST + PLAIN


class Loop:
    """A training loop of one kind."""

    def __init__(self, kind: str, blocks: int, width: int, tokens: int, batch: int) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

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


def measure(rounds: int, blocks: int, width: int, tokens: int, batch: int, threads: int) -> str:
    """A table of milliseconds a step and ratios: medians, and the range over the rounds."""
    torch.set_num_threads(threads)
    kinds = ["alone", "normviz.watch"] + ["wandb.watch"] * bool(find_spec("wandb"))
    with tempfile.TemporaryDirectory() as folder, _quiet(folder):
        loops = [Loop(kind, blocks, width, tokens, batch) for kind in kinds]
        for loop in loops:
            loop.steps(1)
        early = [loop.steps(WARM - 1) for loop in loops]
        times = np.array([_round(loops, i) for i in range(rounds)])
        said = [loop.end() for loop in loops]
    ratio, worked = (times[..., i] / times[:, :1, i] for i in (0, 1))
    shape = f"{blocks} blocks of width {width}, {tokens} tokens, batch {batch}"
    lines = [
        f"watch: GPT-2 of {shape}, AdamW, {threads} thread{'s' * (threads > 1)}, torch "
        f"{torch.__version__}; {rounds} alternating rounds of {STEPS} steps after {WARM} steps"
    ]
    for i, kind in enumerate(kinds):
        low, middle, high = np.percentile(ratio[:, i], [0, 50, 100])
        least, core, most = np.percentile(worked[:, i], [0, 50, 100])
        lines.append(
            f"  {kind:14} {1e3 * np.median(times[:, i, 0]) / STEPS:8.1f} ms a step  ratio {middle:.3f} "
            f"({low:.3f} to {high:.3f}); time on a core {core:.3f} ({least:.3f} to {most:.3f}), "
            f"of the {WARM - 1} steps before {early[i][1] / early[0][1]:.3f}{said[i]}"
        )
    if "wandb.watch" not in kinds:
        lines.append("  wandb.watch is not measured: wandb is not installed (pip install wandb)")
    return "\n".join(lines)


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
            written = 1e3 * time.time()
            page.evaluate(outputs[1].html.removeprefix("<script>").removesuffix("</script>"))
            found.append((frame.evaluate(SEEN) - began, written - began))
            watch.close()
    whole, python = np.array(found).T
    return (
        f"  first charts in Chromium {np.median(whole):.0f} ms after the first optimizer.step() began "
        f"({whole.min():.0f} to {whole.max():.0f} in {rounds} new pages; Python's part "
        f"{np.median(python):.0f} ms), without what a notebook's server takes"
    )


class _Output:
    """An output of a cell."""

    def __init__(self, html: str) -> None:
        self.html = html

    def update(self, data: dict[str, str], **_: Any) -> None:
        """Replace it."""
        self.html = data["text/html"]


def _round(loops: list[Loop], number: int) -> list[tuple[float, float]]:
    """Seconds of some steps of each kind; the order turns from round to round."""
    seconds = [(0.0, 0.0)] * len(loops)
    order = list(range(len(loops)))
    for i in order[number % len(order) :] + order[: number % len(order)]:
        seconds[i] = loops[i].steps(STEPS)
    return seconds


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
        import wandb  # pyright: ignore (only this bench uses it)

        run = wandb.init(mode="offline", project="normviz-bench")
        run.watch(model, log="all")

        def finish() -> str:
            run.finish()
            return f"; wandb {wandb.__version__}, log=all"

        return (lambda loss: run.log({"loss": loss.item()})), finish
    return (lambda loss: None), (lambda: "")


@contextlib.contextmanager
def _quiet(folder: str) -> Iterator[None]:
    """wandb writes to a folder that goes, and says nothing."""
    os.environ |= {"WANDB_DIR": folder, "WANDB_SILENT": "true", "WANDB_CACHE_DIR": folder}
    with contextlib.redirect_stdout(io.StringIO()):
        yield
