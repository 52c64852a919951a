// Axes, and the rows that no cursor changes, of lanes that a browser trains by itself: what normviz/charts
// makes on a server (scale.py, loss.py, heatmap.py, ratio.py). A test compares both. The charts are
// normviz/browser/templates.py's.

import { digits, lossWords } from "./numbers.js";

const REACH_DOWN = 6, REACH_UP = 3, STRIDE = 3, MARGIN = 1.1, MOST_DECADES = 6;
const LEAST = 1e-9, SPIKES = 0.03, ROW_HEIGHT = 16, TOP_ROW = 8, RATE_ROWS = 2;
const LONG = 300, LETTER_WIDTH = 6, SHIFT = 8, NARROWEST = 192, SMALLEST = 214, NAME_LETTERS = 15, HEIGHT = 234;
const TOPS = [10, 100, 1e4, 1e6, 1e9, 1e12], BOTTOMS = [1, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6, LEAST];

const tenTo = (e) => Number(`1e${e}`);

// ------------------------------------------------------------------ axes

// probe: { scale, domain: [low, high] }. rows: arrays of shown values.
export function valueDomain(probe, rows, live, linear) {
  let least = Infinity, lowest = Infinity, most = -Infinity, broken = false, zeros = false, some = false;
  for (const row of rows) {
    for (const value of row) {
      if (!Number.isFinite(value)) { broken = true; continue; }
      some = true;
      if (value > most) most = value;
      if (value < lowest) lowest = value;
      if (value <= 0) zeros = true; else if (value < least) least = value;
    }
  }
  const [low, high] = probe.domain, axis = { lo: low, hi: high, scale: "linear", below: false, above: false, zeros: false, broken };
  if (probe.scale === "linear") {
    if (!some) return axis;
    const quarter = (high - low) / 4;
    const down = Math.max(0, Math.ceil((low - lowest) / quarter)), up = Math.max(0, Math.ceil((most - high) / quarter));
    return { ...axis, lo: low - quarter * down, hi: high + quarter * up };
  }
  if (linear) {
    const top = Math.max(0, some ? most : 0), decade = top > 0 ? tenTo(Math.floor(Math.log10(top))) : 1;
    return { ...axis, lo: 0, hi: [1, 2, 5].map((d) => d * decade).find((d) => d >= top) ?? 10 * decade };
  }
  Object.assign(axis, { scale: "log", zeros });
  if (least === Infinity) return axis;
  const first = Math.round(Math.log10(low)), last = Math.round(Math.log10(high));
  let bottom = Math.floor(Math.log10(least / MARGIN)), top = Math.ceil(Math.log10(most));
  if (live) {
    bottom = first - STRIDE * Math.max(0, Math.ceil((first - bottom) / STRIDE));
    top = last + STRIDE * Math.max(0, Math.ceil((top - last) / STRIDE));
  }
  bottom = Math.min(Math.max(bottom, first - REACH_DOWN), last + REACH_UP - 1);
  top = Math.max(Math.min(top, last + REACH_UP), bottom + 1);
  const lo = tenTo(bottom), hi = tenTo(top);
  return { ...axis, lo, hi, below: least < lo, above: most > hi };
}

// As many decades below 1 as above it, for one lane's values divided by another's.
export function ratioDomain(rows) {
  let most = 0, broken = false;
  for (const row of rows) {
    for (const value of row) {
      if (!Number.isFinite(value)) broken = true;
      else if (value > 0) most = Math.max(most, Math.abs(Math.log10(value)));
    }
  }
  const decades = Math.min(MOST_DECADES, Math.max(1, Math.ceil(most))), beyond = most > decades;
  return { lo: tenTo(-decades), hi: tenTo(decades), scale: "log", below: beyond, above: beyond, zeros: false, broken };
}

export function domainTicks({ lo, hi, scale, below, above }, most = 6) {
  if (scale === "linear") return [0, 1, 2, 3, 4].map((i) => (i === 4 ? hi : lo + (i * (hi - lo)) / 4));
  const first = Math.round(Math.log10(lo)), last = Math.round(Math.log10(hi)), stride = Math.ceil((last - first) / most);
  const exponents = new Set();
  if (above) for (let e = last; e >= first; e -= stride) exponents.add(e);
  else for (let e = first; e <= last; e += stride) exponents.add(e);
  if (below) exponents.add(first);
  return [...exponents].sort((a, b) => a - b).map(tenTo);
}

// The Vega expression that writes a tick.
export function tickWords({ lo, hi, below, above }) {
  const plain = "replace(format(datum.value, '.0e'), '+', '')";
  return (below ? `datum.value < ${lo * 1.01} ? '≤' + ${plain} : ` : "")
    + (above ? `datum.value > ${hi * 0.99} ? '≥' + ${plain} : ` : "") + plain;
}

// [bottom, top] of the loss axis in nats. lanes: { loss, steps, chance, floor, bad }.
export function lossDomain(lanes) {
  const chances = lanes.map((lane) => lane.chance), firstTop = 1.5 * Math.max(...chances);
  const tops = [firstTop, ...TOPS.filter((t) => t > firstTop)];
  const sound = lanes.filter((lane) => !lane.bad), counted = sound.length ? sound : lanes;
  const topOf = ({ loss, steps }) => tops.find((t) => loss.filter((x) => Number.isFinite(x) && x > t).length <= SPIKES * steps) ?? tops.at(-1);
  const floors = lanes.map((lane) => lane.floor).filter((floor) => floor !== null && floor > 0);
  const third = Math.min(...chances) / 3, firstBottom = floors.length ? Math.min(0.8 * Math.min(...floors), third) : third;
  const lowest = Math.min(...lanes.flatMap(({ loss }) => loss.filter(Number.isFinite)), Infinity);
  const bottoms = [firstBottom, ...BOTTOMS.filter((b) => b < firstBottom)];
  return [bottoms.find((b) => b <= lowest) ?? LEAST, Math.max(...counted.map(topOf))];
}

// Steps of the axis; see `span` of loss.py.
export function spanOf(lanes) {
  let steps = Math.max(...lanes.map((lane) => lane.steps));
  const taken = Math.max(...lanes.map(({ loss }) => loss.length));
  for (let half = Math.ceil(steps / 2); half > LONG && half >= taken; half = Math.ceil(steps / 2)) steps = half;
  return steps;
}

export function lossTicks([low, high], most = 7) {
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  let values = [];
  for (const round of [[1, 1.5, 2, 3, 4, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    values = [];
    for (let e = from; e <= to; e++) values.push(...round.map((d) => d * tenTo(e)).filter((x) => low <= x && x <= high));
    if (values.length <= most) return values;
  }
  return values.filter((_, i) => i % Math.ceil(values.length / most) === 0);
}

// ------------------------------------------------------------------ rows that no cursor changes

export function lossSets(lanes, [low, high]) {
  const steps = spanOf(lanes), peaks = peakRows(lanes, steps, high), row = peaks.length + Number(peaks.length > 0);
  const rates = rateRows(lanes, steps, row), used = new Set(rates.map((rate) => rate.row)).size;
  return {
    levels: levelRows(lanes, steps, [low, high]),
    held_out: lanes.flatMap(({ heldOut }, lane) => heldOut.map(([step, loss]) => ({ step, loss, lane }))),
    rates,
    peaks,
    bad: badRows(lanes, steps, [low, high], row + used),
  };
}

function levelRows(lanes, steps, [low, high]) {
  const levels = new Map();
  for (const { chance, floor } of lanes) {
    levels.set(`chance: ${lossWords(chance)}`, [chance, false]);
    if (floor === null) continue;
    const height = HEIGHT * (low > 0 && floor > 0 ? Math.log10(floor / low) / Math.log10(high / low) : (floor - low) / high);
    levels.set(`floor: ${lossWords(floor)}${floor < low ? " (below the axis)" : ""}`, [floor, height >= ROW_HEIGHT]);
  }
  const heads = lanes.filter(({ loss }) => loss.length && loss.length < steps)
    .map(({ loss, name }) => ({ head: loss.length / steps, letters: nameOf(name).length }));
  return [...levels].sort(([a], [b]) => (a < b ? -1 : 1)).map(([text, [loss, under]]) => {
    const named = placed(text, heads, NARROWEST), short = placed(text, heads.map(({ head }) => ({ head, letters: 1 })), SMALLEST);
    return { loss: Math.max(loss, low), text: named.text, under, left: named.left, short: short.text, short_left: short.left };
  });
}

function placed(text, heads, pixels) {
  const width = (LETTER_WIDTH * text.length + SHIFT) / pixels;
  const left = heads.some(({ head, letters }) => head + (LETTER_WIDTH * letters + 2 * SHIFT) / pixels > 1 - width);
  return { text: left && heads.some(({ head }) => head < width) ? "" : text, left };
}

function nameOf(label) {
  return label.trim().replace(/\s+/g, " ").split(", ")[0].split(" (")[0].split(": ")[0].slice(0, NAME_LETTERS);
}

function rateRows(lanes, steps, firstRow) {
  const taken = new Map();
  for (const { short, edits, loss } of lanes) {
    for (const [step, lr] of edits) {
      if (step >= loss.length) continue;
      const key = `${step} ${lr}`;
      if (!taken.has(key)) taken.set(key, { step, lr, who: [] });
      taken.get(key).who.push(short);
    }
  }
  const starts = Array(RATE_ROWS).fill(Infinity);
  return [...taken.values()].sort((a, b) => b.step - a.step || b.lr - a.lr).map(({ step, lr, who }) => {
    const text = who.length === lanes.length ? `rate ${digits(lr)}` : `${who.join(", ")}: rate ${digits(lr)}`;
    const rate = beside(step, step / steps, firstRow), width = (LETTER_WIDTH * text.length + SHIFT) / NARROWEST;
    const left = step / steps - { left: 0, center: 0.5, right: 1 }[rate.side] * width, row = starts.findIndex((start) => left + width <= start);
    if (row < 0) return { ...rate, text: "" };
    starts[row] = left;
    return { ...rate, text, row: rate.row + ROW_HEIGHT * row };
  }).reverse();
}

function peakRows(lanes, steps, top) {
  const peaks = [];
  lanes.forEach(({ loss }, lane) => {
    let peak = -1;
    loss.forEach((value, step) => { if (Number.isFinite(value) && value > top && (peak < 0 || value > loss[peak])) peak = step; });
    if (peak >= 0) peaks.push({ lane, ...beside(peak, peak / steps, 1 + peaks.length), text: `peak ${lossWords(loss[peak])}` });
  });
  return peaks;
}

function badRows(lanes, steps, [low, high], firstRow) {
  return lanes.filter((lane) => lane.bad).map(({ short, bad: { step, layer }, loss }, i) => {
    const last = loss.slice(0, step + 1).filter(Number.isFinite).at(-1) ?? high;
    const where = layer === null ? "" : `, layer ${layer}`;
    return {
      loss: Math.min(Math.max(last, low), high), ...beside(step, step / steps, firstRow + i),
      text: `${short} diverged at step ${step}${where}`,
    };
  });
}

function beside(step, share, row) {
  return { step, row: TOP_ROW + ROW_HEIGHT * row, side: share < 0.36 ? "left" : share > 0.64 ? "right" : "center" };
}

export function heatSets({ bad, depth, steps }) {
  if (!bad) return { bad: [] };
  const { step, layer } = bad;
  return {
    bad: [{
      step, layer: layer ?? depth, text: `diverged: step ${step}${layer === null ? "" : `, layer ${layer}`}`,
      side: step < steps * 0.6 ? "left" : "right",
    }],
  };
}

// ------------------------------------------------------------------ charts

// What a template lacks, put in. Each part of `filled` is by the name of its mark.
export function filledChart(text, marks, { domain, lossDomain: ends, steps, labels, styles, title }) {
  const json = JSON.stringify, [low, high] = ends ?? [domain.lo, domain.hi], per = Math.max(1, Math.ceil(steps / 256));
  const widest = 30 + 6 * Math.max(...labels.map((label) => label.length)), fit = (room, most) => Math.max(1, Math.min(most, Math.floor(room / widest)));
  const long = Math.max(...labels.map((label) => label.length)) >= 24;
  const replacements = [
    [marks.ticks, json(domain ? domainTicks(domain) : [])], [marks.loss_ticks, json(ends?.[0] > 0 ? lossTicks(ends) : [])],
    [marks.tick_label, domain ? json(tickWords(domain)).slice(1, -1) : ""], [marks.title, title ?? ""],
    [marks.steps, json(steps - 0.5)], [marks.columns, json(Math.ceil(steps / per) * per - 0.5)],
    [marks.columns_of_legend, `container_width < 540 ? ${fit(290, 2)} : ${fit(480, 4)}`],
    [marks.legend_limit, `"labelLimit": ${long ? 340 : 170}`],
    [marks.low, json(low)], [marks.high, json(high)],
    ...labels.map((label, i) => [marks.labels[i], label]),
    ...styles.flatMap(([color, dash], i) => [[marks.colors[i], color], [marks.dashes[i], json(dash)]]),
  ];
  return JSON.parse(replacements.reduce((whole, [mark, value]) => whole.replaceAll(mark, () => value), text));
}
