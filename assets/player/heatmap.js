// A heatmap as one small picture, a pixel a cell.

import { heldUntil, recordAt } from "./numbers.js";

// The codes of normviz/charts/palette.py; 0 is empty.
const BROKEN = 1, ZERO = 2, LOWEST = 3, LEVELS = 253;
const MOST_CELLS = 256;

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
  const codes = new Uint8Array(rows * columns);
  for (let c = 0; c < columns; c++) {
    const record = recordAt(lane, Math.min((c + 1) * per, lane.about.steps) - 1);
    if (record < 0 || heldUntil(lane, record) <= c * per) continue;
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
