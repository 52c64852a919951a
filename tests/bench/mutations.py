"""How many realistic bugs the tests catch: each mutation of the product, tried on a copy of the tree.

    python -m tests.bench.mutations [--only WORD] [--jobs 2] [--tree CHECKOUT] [--out FILE.json]
    python -m tests.bench.mutations --check

A mutation replaces a text that occurs once in one file, and the tests of its package run up to the first
failure. That test then runs on the copy without the mutation: a test that fails there too shows nothing, and
the mutation is tried again without it. Nothing is written to the checkout. Twelve mutations are bugs that a
visitor would see in the page, and are tried with the browser tests as well.

The time is mostly that of the mutations that are missed: they run all of their tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
BROWSER = "tests/browser"


@dataclass(frozen=True)
class Mutation:
    """A bug: `before` occurs once in the file at `path` and becomes `after`; `what` says it in a few words.

    `tests` are the folders and files of its package's tests, with spaces between. `browser` says that a
    visitor would see it in the page.
    """

    name: str
    path: str
    before: str
    after: str
    what: str
    tests: str
    browser: bool = False

    @property
    def package(self) -> str:
        """The package that it is in: the folder under `normviz`, or "app", "player.js" or "deploy"."""
        first, second, *rest = Path(self.path).parts
        if first == "assets":
            return "player.js" if second == "player" else second
        return "app" if first == "app" else second if rest else "normviz"


CATALOG = (
    "tests/catalog tests/model/test_model.py tests/model/test_contracts.py tests/lessons/anatomy"
)
MODEL = (
    "tests/model/test_model.py tests/model/test_contracts.py tests/model/test_equivalences.py "
    "tests/model/test_practice.py tests/training/test_tape.py tests/parity"
)
STREAMS = "tests/model/test_streams.py tests/model/test_model.py tests/model/test_contracts.py tests/parity"
NORMS = "tests/model/test_norms.py tests/model/test_contracts.py tests/parity"
DATA = "tests/model tests/training/test_held_out.py"
SCHEDULE = "tests/training tests/player"
TAPE = "tests/training/test_tape.py tests/training/test_training.py"
STORE = "tests/runs tests/test_hosted.py"
PAGES = "tests/app/test_page.py tests/app/test_page_links.py tests/app/test_page_lanes.py"
HOSTED = "tests/app/test_page_hosted.py tests/app/test_page_private.py tests/app/test_page_hosted_runs.py"
CHARTS = "tests/charts tests/player"
WATCH = "tests/own_model/test_watch_loop.py tests/own_model/test_watch_numbers.py"
SOCKET = "tests/app/test_numbers_socket.py tests/app/test_numbers_socket_limits.py"

MUTATIONS = (
    # catalog
    Mutation(
        "sublayer-number", "normviz/catalog/scheme.py",
        'return 2 * self.block - (self.branch == "attention")',
        'return 2 * self.block - (self.branch == "ffn")',
        "attention and FFN have each other's number", f"{CATALOG} tests/model/test_streams.py",
    ),
    Mutation(
        "peri-without-embedding-norm", "normviz/catalog/schemes/sandwich.py",
        "        embed_norm=True,\n", "",
        "Peri-LN lacks its norm on the embedding", CATALOG,
    ),
    Mutation(
        "lns-by-depth", "normviz/catalog/schemes/scaled_branch.py",
        "input_gain=Gain(p.block**-0.5)", "input_gain=Gain(p.depth**-0.5)",
        "LayerNorm Scaling divides by the depth, not by the block", CATALOG,
    ),
    Mutation(
        "rmsnorm-eps", "normviz/catalog/norms/rms.py",
        '"the mean stays.",\n        1e-6,', '"the mean stays.",\n        1e-5,',
        "default changed: RMSNorm has LayerNorm's eps", f"tests/catalog {NORMS} tests/runs/test_shipped.py",
    ),
    Mutation(
        "placements-unsorted", "normviz/catalog/registry.py",
        "sorted(records, key=lambda record: record.order)", "records",
        "placements and norms come in the order of their files", "tests/catalog tests/runs/test_outcome.py",
    ),
    Mutation(
        "census-counts-all-kinds", "normviz/catalog/models.py",
        "return self.of(LANGUAGE)", "return self.of((*LANGUAGE, *OTHERS))",
        "vision and audio models count as language models",
        "tests/catalog tests/own_model tests/lessons/test_tour.py tests/lessons/choose",
    ),
    # model
    Mutation(
        "outer-norm-dropped", "normviz/model/wire.py",
        "self.after_branch = active(self.dropout, self.norm_out)",
        "self.after_branch = active(self.dropout)",
        "dropped norm after the branch", MODEL,
    ),
    Mutation(
        "ramp-ignored", "normviz/model/gains.py",
        "factor *= self.clock.share / gain.ramp", "factor *= self.clock.share",
        "a gain is full at the end of the run, not of its ramp", f"{MODEL} tests/lessons/anatomy",
    ),
    Mutation(
        "mask-leaks-next-token", "normviz/model/branches.py",
        "HIDDEN).triu(1)", "HIDDEN).triu(2)",
        "off by one: a position sees the token that it has to predict", MODEL,
    ),
    Mutation(
        "rope-sign", "normviz/model/branches.py",
        "torch.cat((a * cos - b * sin, b * cos + a * sin), -1)",
        "torch.cat((a * cos + b * sin, b * cos - a * sin), -1)",
        "RoPE turns the other way", MODEL,
    ),
    Mutation(
        "prmsnorm-without-eps", "normviz/catalog/norms/rms_torch.py",
        "return self.weight * (x / (rms + self.eps))", "return self.weight * (x / rms)",
        "eps dropped: a token of zeros gives NaN", NORMS,
    ),
    Mutation(
        "sinkhorn-axis", "normviz/model/streams/manifold.py",
        "matrix = matrix / matrix.sum(-2, keepdim=True)",
        "matrix = matrix / matrix.sum(-1, keepdim=True)",
        "wrong axis: only rows of the mixing matrix add up to 1", STREAMS,
    ),
    Mutation(
        "lstm-gates", "normviz/model/recurrent.py",
        "i, f, g, o = z.chunk(4, -1)", "i, g, f, o = z.chunk(4, -1)",
        "swapped gates: forget and cell", "tests/model/test_families.py",
    ),
    Mutation(
        "gpt2-depth", "normviz/catalog/inits.py",
        'f"Draw({s} / (2 * L) ** 0.5, normal=True)"', 'f"Draw({s} / L**0.5, normal=True)"',
        "GPT-2's residual matrices start sqrt(2) too large", "tests/model/test_init.py tests/export",
    ),
    Mutation(
        "values-unscaled", "normviz/model/init.py",
        'branch.qkv.weight[2 * d :].mul_(gain(place, "value"))',
        'branch.qkv.weight[2 * d :].mul_(gain(place, "query_key"))',
        "DeepNorm's values start unscaled", f"tests/model/test_init.py {MODEL}",
    ),
    Mutation(
        "batch-of-step-0", "normviz/model/draws.py",
        "counter = np.array([0, 0, step, 0], np.uint64)", "counter = np.array([0, 0, 0, 0], np.uint64)",
        "every step has the same batch and the same dropout", DATA,
    ),
    Mutation(
        "held-out-is-trained", "normviz/model/data.py",
        'return self._make(draws.generator("held out", 0))',
        'return self._make(draws.generator("batch", self.seed))',
        "the held-out batch is the first one that training reads", DATA,
    ),
    Mutation(
        "split-leaks", "normviz/model/data.py",
        "self.codes, self.unread = trained(self.codes), self.codes[len(trained(self.codes)) :]",
        "self.unread = self.codes[len(trained(self.codes)) :]",
        "training reads the held-out tenth of the prose", DATA,
    ),
    Mutation(
        "dropout-unscaled", "normviz/model/branches.py",
        "return mask.astype(np.float32) / np.float32(1.0 - self.p)", "return mask.astype(np.float32)",
        "dropout makes what it keeps no larger", f"{MODEL} tests/training/test_training.py",
    ),
    Mutation(
        "entropy-in-bits", "normviz/model/characters.py",
        "-(p * np.log(p)).sum()", "-(p * np.log2(p)).sum()",
        "wrong unit: chance in bits", DATA,
    ),
    Mutation(
        "text-of-a-stranger", "normviz/policy.py",
        "if text and not self.own_text else None", "if False else None",
        "disabled check: a shared server trains on a text",
        "tests/model/test_texts.py tests/test_hosted.py tests/app/test_page_private.py",
    ),
    # training
    Mutation(
        "warmup-late", "normviz/training/schedule.py",
        "return peak * (step + 1) / config.warmup", "return peak * step / config.warmup",
        "the warm-up is a step late: the first step has rate 0", SCHEDULE,
    ),
    Mutation(
        "share-ahead", "normviz/training/loop.py",
        "model.clock.share = step / max(config.steps, 1)",
        "model.clock.share = (step + 1) / max(config.steps, 1)",
        "gains rise a step early", SCHEDULE,
    ),
    Mutation(
        "edit-unsaid", "normviz/training/loop.py",
        "            yield Edited(config)\n", "",
        "lost event: a change of the rate is not recorded", "tests/training tests/runs/test_recording.py",
    ),
    Mutation(
        "held-out-with-dropout", "normviz/training/eager.py",
        "        self.model.eval()\n        with torch.no_grad():\n            loss =",
        "        with torch.no_grad():\n            loss =",
        "the held-out loss is measured in training mode", "tests/training",
    ),
    Mutation(
        "blow-up-sign", "normviz/training/divergence.py",
        "if sum(self.losses[half:]) < sum(self.losses[:half]):",
        "if sum(self.losses[half:]) > sum(self.losses[:half]):",
        "a loss that grows goes on, and one that recovers has diverged", "tests/training",
    ),
    Mutation(
        "clip-too-far", "normviz/training/eager.py",
        "flat.grads.mul_(config.clip / grad_norm)", "flat.grads.mul_(config.clip)",
        "clipped gradients are multiplied by the limit", "tests/training tests/model/test_practice.py",
    ),
    Mutation(
        "tape-lerp-swapped", "normviz/training/tape/compile.py",
        "= (Function.REST, Function.SIZE), gain.factor", "= (Function.SIZE, Function.REST), gain.factor",
        "the fast engine swaps the shares of skip path and branch", TAPE,
    ),
    Mutation(
        "tape-gradient-overwritten", "normviz/training/tape/arena.py",
        "                flags |= Flag.ADD_WEIGHT\n", "",
        "a gain that two sublayers share has the gradient of one", f"{TAPE} tests/model/test_practice.py",
    ),
    Mutation(
        "browser-value-gain", "normviz/browser/model.py",
        'qkv - 2 * d * d, gain(at, "value"))', 'qkv - 2 * d * d, gain(at, "query_key"))',
        "a page that trains starts DeepNorm's values unscaled", "tests/export/test_browser_model.py",
    ),
    # probes
    Mutation(
        "token-cosine-pairs", "normviz/training/probes/instruments.py",
        "/ (x.shape[2] - 1)", "/ x.shape[2]",
        "off by one: a token is paired with itself", "tests/training/probes",
    ),
    Mutation(
        "blocks-mixed", "normviz/training/probes/instruments.py",
        "tuple(x.view(-1, 2).mean(1) for x in", "tuple(x.view(2, -1).mean(0) for x in",
        "wrong axis of a mean: of blocks, not of attention and FFN", "tests/training/probes",
    ),
    Mutation(
        "gradient-of-both-paths", "normviz/training/probes/recorder.py",
        "            x = x.view_as(x)\n", "",
        "the stream's gradient counts a path twice in Post-LN alone",
        "tests/training/probes tests/model/test_known_facts.py",
    ),
    Mutation(
        "recurrent-step-off", "normviz/training/probes/recurrent.py",
        "for x in states[i][:-1]]", "for x in states[i][1:]]",
        "off by one: a step's gradient with the state after it", "tests/training/probes",
    ),
    # runs
    Mutation(
        "verdict-without-error", "normviz/runs/verdict.py",
        "if max(level + error, final) < chance - near:", "if final < chance - near:",
        "a word is said that the noise may have made", "tests/runs/test_verdict.py tests/player",
    ),
    Mutation(
        "back-at-chance-swapped", "normviz/runs/verdict.py",
        '"back at chance" if _was_below', '"back at chance" if not _was_below',
        "wrong word: at chance and back at chance are swapped", "tests/runs/test_verdict.py tests/player",
    ),
    Mutation(
        "memorised-swapped", "normviz/runs/verdict.py",
        "    elif final < HALF * chance:\n", "    elif final >= HALF * chance:\n",
        "wrong word: memorised and training only are swapped", "tests/runs/test_verdict.py",
    ),
    Mutation(
        "diverged-as-finished", "normviz/runs/recording.py",
        '"diverged" if self._bad else ended, self._bad,', "ended, self._bad,",
        "a diverged run counts as finished", "tests/runs tests/training/test_training.py",
    ),
    Mutation(
        "frames-forget", "normviz/runs/frames.py",
        "steps = fresh if steps is None else fresh.after(steps)", "steps = fresh",
        "charts of a running run lose what was read before", "tests/runs",
    ),
    Mutation(
        "told-apart-without-sign", "normviz/runs/statistics.py",
        "n >= PAIRS and one_sign and not low <= 0 <= high", "n >= PAIRS and not low <= 0 <= high",
        "lanes are told apart though a seed says the opposite",
        "tests/runs tests/studies/maps/test_sweep_summary.py",
    ),
    Mutation(
        "queue-forgets-use", "normviz/runs/store/queue.py",
        "after[whose] = after.get(whose, 0.0) + sum(", "after[whose] = sum(",
        "an address's use of the last minutes does not count", "tests/runs/test_queue.py",
    ),
    Mutation(
        "linked-not-last", "normviz/runs/store/retention.py",
        'ORDER = "ORDER BY linked, id"', 'ORDER = "ORDER BY id"',
        "a run with a copied link is deleted before others", "tests/runs",
    ),
    Mutation(
        "open-runs-deleted", "normviz/runs/store/retention.py",
        " AND NOT {IS_OPEN}", "",
        "a full store deletes runs that train", "tests/runs",
    ),
    Mutation(
        "half-written", "normviz/runs/store/schema.py",
        'db.execute("ROLLBACK")', 'db.execute("COMMIT")',
        "what failed half-way is kept", "tests/runs",
    ),
    Mutation(
        "rate-in-the-past", "normviz/runs/store/__init__.py",
        "step = max((reach for reach, _ in going), default=0)",
        "step = min((reach for reach, _ in going), default=0)",
        "a new rate from a step that a lane has taken", "tests/runs tests/execution/test_runner.py",
    ),
    Mutation(
        "text-unchecked", "normviz/runs/store/queue.py",
        "    demand(refusal(store, configs))\n", "",
        "disabled check: a shared server queues a run on a text", f"{STORE} {HOSTED}",
    ),
    Mutation(
        "private-run-read", "normviz/runs/store/rows.py",
        'if not own_text and getattr(run.config, "text", ""):', "if False:",
        "disabled check: strangers see runs on a text", "tests/test_hosted.py tests/app/test_page_private.py",
    ),
    Mutation(
        "private-run-listed", "normviz/runs/store/query.py",
        "    if not own_text:\n", "    if False:\n",
        "disabled check: strangers read how many runs on a text there are", "tests/app/test_page_private.py",
    ),
    Mutation(
        "anybody-steers", "normviz/policy.py",
        "return not self.is_shared or whose == visitor", "return True",
        "disabled check: strangers stop each other's runs", f"{STORE} {HOSTED}",
    ),
    Mutation(
        "closed-run-closed-again", "normviz/runs/store/rows.py",
        'f"message = ? WHERE id = ? AND {IS_OPEN}"',
        '"message = ? WHERE id = ?"',
        "a late stop turns a finished run into a stopped one", "tests/runs tests/execution",
    ),
    Mutation(
        "held-is-free", "normviz/runs/store/lock_file.py",
        "        return True\n    finally:", "        return False\n    finally:",
        "a lock not seen: a second supervisor is started", "tests/runs tests/execution",
    ),
    Mutation(
        "the-dead-train", "normviz/runs/store/__init__.py",
        "WHERE status = 'running' AND alive(pid) LIMIT 1", "WHERE status = 'running' LIMIT 1",
        "a run whose process is gone holds up a timing", "tests/runs tests/studies/norm_cost",
    ),
    Mutation(
        "cell-archive-order", "normviz/runs/archive.py",
        "np.stack([steps.loss, steps.grad_norm])", "np.stack([steps.grad_norm, steps.loss])",
        "losses and gradients of shipped cells are swapped",
        "tests/runs tests/studies/maps/test_shipped_maps.py",
    ),
    # execution
    Mutation(
        "stop-ignored", "normviz/execution/supervisor.py",
        "{run: self.stopping.get(run, now) for run in self.store.stops()}",
        "{run: now for run in self.store.stops()}",
        "a worker inside a long step is never stopped", "tests/execution",
    ),
    Mutation(
        "step-is-two", "normviz/execution/worker.py",
        "self.paused, self.credits = True, self.credits + 1",
        "self.paused, self.credits = True, self.credits + 2",
        "Step trains two steps", "tests/execution",
    ),
    Mutation(
        "last-steps-lost", "normviz/execution/worker.py",
        "                case Finished():\n                    self.flush()\n",
        "                case Finished():\n",
        "the last steps of a run are not stored", "tests/execution",
    ),
    Mutation(
        "writes-of-a-deleted-text", "normviz/execution/worker.py",
        "if config.text and not texts.is_here(config.text):", "if not config:",
        "what a model writes of a deleted text is kept", "tests/training/test_sample.py",
    ),
    Mutation(
        "sleep-ends-runs", "normviz/execution/housekeeping.py",
        "min(past, 2 * ROUND_SECONDS)", "past",
        "a machine that was asleep ends all watched runs", "tests/execution",
    ),
    Mutation(
        "kills-another-process", "normviz/execution/identity.py",
        "if now is None or now != self.started:", "if now is None:",
        "disabled check: a reused process id is killed", "tests/execution",
    ),
    Mutation(
        "memory-beyond-the-limit", "normviz/execution/budget.py",
        "sum(held) + gib <= self.policy.all_gib", "sum(held) <= self.policy.all_gib",
        "a run begins though its memory is not there", "tests/execution",
    ),
    # duel
    Mutation(
        "outcome-sign", "normviz/runs/outcome.py",
        "compare([b for _, b in losses], [a for a, _ in losses])",
        "compare([a for a, _ in losses], [b for _, b in losses])",
        "wrong sign: the worse lane is said to be better",
        "tests/runs/test_outcome.py tests/app/test_page_outcome.py",
    ),
    Mutation(
        "data-seed-not-moved", "normviz/config.py",
        "data_seed=config.data_seed + k", "data_seed=config.data_seed",
        "a seed not moved: repeats see the same batches",
        "tests/runs/test_outcome.py tests/studies/maps tests/export/test_export_seeds.py",
    ),
    Mutation(
        "preset-rate", "normviz/lessons/presets.py",
        "pre = RunConfig(lr=0.1, steps=150)", "pre = RunConfig(lr=0.01, steps=150)",
        "default changed: the preset of a high rate has a usual one",
        "tests/runs/test_outcome.py tests/runs/test_shipped.py tests/lessons/test_tour.py",
    ),
    Mutation(
        "diverged-compared", "normviz/runs/outcome.py",
        'not math.isfinite(run.final) or run.status == "diverged"', "not math.isfinite(run.final)",
        "a diverged run takes part in a mean", "tests/runs/test_outcome.py",
    ),
    # normviz: config, links, limits, policy, presence, health, formats, home
    Mutation(
        "link-default-moved", "normviz/config.py",
        'axis="100,200,400")] = 200', 'axis="100,200,400")] = 300',
        "copied links mean other settings", "tests/test_links.py tests/test_config.py",
    ),
    Mutation(
        "link-rate-rounded", "normviz/links.py",
        'f"{step}:{lr!r}"', 'f"{step}:{lr:g}"',
        "a link rounds a changed rate, and so opens another run", "tests/test_links.py",
    ),
    Mutation(
        "key-order", "normviz/config.py",
        'return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))',
        'return json.dumps(self.model_dump(mode="json"), separators=(",", ":"))',
        "wrong key order: stored results are not found", "tests/test_config.py tests/runs/test_shipped.py",
    ),
    Mutation(
        "rate-of-0", "normviz/config.py",
        "RATE, SHARE, GAIN = Range(0, 10, above=True)", "RATE, SHARE, GAIN = Range(0, 10)",
        "missing lower limit: a learning rate of 0", "tests/test_config.py tests/test_links.py",
    ),
    Mutation(
        "gib-is-gb", "normviz/config.py",
        "3 * logits(config)) / 2**30", "3 * logits(config)) / 10**9",
        "wrong unit: GB for GiB", "tests/test_config.py tests/test_hosted.py tests/execution/test_budget.py",
    ),
    Mutation(
        "mb-is-mib", "normviz/policy.py",
        "return int(text) * 10**6", "return int(text) * 2**20",
        "wrong unit: MiB for MB", "tests/test_hosted.py tests/runs/test_retention.py",
    ),
    Mutation(
        "closed-pages-watch", "app/session/open_pages.py",
        "name: runs for name, runs in self._pages.items() if self.is_open(name)}",
        "name: runs for name, runs in self._pages.items()}",
        "runs go on for pages that were closed", "tests/test_presence.py tests/execution/test_unwatched.py",
    ),
    Mutation(
        "hanging-is-healthy", "normviz/execution/health.py",
        'self.supervisor in ("alive", "starting")', 'self.supervisor in ("alive", "starting", "silent")',
        "a hanging server is said to be well", "tests/test_health.py",
    ),
    Mutation(
        "seconds-as-ms", "normviz/formats.py",
        'f"{1e3 * seconds:.3g} ms"', 'f"{seconds:.3g} ms"',
        "wrong unit: seconds shown as milliseconds",
        "tests/studies/norm_cost tests/app/test_page_choose_cost.py tests/charts",
    ),
    Mutation(
        "folder-for-all", "normviz/home.py",
        "PRIVATE = 0o700", "PRIVATE = 0o755",
        "other users of the machine read the texts",
        "tests/runs tests/model/test_texts.py tests/app/test_visitor.py",
    ),
    # charts
    Mutation(
        "heatmap-upside-down", "normviz/charts/heatmap.py",
        "return palette_codes[::-1]", "return palette_codes",
        "the first layer is on top", CHARTS,
    ),
    Mutation(
        "ratio-inverted", "normviz/charts/ratio.py",
        "value = above.drawn[both] / below.drawn[at[both]]",
        "value = below.drawn[at[both]] / above.drawn[both]",
        "swapped lanes: B over A", CHARTS,
    ),
    Mutation(
        "loss-axis-swapped", "normviz/charts/loss.py",
        'type="linear" if linear else "log"', 'type="log" if linear else "linear"',
        "the loss has a linear axis where a log one was wanted", CHARTS,
    ),
    Mutation(
        "map-row-is-column", "normviz/charts/map.py",
        '"low": cell.row - 0.5, "high": cell.row + 0.5,',
        '"low": cell.column - 0.5, "high": cell.column + 0.5,',
        "a chart field swapped: cells of a map are in the wrong row",
        "tests/charts tests/studies/maps/test_maps.py",
    ),
    # player (Python)
    Mutation(
        "player-first-layer", "normviz/player/message.py",
        '"first": PROBES[probe].first_layer,', '"first": 0,',
        "the player draws a block's numbers at the layer below", CHARTS, browser=True,
    ),
    Mutation(
        "script-tag-in-json", "normviz/player/page.py",
        'return json.dumps(value).replace("<", "\\\\u003c")', "return json.dumps(value)",
        "escaping removed: a name ends the replay's script", f"{CHARTS} tests/export",
    ),
    # player (JavaScript)
    Mutation(
        "record-before", "assets/player/numbers.js",
        "if (lane.records[middle] <= cursor) low", "if (lane.records[middle] < cursor) low",
        "off by one: layers of the record before the cursor", "tests/player",
    ),
    Mutation(
        "replay-at-the-end", "assets/player/cursor.js",
        "const from = this.step >= this.last ? 0 : this.step;", "const from = this.step;",
        "Replay at the last step does nothing", "tests/player", browser=True,
    ),
    Mutation(
        "cursor-cuts-nothing", "assets/player/draw.js",
        "loss.set({ past: lossAt(this.lanes, at, weight), cursor: rule });",
        "loss.set({ past: lossAt(this.lanes, this.cursor.last, weight), cursor: rule });",
        "the loss is drawn to its end wherever the cursor is", "tests/player", browser=True,
    ),
    Mutation(
        "line-stays-broken", "assets/player/source.js",
        "      setTimeout(open, wait);\n", "",
        "after a lost connection the charts stand still for ever", "tests/player", browser=True,
    ),
    Mutation(
        "charts-do-not-follow", "assets/player/player.js",
        'this.cursor.following = start === "follow" && this.live;', "this.cursor.following = false;",
        "charts do not follow the training", "tests/player", browser=True,
    ),
    Mutation(
        "browser-warmup-late", "assets/player/training.js",
        "return peak * (step + 1) / warmup;", "return peak * step / warmup;",
        "the page that trains is a step late in its warm-up",
        "tests/player tests/export/test_browser_model.py",
    ),
    Mutation(
        "browser-batches", "assets/player/batches.js",
        "numbers[batch * (t + 1) + row]", "numbers[batch * t + row]",
        "off by one: the page that trains draws other batches",
        "tests/player tests/export/test_browser_model.py",
    ),
    Mutation(
        "browser-verdict", "assets/player/verdict.js",
        "if (Math.max(level + error, final) < chance - near) {", "if (final < chance - near) {",
        "the page that trains says what the noise may have made", "tests/player",
    ),
    Mutation(
        "walk-more-for-less", "assets/player/walk.js",
        ": share > 1 ? `", ": share < 1 ? `",
        "wrong word: times less and times more are swapped", "tests/player",
    ),
    Mutation(
        "arrow-backwards", "assets/player/input.js",
        "ArrowRight: () => cursor.pin(cursor.step + leap)",
        "ArrowRight: () => cursor.pin(cursor.step - leap)",
        "wrong sign: the right arrow goes back", "tests/player",
    ),
    Mutation(
        "pause-ignored", "assets/player/live.js",
        "    this.plays = !this.plays;\n", "    this.plays = true;\n",
        "Pause of the page that trains goes on", "tests/player", browser=True,
    ),
    # maps
    Mutation(
        "best-seed-trains", "normviz/studies/maps/summary.py",
        "return median(p.capped for p in seeds) <= trained_below(",
        "return min(p.capped for p in seeds) <= trained_below(",
        "a map's frontier is that of the best seed", "tests/studies/maps tests/lessons/choose",
    ),
    Mutation(
        "limit-of-the-best-seed", "normviz/studies/maps/summary.py",
        "min(limits.values()) or None", "max(limits.values()) or None",
        "an interval without the seed that trains at the lowest rates only", "tests/studies/maps",
    ),
    Mutation(
        "map-link-without-seeds", "normviz/studies/maps/link.py",
        '"up": self.up, "seeds": str(self.grid.seeds)}', '"up": self.up}',
        "a link parameter lost: the seeds of a map", "tests/studies/maps tests/app/test_page_maps.py",
    ),
    Mutation(
        "filling-not-stopped", "normviz/runs/store/cells.py",
        'db.execute("DELETE FROM runs WHERE id = ?", (row["id"],))', "pass",
        "a stop that is ignored: a map fills on",
        "tests/runs/test_cells.py tests/app/test_page_maps.py tests/app/test_page_hosted.py",
    ),
    Mutation(
        "map-of-a-text", "normviz/runs/store/cells.py",
        "store.policy.may_fill(kind, new, _minutes(store, visitor, address))", "None",
        "disabled check: a map of a shared server trains on a text",
        "tests/studies/maps tests/test_hosted.py tests/app/test_page_private.py",
    ),
    # claims
    Mutation(
        "less-is-more", "normviz/studies/claims/rule.py",
        'outcome = "true" if mean.high < equal else "false"',
        'outcome = "true" if mean.high > equal else "false"',
        "wrong sign: claims hold that are contradicted", "tests/studies/claims/test_claims.py",
    ),
    Mutation(
        "holds-swapped", "normviz/studies/claims/rule.py",
        'kind = "holds in part" if "false" in controls else "holds"',
        'kind = "holds" if "false" in controls else "holds in part"',
        "wrong word: holds and holds in part are swapped", "tests/studies/claims/test_claims.py",
    ),
    Mutation(
        "falling-runs-decide", "normviz/studies/claims/rule.py",
        "product(*((numbers[name], fallen[name]) for name in names))",
        "product(*((numbers[name], numbers[name]) for name in names))",
        "disabled check: a run that still fell decides a claim", "tests/studies/claims/test_claims.py",
    ),
    Mutation(
        "rate-chosen-on-the-judge", "normviz/studies/claims/choice.py",
        "_lowest(tried, 1 - np.eye(n))", "_lowest(tried, np.eye(n))",
        "a rate is chosen on the seed that it is judged on", "tests/studies/claims",
    ),
    # choose
    Mutation(
        "gradient-gain-inverted", "normviz/lessons/choose/facts.py",
        "gain = grad[:, 0] / grad[:, -1]", "gain = grad[:, -1] / grad[:, 0]",
        "the gradient is said to vanish where it explodes", "tests/lessons/choose",
    ),
    Mutation(
        "most-failures-win", "normviz/lessons/choose/picks.py",
        'fewest = min(len(candidate.compared("did not train")) for candidate in able)',
        'fewest = max(len(candidate.compared("did not train")) for candidate in able)',
        "without tuning the least robust placement is picked", "tests/lessons/choose",
    ),
    Mutation(
        "noise-is-advice", "normviz/lessons/choose/picks.py",
        "it not in tied and not gaps[it].differs", "it not in tied and False",
        "a difference that the seeds do not tell apart is advice", "tests/lessons/choose",
    ),
    # labs
    Mutation(
        "drift-by-scale", "normviz/studies/labs/drift.py",
        "return both / channels.square().mean().sqrt()", "return both",
        "a norm lowers the drift by its scale alone", "tests/studies/claims/test_experiments.py",
    ),
    Mutation(
        "edge-of-sgd", "normviz/studies/labs/sharpness.py",
        "edge = (2 + 2 * config.beta1) / ((1 - config.beta1) * config.lr)", "edge = 2 / config.lr",
        "Adam is compared with SGD's edge",
        "tests/studies/claims/test_sharpness.py tests/studies/claims/test_labs.py",
    ),
    # norm_cost
    Mutation(
        "interval-of-90", "normviz/studies/norm_cost/result.py",
        "<= (1 - CONFIDENCE) / 2:", "<= 1 - CONFIDENCE:",
        "an interval of 90 % is called one of 95 %", "tests/studies/norm_cost",
    ),
    Mutation(
        "cost-less-is-more", "normviz/studies/norm_cost/findings.py",
        "'less' if less > 0 else 'more'", "'more' if less > 0 else 'less'",
        "wrong word: RMSNorm takes more where it takes less", "tests/studies/norm_cost",
    ),
    Mutation(
        "timed-beside-training", "normviz/studies/norm_cost/measure.py",
        "    while store.is_training():\n", "    while False:\n",
        "disabled check: times are measured beside training", "tests/studies/norm_cost",
    ),
    # export
    Mutation(
        "tokens-of-the-step-before", "normviz/export/tables.py",
        "return (steps.step + 1) * config.batch * config.seq_len",
        "return steps.step * config.batch * config.seq_len",
        "off by one: tokens seen before the step",
        "tests/export/test_export.py tests/export/test_export_seeds.py",
    ),
    Mutation(
        "preview-unescaped", "normviz/export/preview.py",
        'content="{escape(text)}">', 'content="{text}">',
        "escaping removed: the name of a model is HTML", "tests/app/test_first_paint.py tests/export",
    ),
    Mutation(
        "replay-without-repeats", "normviz/player/page.py",
        "recordings=(lane.recording, *begun))", "recordings=(lane.recording,))",
        "a replay lacks the other seeds' curves", "tests/export",
    ),
    Mutation(
        "script-one-rate", "normviz/training/plain.py",
        'learning_rate(step) * group.get("scale", 1.0)', "learning_rate(step)",
        "an exported script of muP moves its matrices too fast", "tests/export/test_script.py",
    ),
    # cli
    Mutation(
        "layers-not-recorded", "normviz/cli/run.py",
        "builder.follow(train(config, also_at=at))", "builder.follow(train(config))",
        "--at prints no layers of later steps", "tests/cli",
    ),
    Mutation(
        "error-exits-0", "normviz/cli/errors.py",
        "raise typer.Exit(2)", "raise typer.Exit(0)",
        "a wrong command line succeeds", "tests/cli",
    ),
    Mutation(
        "failed-cells-exit-0", "normviz/cli/sweep.py",
        "    if ended.failures:\n        raise typer.Exit(1)\n", "",
        "a sweep with failed cells succeeds", "tests/cli tests/studies/maps",
    ),
    # anatomy
    Mutation(
        "gradient-norm-misplaced", "normviz/lessons/anatomy/formula.py",
        'if s.norm_in else "")\n        terms.append(', 'if s.norm_out else "")\n        terms.append(',
        "the gradient's formula has the wrong norm", "tests/lessons/anatomy",
    ),
    Mutation(
        "qkv-norms-counted-twice", "normviz/lessons/anatomy/parameters.py",
        "    for _ in range(3):\n", "    for _ in range(2):\n",
        "the norm of the values is not counted", "tests/lessons/anatomy tests/model/test_parameters.py",
    ),
    Mutation(
        "code-ffn-number", "normviz/lessons/anatomy/code.py",
        'k = "2 * b - 1" if branch == "attention" else "2 * b"',
        'k = "2 * b" if branch == "attention" else "2 * b - 1"',
        "pasted code swaps the numbers of sublayers", "tests/lessons/anatomy tests/export/test_script.py",
    ),
    # by_hand
    Mutation(
        "running-variance-biased", "normviz/lessons/by_hand/formulas.py",
        "variance=start + (1 - start) * unbiased,", "variance=start + (1 - start) * variance,",
        "BatchNorm's running variance is not PyTorch's",
        "tests/lessons/by_hand tests/parity/test_by_hand_keras.py",
    ),
    Mutation(
        "hand-link-without-momentum", "normviz/lessons/by_hand/links.py",
        '"padding", "passes", "momentum")\nWHOLE', '"padding", "passes")\nWHOLE',
        "a link parameter lost: the momentum", "tests/lessons/by_hand tests/app/test_page_by_hand.py",
    ),
    # own_model
    Mutation(
        "own-norm-bias-swapped", "normviz/own_model/norms.py",
        'return "layernorm" if shift else "layernorm_nobias"',
        'return "layernorm_nobias" if shift else "layernorm"',
        "a LayerNorm with a shift is told as one without",
        "tests/own_model/test_own_norms.py tests/own_model/test_own_placement.py",
    ),
    Mutation(
        "moved-branch-unnormed", "normviz/own_model/move.py",
        'f = self._norm(f"{number}_norm_out", f.reshape(skip.shape))', "f = f.reshape(skip.shape)",
        "dropped norm: a moved model lacks the norms after branches", "tests/own_model/test_move.py",
    ),
    Mutation(
        "watch-sums-losses", "normviz/own_model/watch.py",
        "return values.sum(), None", "return values.mean(), None",
        "the loss of micro-batches is summed where it is a mean",
        f"{WATCH} tests/own_model/test_watch_others.py",
    ),
    Mutation(
        "watch-leaves-hooks", "normviz/own_model/hooks.py",
        "            handle.remove()\n        for module", "            pass\n        for module",
        "a closed watch keeps its hooks in the model",
        "tests/own_model/test_watch_loop.py tests/own_model/test_watch_results.py",
    ),
    Mutation(
        "watch-last-micro-batch", "normviz/own_model/instruments.py",
        "self.squares[layer] = self.squares.get(layer, 0.0) + square", "self.squares[layer] = square",
        "the stream's gradient is that of the last micro-batch",
        WATCH,
    ),
    Mutation(
        "watch-counts-thrown-passes", "normviz/own_model/watch.py",
        "            elif instruments.was_thrown():\n                self._thrown(False)\n", "",
        "a step that a GradScaler skipped is taken for a micro-batch of the next one",
        "tests/own_model/test_watch_kinds.py",
    ),
    Mutation(
        "watch-one-optimizer", "normviz/own_model/watch.py",
        "self._owned[optimizer] = count, any(",
        "self._owned[optimizer] = count, optimizer is self.optimizer and any(",
        "the update of a second optimizer is left out, and nothing says so",
        "tests/own_model/test_watch_kinds.py",
    ),
    Mutation(
        "own-embedding-norm-unseen", "normviz/own_model/placement.py",
        "each.embed_norm = _norm_in(each.blocks[0].before)", "each.embed_norm = None",
        "Peri-LN of somebody's model is called Sandwich-LN",
        "tests/own_model/test_own_placement.py tests/cli/test_cli_inspect.py",
    ),
    # tour
    Mutation(
        "right-guess-is-wrong", "normviz/lessons/tour.py",
        "return 0 if post < 1 / EVEN else 1 if post > EVEN else 2",
        "return 1 if post < 1 / EVEN else 0 if post > EVEN else 2",
        "the tour calls the right guess wrong", "tests/lessons/test_tour.py tests/app/test_page_tour.py",
    ),
    Mutation(
        "tour-says-anyway", "normviz/lessons/tour.py",
        " if self.holds(runs) else None", "",
        "disabled check: the tour's text on runs that ended otherwise",
        "tests/lessons/test_tour.py tests/app/test_page_tour.py",
    ),
    # app
    Mutation(
        "unsigned-visitors", "app/session/visitor.py",
        'return signer.unsign(cookies.get(name, "")).decode()',
        'return cookies.get(name, "").rpartition(".")[0] or None',
        "disabled check: a made-up cookie is another visitor",
        "tests/app/test_visitor.py tests/app/test_page_strangers.py",
    ),
    Mutation(
        "last-come-first", "app/session/render_lock.py",
        "address = next(iter(_waiting))", "address = next(reversed(_waiting))",
        "the page that came last is drawn first", "tests/app/test_render_lock.py",
    ),
    Mutation(
        "no-history", "app/views/duel/page.py",
        "            address.add(page_duel.params())\n", "            pass\n",
        "Back leaves the page instead of undoing a choice", PAGES, browser=True,
    ),
    Mutation(
        "others-runs-stopped", "app/session/duel.py",
        "if run in mine and not backend.watchers.others(here, run))", "if run in mine)",
        "who leaves stops a run that another page shows", HOSTED, browser=True,
    ),
    Mutation(
        "old-rate-stays", "app/session/duel.py",
        '            values["lr_edits"] = ()\n', "            pass\n",
        "a new peak rate keeps the changes of an earlier run", PAGES,
    ),
    Mutation(
        "other-sites-read", "app/asgi/numbers_socket.py",
        "    if not _may_come(", "    if False and not _may_come(",
        "disabled check: pages of other sites read the numbers", f"{SOCKET} tests/app/test_hostile_pages.py",
    ),
    Mutation(
        "own-host-suffix", "app/asgi/own_hosts.py",
        'name.endswith((".localhost", *parents))', 'name.endswith(("localhost", *parents))',
        "evil-localhost counts as this machine", "tests/app/test_own_hosts.py",
    ),
    Mutation(
        "first-end-ends-all", "app/asgi/channel.py",
        "live = any(run.is_open for run in every)", "live = all(run.is_open for run in every)",
        "charts stop when the first lane has ended", SOCKET,
    ),
    Mutation(
        "cookie-for-scripts", "app/asgi/visitor_cookie.py",
        "Path=/; HttpOnly; SameSite", "Path=/; SameSite",
        "scripts read the visitor's cookie", "tests/app/test_visitor.py tests/app/test_own_hosts.py",
    ),
    Mutation(
        "failures-public", "app/asgi/health.py",
        '        del census["failures"]\n', "        pass\n",
        "anybody reads the errors of others' runs", "tests/test_health.py",
    ),
    Mutation(
        "switch-ignored", "app/session/training.py",
        "        or chosen(SWITCH) is False\n", "",
        "trains by itself though that was turned off", "tests/app/test_page_by_itself.py",
    ),
    Mutation(
        "old-runs-go-on", "app/views/duel/transport.py",
        "    leave(page_duel, backend, gone)\n    page_duel.extra -= set(gone)\n",
        "    page_duel.extra -= set(gone)\n",
        "Train leaves the runs before going", f"{PAGES} {HOSTED}",
    ),
    Mutation(
        "resume-pauses", "app/views/duel/transport.py",
        '"resume" if paused else "pause",', '"pause",',
        "Resume does not resume", PAGES, browser=True,
    ),
    Mutation(
        "train-never-asks", "app/views/duel/transport.py",
        "    if trained_long(_gone(page_duel, backend), backend):\n", "    if False:\n",
        "disabled check: Train ends a long run without a question", PAGES,
    ),
    Mutation(
        "link-without-view", "app/views/duel/share.py",
        "links.query(page_duel.params())", "links.encode(page_duel.lanes)",
        "a link parameter lost: quantity, chart and step", PAGES, browser=True,
    ),
    Mutation(
        "divergence-is-green", "app/widgets/badge.py",
        '"diverged": "red"', '"diverged": "green"',
        "a diverged run has the colour of success",
        f"{PAGES} tests/app/test_page_outcome.py tests/app/test_page_runs.py",
    ),
    Mutation(
        "private-writing-shown", "normviz/player/message.py",
        "run.writings if not text or texts.is_here(text) else []", "run.writings",
        "what a model writes of a deleted text is shown", "tests/app/test_page_text.py",
    ),
    Mutation(
        "drag-another-cell", "app/views/by_hand/state.py",
        "cells[at.row - 1][at.feature - 1] = round(value, 6)",
        "cells[at.feature - 1][at.row - 1] = round(value, 6)",
        "swapped: the slider moves another cell", "tests/app/test_page_by_hand.py", browser=True,
    ),
    Mutation(
        "end-not-told", "app/widgets/player.py",
        "      changed: (now) => root.tell.changed(now),\n", "",
        "a message not sent: the verdict does not come when training ends",
        "tests/app/test_page.py", browser=True,
    ),
    Mutation(
        "hosts-unguarded", "app/main.py",
        "*([] if allowed.is_shared else [Middleware(OwnHosts)])", "*[]",
        "disabled check: another site's name reaches a server at home",
        "tests/app/test_own_hosts.py tests/app/test_hostile_pages.py",
    ),
    # deploy
    Mutation(
        "forwarded-address-believed", "assets/deploy/nginx.conf",
        "proxy_set_header X-Forwarded-For $remote_addr;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "a visitor chooses the own network address", "tests/test_proxy.py tests/test_deploy.py",
    ),
)  # fmt: skip


# One mutation after another, on a copy.

PLUGIN = """
import os, time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    at = {item: n for n, item in enumerate(items)}
    result = yield
    is_long = lambda item: any(item.get_closest_marker(name) for name in ("slow", "browser"))
    items.sort(key=lambda item: (is_long(item), at[item]))
    return result

def pytest_runtest_logstart(nodeid, location):
    with open(os.environ["RUNNING_TEST"], "w") as file:
        print(nodeid, time.time(), file=file)

def note(report):
    if report.failed:
        with open(os.environ["FAILED_TESTS"], "a") as file:
            print(report.nodeid, file=file)

pytest_runtest_logreport = pytest_collectreport = note
"""
"""A pytest plugin: the short tests first, and it writes down which test runs and which ones fail."""
NAME = "mutations_plugin"
TRIES = 4
"""How often a mutation is tried whose failing tests fail without it too."""
HANGS = 0.25
"""After a timeout it is caught where one test took this share of the time; else the tests are just long."""
CAUGHT, TIMEOUT, MISSED, ERROR = "caught", "caught by the timeout", "MISSED", "ERROR"


@dataclass(frozen=True)
class Ran:
    """What a run of pytest came to: its exit code, None after a timeout, and the ids of failed tests.

    `last` is the last line that it printed; after a timeout, the test that ran then, for `into` seconds.
    """

    code: int | None
    failed: tuple[str, ...]
    last: str
    into: float = 0.0


@dataclass
class Trial:
    """What tests say of a mutation. `also` are tests that fail without it too, and so show nothing."""

    status: str
    test: str = ""
    seconds: float = 0.0
    also: list[str] = field(default_factory=list)

    @property
    def is_caught(self) -> bool:
        """Whether the tests noticed it."""
        return self.status in (CAUGHT, TIMEOUT)

    @property
    def words(self) -> str:
        """In a line: "caught by tests/runs/test_queue.py::test_place, 31 s"."""
        by = f" by {self.test}" if self.status == CAUGHT else f" ({self.test})" if self.test else ""
        also = f"; fails without it too: {', '.join(self.also)}" if self.also else ""
        return f"{self.status}{by}, {self.seconds:.0f} s{also}"


@dataclass(frozen=True)
class Outcome:
    """A mutation, and what its package's tests and the browser tests say; None where they were not tried."""

    mutation: Mutation
    package: Trial
    browser: Trial | None = None

    @property
    def status(self) -> str:
        """That of the package's tests, unless the browser tests alone noticed it."""
        page = self.browser
        alone = page is not None and page.is_caught and not self.package.is_caught
        return page.status if page is not None and alone else self.package.status

    def as_json(self) -> dict[str, object]:
        """All of it as plain values."""
        of = {
            "name": self.mutation.name,
            "package": self.mutation.package,
            "what": self.mutation.what,
        }
        tried = {"tests": asdict(self.package), "browser": self.browser and asdict(self.browser)}
        return {**of, "status": self.status, **tried}


class Copy:
    """A copy of a checkout in a folder of its own, with one mutation at a time."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.folder, self.root, self.written = folder, folder / "tree", 0
        self.process: subprocess.Popen[bytes] | None = None
        self.is_over = False
        listed = _git(tree, "ls-files", "-z").split("\0")
        for name in filter(None, listed):
            if (tree / name).is_file():  # else deleted, and not committed yet
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, self.root / name)
        _git(self.root, "init", "-q")  # some tests ask git for the files
        _git(self.root, "add", "-A")
        library = Path("normviz/native/_tape.so")
        if (tree / library).exists():
            shutil.copy2(tree / library, self.root / library)
        (folder / f"{NAME}.py").write_text(PLUGIN)
        self.environment = {
            **os.environ, "PYTHONPATH": f"{self.root}{os.pathsep}{folder}",
            "NORMVIZ_HOME": str(folder / "home"), "FAILED_TESTS": str(folder / "failed"),
            "RUNNING_TEST": str(folder / "running"),
        }  # fmt: skip
        self.environment.pop("PYTEST_ADDOPTS", None)

    @property
    def imports(self) -> Path:
        """The file of the package that a Python of the copy imports."""
        code = "import normviz; print(normviz.__file__)"
        said = subprocess.run(
            [sys.executable, "-c", code], cwd=self.root, env=self.environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        return Path(said.stdout.strip())

    @contextmanager
    def mutated(self, it: Mutation) -> Iterator[None]:
        """The copy with a mutation. Raises ValueError where its text does not occur exactly once."""
        path, text = self.root / it.path, applied(it, self.root)
        before, at = path.read_bytes(), path.stat().st_mtime_ns
        try:
            path.write_text(text, encoding="utf-8", newline="")
            self._date(path, at)
            yield
        finally:
            path.write_bytes(before)
            self._date(path, at)

    def _date(self, path: Path, at: int) -> None:
        """A time that the file did not have before: compiled modules are told apart by seconds and size."""
        self.written += 1
        os.utime(path, ns=(at, at + self.written * 10**9))

    def pytest(self, words: Sequence[str], seconds: float) -> Ran:
        """Run tests up to the first failure. After so many seconds pytest and what it started is killed."""
        failed, running, said = (self.folder / name for name in ("failed", "running", "output"))
        for old in (failed, running):
            old.unlink(missing_ok=True)
        options = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", NAME)
        command = [
            sys.executable, "-m", "pytest", *options, "--basetemp", str(self.folder / "t"), *words
        ]  # fmt: skip
        with said.open("wb") as output:
            process = self.process = subprocess.Popen(
                command, cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            code: int | None = None
            try:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(0 if self.is_over else seconds)
            finally:
                _kill(process)
        ids = failed.read_text(encoding="utf-8").splitlines() if failed.exists() else []
        if code is None:
            text = running.read_text(encoding="utf-8") if running.exists() else ""
            test, _, since = text.rpartition(" ")
            into = time.time() - float(since) if test else seconds
            return Ran(None, tuple(ids), f"{into:.0f} s into {test or 'the collection'}", into)
        last = said.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        return Ran(code, tuple(ids), last)

    def end(self) -> None:
        """No tests run in it any more."""
        self.is_over = True
        if self.process is not None:
            _kill(self.process)


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group, whatever is left of them."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def applied(it: Mutation, tree: Path) -> str:
    """The text of the mutated file. Raises ValueError where it does not apply, or is no Python then."""
    path = tree / it.path
    if not path.is_file():
        raise ValueError(f"there is no file {it.path}")
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    if (count := text.count(it.before)) != 1:
        raise ValueError(f"its text occurs {count} times in {it.path}")
    mutated = text.replace(it.before, it.after)
    if mutated == text:
        raise ValueError("it changes nothing")
    if path.suffix == ".py":
        try:
            compile(mutated, it.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise ValueError(f"{it.path} is no Python then: {error}") from None
    return mutated


def present(words: Sequence[str], tree: Path) -> list[str]:
    """Those of some tests that a tree has; where it has none, the folder in which the first one would be."""
    found = [word for word in words if (tree / word).exists()]
    folders = [str(Path(word).parent) for word in words]
    return found or [one for one in folders if one != "tests" and (tree / one).is_dir()][:1]


def tried(
    copy: Copy, it: Mutation, words: Sequence[str], seconds: float, broken: dict[str, None]
) -> Trial:
    """Run tests on a copy with a mutation; `broken` are tests that fail without one, by their ids."""
    began, also = time.monotonic(), list[str]()

    def trial(status: str, test: str = "") -> Trial:
        return Trial(status, test, time.monotonic() - began, also)

    tests = present(words, copy.root)
    if not tests:
        return trial(ERROR, "the tree has none of its tests")
    for _ in range(TRIES):
        left_out = [
            f"--deselect={one}" if "::" in one else f"--ignore={one}" for one in list(broken)
        ]
        try:
            with copy.mutated(it):
                ran = copy.pytest([*tests, *left_out], seconds)
        except ValueError as error:
            return trial(ERROR, str(error))
        if ran.code is None:
            if ran.into >= HANGS * seconds:
                return trial(TIMEOUT, ran.last)
            return trial(ERROR, f"the time is over, {ran.last}")
        if ran.code == 0:
            return trial(MISSED)
        if (
            ran.code not in (1, 2) or not ran.failed
        ):  # no tests, wrong words, or an error of pytest's own
            return trial(ERROR, f"exit code {ran.code}: {ran.last}")
        test = ran.failed[0]
        if passes(copy, test, seconds):
            return trial(CAUGHT, test)
        also.append(test)
        broken[test] = None
    return trial(ERROR, "too many tests fail without it")


def passes(copy: Copy, test: str, seconds: float) -> bool:
    """Whether a test passes on a copy without a mutation; of a file that can't be read, whether it can."""
    if "::" not in test:
        return copy.pytest(["--collect-only", test], seconds).code in (0, 5)
    code = copy.pytest([test], seconds).code
    if code == 4 and "[" in test:  # its parameters are made of what was mutated
        code = copy.pytest([test.partition("[")[0]], seconds).code
    return code == 0


# The command.


def check(mutations: Sequence[Mutation], tree: Path) -> int:
    """Print which mutations do not apply to a tree; the number of them."""
    wrong = 0
    for it in mutations:
        try:
            applied(it, tree)
            why = "" if present(it.tests.split(), tree) else "the tree has none of its tests"
        except ValueError as error:
            why = str(error)
        if why:
            wrong += 1
            print(f"{it.name}: {why}")
    seen = sum(it.browser for it in mutations)
    print(
        f"{len(mutations) - wrong} of {len(mutations)} mutations apply to {tree}, {seen} seen in a page"
    )
    return wrong


def table(outcomes: Sequence[Outcome]) -> str:
    """How many mutations of each package were tried, caught (some by the timeout), missed, or not decided."""
    packages = dict.fromkeys(one.mutation.package for one in outcomes)
    rows: list[tuple[str, ...]] = [("package", "tried", "caught", "by timeout", "missed", "error")]
    for name in (*packages, "total"):
        own = [one.status for one in outcomes if name in ("total", one.mutation.package)]
        late, error = own.count(TIMEOUT), own.count(ERROR)
        counts = (len(own), own.count(CAUGHT) + late, late, own.count(MISSED), error)
        rows.append((name, *map(str, counts)))
    lines = [f"{row[0]:12}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows]
    pages = [one.browser for one in outcomes if one.browser is not None]
    if pages:
        noticed = sum(it.is_caught for it in pages)
        lines.append(
            f"The browser tests catch {noticed} of the {len(pages)} that they were tried with."
        )
    return "\n".join(lines)


def main() -> int:
    """Try the mutations; 0 where none was missed and none is undecided."""
    asked = options()
    chosen = [
        it for it in MUTATIONS
        if not asked.only or any(word in f"{it.name} {it.path} {it.package}" for word in asked.only)
    ]  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tree = asked.tree.resolve()
    if asked.check or not chosen:
        return 1 if check(chosen, tree) or not chosen else 0
    outcomes = list[Outcome]()
    broken: dict[str, None] = {}
    with tempfile.TemporaryDirectory(
        prefix="normviz-mutations-", ignore_cleanup_errors=True
    ) as made:
        copies, every = SimpleQueue[Copy](), list[Copy]()
        for n in range(asked.jobs):
            every.append(copy := Copy(tree, Path(made) / str(n)))
            copies.put(copy)
            print(f"copy {n} imports {copy.imports}", flush=True)
            if not copy.imports.is_relative_to(copy.root):
                print("that is another checkout's", file=sys.stderr)
                return 2

        def one(it: Mutation) -> Outcome:
            copy = copies.get()
            try:
                words = asked.tests or it.tests.split()
                found = tried(copy, it, words, asked.timeout, broken)
                page = None
                if it.browser and not asked.tests and asked.browser_timeout:
                    page = tried(copy, it, [BROWSER], asked.browser_timeout, broken)
            finally:
                copies.put(copy)
            print(f"{it.name:28} {it.package:10} {found.words}", flush=True)
            if page is not None:
                print(f"{'':28} {'in the page':10} {page.words}", flush=True)
            return Outcome(it, found, page)

        with ThreadPoolExecutor(asked.jobs) as pool:
            try:
                for outcome in pool.map(one, chosen):
                    outcomes.append(outcome)
                    if asked.out:
                        told = [each.as_json() for each in outcomes]
                        asked.out.write_text(json.dumps(told, indent=1) + "\n")
            except (
                BaseException
            ):  # Ctrl+C and SIGTERM too: what runs has a process group of its own
                pool.shutdown(wait=False, cancel_futures=True)
                for copy in every:
                    copy.end()
                raise
    print(table(outcomes))
    return 0 if all(each.status in (CAUGHT, TIMEOUT) for each in outcomes) else 1


def options() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add(
        "--only",
        action="append",
        metavar="WORD",
        help="those with this in name, path or package; repeat it",
    )
    add(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="so many at once, each on a copy of its own",
    )
    add("--tests", nargs="+", metavar="PATH", help="these tests instead of each package's")
    add("--tree", type=Path, default=ROOT, metavar="CHECKOUT", help="another checkout to mutate")
    add(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="of a run of pytest; a test that hangs counts as caught",
    )
    add(
        "--browser-timeout",
        type=float,
        default=1800.0,
        metavar="SECONDS",
        help="0: no browser tests",
    )
    add("--out", type=Path, metavar="FILE.json", help="where to write the results as they come")
    add("--check", action="store_true", help="only whether each mutation applies")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
