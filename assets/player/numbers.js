// The numbers of the lanes as they arrive, and what was recorded by a step.

export function newLane(about) {
  return { about, loss: [], records: [], values: [], writings: [], bad: null };
}

export function floats(text) {
  if (text instanceof Float32Array) return text;  // made in this browser
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

// Index of the last record at or before the cursor, -1 where there is none.
export function recordAt(lane, cursor) {
  let low = 0, high = lane.records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.records[middle] <= cursor) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// The first step that a record does not hold for: that of the next record, if it comes within three steps or a
// fortieth of the run, else the next step. The last record holds as long as the one before it.
export function heldUntil({ records, loss, about }, row) {
  const step = records[row], before = records[row - 1] ?? step - 1;
  const next = records[row + 1] ?? Math.min(2 * step - before, Math.max(loss.length, step + 1));
  return next - step <= Math.max(3, Math.ceil(about.steps / 40)) ? next : step + 1;
}

// Number of steps up to the last one that the records hold for.
export function knownSteps(lane) {
  return lane.records.length ? heldUntil(lane, lane.records.length - 1) : 0;
}

// Whether there are steps between the records for which none holds.
export function hasGaps(lane) {
  return lane.records.some((_, row) => heldUntil(lane, row) < lane.records[row + 1]);
}

// A lane whose values are one lane's divided by another's.
export function quotient(over, under) {
  const lane = { ...newLane(over.about), loss: over.loss.slice(0, under.loss.length) };
  over.records.forEach((step, row) => {
    const other = recordAt(under, step);
    if (other < 0 || step >= Math.min(heldUntil(under, other), under.loss.length)) return;
    lane.records.push(step);
    lane.values.push(over.values[row].map((value, k) => value / under.values[other][k]));
  });
  return lane;
}

// A number in three significant digits, as `number` of normviz/formats.py: "1.22", "904", "2.5e-07".
export function digits(value) {
  if (value === undefined || value === null) return "";
  if (!Number.isFinite(value)) return "not finite";
  const text = general(value, 3);
  return text.includes("e+") && Math.abs(value) < 1e6 ? value.toFixed(0) : text;
}

// A loss, as `loss` of normviz/formats.py: "1.60", "0.0031", "904".
export function lossWords(value) {
  return value >= 0.01 && value < 100 ? value.toFixed(2) : digits(value);
}

// A number in so many significant digits, as Python's "g" writes it.
export function general(value, digits) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e"), e = Number(power);
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (e < -4 || e >= digits) return `${trimmed(mantissa)}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
  return trimmed(value.toFixed(Math.max(0, digits - 1 - e)));
}
