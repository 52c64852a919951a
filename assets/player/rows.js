// The rows that charts draw at a cursor. The charts (normviz/charts) sort them into marks: what is not
// finite, zero, or off an axis is theirs to show.

import { hasGaps, knownSteps, recordAt } from "./numbers.js";

const POINTS = 300;

// Steps to draw: of each stretch its lowest, its highest, and the first that is not finite or at all.
export function keptSteps(lane) {
  if (lane.kept) return lane.kept;
  const n = lane.loss.length, stretch = Math.ceil((2 * lane.about.span) / POINTS);
  const drawn = new Set();
  if (stretch <= 2) for (let i = 0; i < n; i++) drawn.add(i);
  else {
    for (let start = 0; start < n; start += stretch) {
      let low = -1, high = -1, bad = -1;
      for (let i = start; i < Math.min(n, start + stretch); i++) {
        const v = lane.loss[i];
        if (!Number.isFinite(v)) { if (bad < 0) bad = i; continue; }
        if (low < 0 || v < lane.loss[low]) low = i;
        if (high < 0 || v > lane.loss[high]) high = i;
      }
      for (const i of [low, high, bad < 0 ? start : bad]) if (i >= 0) drawn.add(i);
    }
    if (n) drawn.add(n - 1);
  }
  lane.kept = [...drawn].sort((a, b) => a - b);
  return lane.kept;
}

// The geometric mean of the steps around each, so that a fall stays at its step; one that is n steps away has the weight
// `weight ** n`. Both ends cut the mean off, and so does a step that is not finite or not above 0, which stays as it is.
export function smoothed(loss, weight) {
  const logs = loss.map((value) => (value > 0 && Number.isFinite(value) ? Math.log(value) : NaN));
  const before = decaying(logs, weight), after = decaying([...logs].reverse(), weight).reverse();
  return logs.map((log, i) => {
    if (Number.isNaN(log)) return loss[i];
    return Math.exp((before[i].sum + after[i].sum - log) / (before[i].share + after[i].share - 1));
  });
}

// Sums up to each value, which itself counts once.
function decaying(values, weight) {
  let sum = 0, share = 0;
  return values.map((value) => {
    const goesOn = !Number.isNaN(value);
    sum = goesOn ? weight * sum + value : 0;
    share = goesOn ? weight * share + 1 : 0;
    return { sum, share };
  });
}

// A lane with the trend of its loss in place of it, made once for what there is.
function withTrend(lane, weight) {
  if (!weight) return lane;
  const key = `${weight} ${lane.loss.length}`;
  if (lane.trend?.key !== key) lane.trend = { key, loss: smoothed(lane.loss, weight) };
  return { ...lane, loss: lane.trend.loss, kept: keptSteps(lane) };
}

// The whole curves; the part up to the cursor is drawn over them.
export function wholeLoss(lanes) {
  return lanes.flatMap((lane, i) => keptSteps(lane).map((step) => ({ step, loss: lane.loss[step], lane: i })));
}

export function lossAt(lanes, cursor, weight = 0) {
  return lanes.map((lane) => withTrend(lane, weight)).flatMap((lane, i) => {
    const end = Math.min(cursor, lane.loss.length - 1);
    if (end < 0) return [];
    const steps = keptSteps(lane).filter((step) => step < end).concat(end);
    return steps.map((step) => ({ step, loss: lane.loss[step], lane: i }));
  });
}

// The same settings from other seeds: their curves, and the band they span where all have run.
export function seedSets(repeats, span) {
  const seeds = [], band = [];
  repeats.forEach((curves, lane) => {
    const drawn = curves.map((loss, i) => keptSteps({ loss, about: { span: span[lane] } }));
    drawn.forEach((at, seed) => {
      for (const step of at) seeds.push({ step, loss: curves[seed][step], lane, seed });
    });
    if (curves.length < 2) return;
    const reached = Math.min(...curves.map((loss) => loss.length));
    for (const step of drawn[0]) {
      const values = curves.map((loss) => loss[step]);
      if (step >= reached || !values.every(Number.isFinite)) continue;
      band.push({ step, loss: Math.min(...values), highest: Math.max(...values), lane });
    }
  });
  return { seeds, band };
}

// First, middle and last layer over the steps; `which` counts from the last. Where steps between are missing, what was
// recorded has dots.
export function linesOf(lanes) {
  return lanes.flatMap((lane, i) => {
    const { first, depth } = lane.about, dot = hasGaps(lane);
    return [depth, Math.floor((first + depth) / 2), first].flatMap((layer, which) => (
      lane.records.map((step, row) => ({ step, value: lane.values[row][layer - first], lane: i, which, dot }))));
  });
}

export function barsAt(lanes, cursor) {
  const at = lanes.map((lane) => recordAt(lane, cursor));
  const bars = lanes.flatMap(({ about, values }, lane) => (
    [...values[at[lane]] ?? []].map((value, k) => ({ layer: about.first + k, lane, value, name: about.name }))));
  const text = recordedStep(lanes, cursor);
  return { bars, note: text ? [{ text }] : [] };
}

// "step 38 (A: step 35)": of which step the layers at the cursor are; empty where there are none.
export function recordedStep(lanes, cursor) {
  const steps = lanes.map((lane) => [lane.about.short, lane.records[recordAt(lane, cursor)]]).filter(([, step]) => step >= 0);
  if (!steps.length) return "";
  const last = Math.max(...steps.map(([, step]) => step));
  const earlier = steps.filter(([, step]) => step < last).map(([who, step]) => `${who}: step ${step}`);
  return `step ${last}` + (earlier.length ? ` (${earlier.join(", ")})` : "");
}

// The cursor's rule on a heatmap, and the veil over what was recorded after it.
export function heatAt(lane, cursor) {
  const known = knownSteps(lane);
  return {
    cursor: known ? [{ step: Math.min(cursor, lane.about.steps - 1) }] : [],
    ahead: cursor + 1 < known ? [{ step: cursor + 0.5, end: known - 0.5 }] : [],
  };
}
