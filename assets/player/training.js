// One run in a browser, step by step: what normviz/training/loop.py, schedule.py and divergence.py do.

import { batchOf, heldOutBatch } from "./batches.js";

const DENSE = 32, MOST_RECORDS = 400, HELD_OUT_STRIDE = 20, MOST_HELD_OUT = 20;
const TIMES_CHANCE = 100, PATIENCE = 20, TIMES_EMBEDDING = 100;

// ------------------------------------------------------------------ the schedule

export function peakAt(settings, step) {
  const edit = settings.edits.findLast(([at]) => at <= step);
  return edit ? edit[1] : settings.lr;
}

export function lrAt(settings, step) {
  const peak = peakAt(settings, step), { warmup, steps, schedule } = settings;
  if (step < warmup) return peak * (step + 1) / warmup;
  if (schedule === "constant") return peak;
  const done = (step - warmup) / Math.max(1, steps - warmup);
  return schedule === "linear" ? peak * (1 - done) : peak * 0.5 * (1 + Math.cos(Math.PI * done));
}

function everySo(steps, from, stride) {
  const chosen = new Set([steps - 1]);
  for (let step = from; step < steps; step += stride) chosen.add(step);
  return chosen;
}

export function recordedSteps(steps) {
  const stride = Math.max(3, Math.ceil((steps - DENSE) / (MOST_RECORDS - DENSE - 1)));
  const chosen = everySo(steps, DENSE, stride);
  for (let step = 0; step < Math.min(DENSE, steps); step++) chosen.add(step);
  return chosen;
}

export function heldOutSteps(steps) {
  const stride = Math.max(HELD_OUT_STRIDE, Math.ceil(steps / MOST_HELD_OUT));
  return everySo(steps, stride - 1, stride);
}

// ------------------------------------------------------------------ divergence

export class DivergenceGuard {
  constructor(tape, chance) {
    Object.assign(this, { tape, chance, began: null, losses: [] });
  }

  // How the run diverged, { step, layer, where }, or null; after a step's backward pass.
  check(step, loss, gradNorm) {
    if (!Number.isFinite(loss) || !Number.isFinite(gradNorm)) return this.notFinite(step, loss);
    if (loss <= TIMES_CHANCE * this.chance) {
      this.began = null;
      return null;
    }
    if (!this.began) {
      this.began = { step, layer: this.outgrown(), where: "blow-up" };
      this.losses = [];
    }
    this.losses.push(loss);
    if (this.losses.length < PATIENCE) return null;
    const half = PATIENCE / 2, sum = (part) => part.reduce((a, b) => a + b, 0);
    if (sum(this.losses.slice(half)) < sum(this.losses.slice(0, half))) {
      this.losses = this.losses.slice(half);
      return null;
    }
    return { ...this.began, layer: this.began.layer ?? this.outgrown() };
  }

  outgrown() {
    const [sizes] = this.tape.stream(), layer = sizes.findIndex((size) => size > TIMES_EMBEDDING * sizes[0]);
    return layer < 0 ? null : layer;
  }

  notFinite(step, loss) {
    const [, , largest] = this.tape.stream(), bad = largest.findIndex((x) => !Number.isFinite(x));
    if (bad >= 0) return { step, layer: bad, where: "activation" };
    if (!Number.isFinite(loss)) return { step, layer: null, where: "loss" };
    const { blocks, all } = this.tape.largestGradients();
    if (Number.isFinite(all)) return { step, layer: blocks.indexOf(Math.max(...blocks)) + 1, where: "gradient norm" };
    return { step, layer: blocks.findLastIndex((x) => !Number.isFinite(x)) + 1, where: "gradient" };
  }
}

// ------------------------------------------------------------------ a run

export class Run {
  // settings: { lr, edits, warmup, schedule, steps, beta1, beta2, weightDecay, clip, dataSeed }.
  constructor(tape, task, settings) {
    Object.assign(this, { tape, task, settings, at: 0, bad: null });
    this.records = recordedSteps(settings.steps);
    this.evaluated = heldOutSteps(settings.steps);
    this.heldOut = heldOutBatch(tape, task);
    this.guard = new DivergenceGuard(tape, task.chance);
  }

  get isOver() {
    return this.bad !== null || this.at >= this.settings.steps;
  }

  // One step: { step, loss, layers, heldOut }, and `bad` where it diverged.
  next() {
    const { tape, settings } = this, step = this.at, watched = this.records.has(step);
    const loss = tape.step(batchOf(tape, this.task, settings.dataSeed, step), step, settings.steps, watched);
    const gradNorm = tape.gradNorm();
    this.bad = this.guard.check(step, loss, gradNorm);
    const layers = watched ? tape.layers() : null;
    let heldOut = null;
    if (!this.bad) {
      const ratios = tape.update({ ...settings, lr: lrAt(settings, step) }, gradNorm, watched);
      if (layers) layers.update_ratio = ratios;
      if (this.heldOut && this.evaluated.has(step)) {
        heldOut = tape.evaluate(this.heldOut);
        if (!Number.isFinite(heldOut)) heldOut = Infinity;
      }
    }
    this.at += 1;
    return { step, loss, gradNorm, layers, heldOut, bad: this.bad };
  }
}
