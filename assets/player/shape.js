// Numbers of the lanes to what charts draw at a cursor: the same rules as normviz/charts/*_data.py,
// which a test holds against these.

const EMPTY = 0, BROKEN = 1, ZERO = 2, LOWEST = 3, LEVELS = 253;
const POINTS = 400;
const MOST_CELLS = 256;

export function newLane(about) {
  return { about, loss: [], records: [], values: [], bad: null };
}

function floats(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Adds what came; false where something is missing before it.
export function take(lane, fresh) {
  const [losses, records] = fresh.from;
  if (losses > lane.loss.length || records > lane.records.length) return false;
  lane.loss.length = losses;
  lane.records.length = lane.values.length = records;
  for (const value of floats(fresh.loss)) lane.loss.push(value);
  const values = floats(fresh.values), layers = lane.about.depth + 1 - lane.about.first;
  fresh.records.forEach((step, i) => {
    lane.records.push(step);
    lane.values.push(values.subarray(i * layers, (i + 1) * layers));
  });
  lane.bad = fresh.bad;
  lane.kept = null;
  return true;
}

// Steps to draw: of each stretch its lowest, its highest, and the first that is not finite or at all.
export function keptSteps(lane) {
  if (lane.kept) return lane.kept;
  const n = lane.loss.length, stretch = Math.ceil((2 * lane.about.steps) / POINTS);
  const kept = new Set();
  if (stretch <= 2) for (let i = 0; i < n; i++) kept.add(i);
  else {
    for (let start = 0; start < n; start += stretch) {
      let low = -1, high = -1, bad = -1;
      for (let i = start; i < Math.min(n, start + stretch); i++) {
        const v = lane.loss[i];
        if (!Number.isFinite(v)) { if (bad < 0) bad = i; continue; }
        if (low < 0 || v < lane.loss[low]) low = i;
        if (high < 0 || v > lane.loss[high]) high = i;
      }
      for (const i of [low, high, bad < 0 ? start : bad]) if (i >= 0) kept.add(i);
    }
    if (n) kept.add(n - 1);
  }
  lane.kept = [...kept].sort((a, b) => a - b);
  return lane.kept;
}

// A lane with its loss smoothed, made once for what there is.
function calm(lane, weight) {
  if (!weight) return lane;
  const key = `${weight} ${lane.loss.length}`;
  if (lane.calm?.key !== key) lane.calm = { key, loss: smoothed(lane.loss, weight) };
  return { ...lane, loss: lane.calm.loss, kept: keptSteps(lane) };
}

// The whole curves; the part up to the cursor is drawn over them.
export function wholeLoss(lanes, bottom) {
  return lanes.flatMap((lane, i) => keptSteps(lane).map((step) => lossPoint(lane, i, step, bottom)));
}

const lossPoint = (lane, i, step, bottom) => (
  { step, loss: Math.max(lane.loss[step], bottom), lane: i }
);

export function lossAt(lanes, cursor, bottom, weight = 0) {
  const past = [], heads = [];
  lanes.map((lane) => calm(lane, weight)).forEach((lane, i) => {
    const end = Math.min(cursor, lane.loss.length - 1);
    if (end < 0) return;
    const steps = keptSteps(lane).filter((step) => step < end).concat(end);
    for (const step of steps) past.push(lossPoint(lane, i, step, bottom));
    const head = steps.findLast((step) => Number.isFinite(lane.loss[step]));
    if (head !== undefined) heads.push(lossPoint(lane, i, head, bottom));
  });
  return { past, heads };
}

// Exponential moving average of the logarithm; a step that is not finite begins it anew.
export function smoothed(loss, weight) {
  let sum = 0, share = 0;
  return loss.map((value) => {
    if (!(value > 0) || !Number.isFinite(value)) { sum = share = 0; return value; }
    sum = weight * sum + (1 - weight) * Math.log(value);
    share = weight * share + (1 - weight);
    return Math.exp(sum / share);
  });
}

// The same settings from other seeds: their curves, and the band they span where all have run.
export function seedSets(repeats, steps, bottom) {
  const seeds = [], band = [];
  repeats.forEach((curves, lane) => {
    const kept = curves.map((loss, i) => keptSteps({ loss, about: { steps: steps[lane] } }));
    kept.forEach((at, seed) => {
      for (const step of at) seeds.push({ step, loss: Math.max(curves[seed][step], bottom), lane, seed });
    });
    if (curves.length < 2) return;
    const reached = Math.min(...curves.map((loss) => loss.length));
    for (const step of kept[0]) {
      const values = curves.map((loss) => loss[step]);
      if (step >= reached || !values.every(Number.isFinite)) continue;
      const [low, high] = [Math.min(...values), Math.max(...values)];
      band.push({ step, loss: Math.max(low, bottom), highest: Math.max(high, bottom), lane });
    }
  });
  return { seeds, band };
}

// First, middle and last layer over the steps; `which` counts from the last.
export function linesOf(lanes, domain) {
  const lines = [];
  lanes.forEach((lane, i) => {
    const { first, depth } = lane.about;
    [depth, Math.floor((first + depth) / 2), first].forEach((layer, which) => {
      lane.records.forEach((step, row) => {
        const value = lane.values[row][layer - first];
        if (!Number.isFinite(value) || (domain.scale === "log" && value <= 0)) return;
        lines.push({ step, value: Math.min(Math.max(value, domain.lo), domain.hi), lane: i, which });
      });
    });
  });
  return lines;
}

// A lane whose values are one lane's divided by another's.
export function quotient(over, under) {
  const lane = { ...newLane(over.about), loss: over.loss.slice(0, under.loss.length) };
  over.records.forEach((step, row) => {
    const other = recordAt(under, step);
    if (other < 0 || step >= under.loss.length) return;
    lane.records.push(step);
    lane.values.push(over.values[row].map((value, k) => value / under.values[other][k]));
  });
  return lane;
}

// Index of the last record at or before the cursor, -1 where there is none.
export function recordAt(lane, cursor) {
  let low = 0, high = lane.records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.records[middle] <= cursor) low = middle + 1; else high = middle;
  }
  return low - 1;
}

export function barsAt(lanes, cursor, domain) {
  const sets = { bars: [], zeros: [], below: [], above: [], bad: [], note: [] };
  const at = [];
  lanes.forEach((lane, i) => {
    const row = recordAt(lane, cursor);
    if (row < 0) return;
    at.push([lane.about.short, lane.records[row]]);
    lane.values[row].forEach((value, k) => {
      const place = { layer: lane.about.first + k, lane: i };
      if (!Number.isFinite(value)) return sets.bad.push(place);
      if (domain.scale === "log" && value <= 0) return sets.zeros.push(place);
      if (value < domain.lo) sets.below.push(place);
      if (value > domain.hi) sets.above.push(place);
      const inside = Math.min(Math.max(value, domain.lo), domain.hi);
      sets.bars.push({ ...place, value: inside, name: lane.about.name });
    });
  });
  if (at.length) {
    const last = Math.max(...at.map(([, step]) => step));
    const earlier = at.filter(([, step]) => step < last).map(([who, step]) => `${who}: step ${step}`);
    sets.note.push({ text: `step ${last}` + (earlier.length ? ` (${earlier.join(", ")})` : "") });
  }
  return sets;
}

// Number of steps the records speak for: the last one holds as long as the one before it.
export function knownSteps(lane) {
  const n = lane.records.length;
  if (!n) return 0;
  const gap = n > 1 ? lane.records[n - 1] - lane.records[n - 2] : 1;
  return Math.min(lane.records[n - 1] + gap, Math.max(lane.loss.length, lane.records[n - 1] + 1));
}

// The cursor's rule on a heatmap, and the veil over what was recorded after it.
export function heatAt(lane, cursor) {
  const known = knownSteps(lane);
  return {
    cursor: known ? [{ step: Math.min(cursor, lane.about.steps - 1) }] : [],
    ahead: cursor + 1 < known ? [{ step: cursor + 0.5, end: known - 0.5 }] : [],
  };
}

const grid = (size) => {
  const per = Math.max(1, Math.ceil(size / MOST_CELLS));
  return [Math.ceil(size / per), per];
};

function code(value, domain) {
  if (!Number.isFinite(value)) return BROKEN;
  const log = domain.scale === "log";
  if (log && value <= 0) return ZERO;
  const [v, lo, hi] = log
    ? [Math.log10(value), Math.log10(domain.lo), Math.log10(domain.hi)]
    : [value, domain.lo, domain.hi];
  return LOWEST + Math.round(Math.min(1, Math.max(0, (v - lo) / (hi - lo))) * (LEVELS - 1));
}

// Palette codes row by row, the last layer on top: { rows, columns, codes }.
export function cells(lane, domain) {
  const layers = lane.about.depth + 1 - lane.about.first;
  const [columns, per] = grid(lane.about.steps), [rows, each] = grid(layers);
  const codes = new Uint8Array(rows * columns), known = knownSteps(lane);
  for (let c = 0; c < columns && c * per < known; c++) {
    const record = recordAt(lane, Math.min((c + 1) * per, lane.about.steps) - 1);
    if (record < 0) continue;
    for (let r = 0; r < rows; r++) {
      const top = Math.min((r + 1) * each, layers) - 1;
      codes[(rows - 1 - r) * columns + c] = code(lane.values[record][top], domain);
    }
  }
  lane.values.forEach((values, i) => values.forEach((value, k) => {
    if (Number.isFinite(value)) return;
    const c = Math.floor(lane.records[i] / per), r = Math.floor(k / each);
    codes[(rows - 1 - r) * columns + c] = BROKEN;
  }));
  return { rows, columns, codes };
}

export function paint(canvas, lane, domain, palette) {
  const { rows, columns, codes } = cells(lane, domain);
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  codes.forEach((c, i) => image.data.set(palette.subarray(4 * c, 4 * c + 4), 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
}
