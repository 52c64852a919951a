import assert from "node:assert/strict";
import test from "node:test";
import { cells, paint } from "../../assets/player/heatmap.js";
import { lane } from "./dom.js";

const LOG = { lo: 1e-4, hi: 1e1, scale: "log" };

test("the last layer is on top, time runs right, and steps not run yet are empty", () => {
  const it = lane([1, 1], [0, 1], [[1e-4, 1e1], [1e-4, 1e-2]], { steps: 3 });
  const { rows, columns, codes } = cells(it, LOG);
  assert.deepEqual([rows, columns], [2, 3]);
  assert.deepEqual([...codes], [255, 104, 0, 3, 3, 0]);
});

test("zero, what is not finite and what is off the scale have codes of their own", () => {
  const it = lane([1], [0], [[0, NaN, Infinity, 1e-30, 1e30, -1]]);
  assert.deepEqual([...cells(it, LOG).codes], [2, 255, 3, 1, 1, 2]);
  const linear = { lo: 0, hi: 2, scale: "linear" };
  assert.deepEqual([...cells(lane([1], [0], [[0, 1, 3, -1]]), linear).codes], [3, 255, 129, 3]);
});

test("of a long and deep run no broken cell is lost", () => {
  const values = Array.from({ length: 3000 }, () => Array(600).fill(0.1));
  values[1237][333] = NaN;
  const { rows, columns, codes } = cells(lane(Array(3000).fill(1), [...values.keys()], values), LOG);
  assert.ok(rows <= 256 && columns <= 256);
  assert.equal(codes.filter((code) => code === 1).length, 1);
  assert.ok(!codes.includes(0));
});

test("steps far from a record are empty", () => {
  const it = lane(Array(400).fill(1), [0, 4, 64, 399], [[1], [1], [1], [1]]);
  const { columns, codes } = cells(it, LOG), drawn = [...codes.keys()].filter((c) => codes[c]);
  assert.deepEqual([columns, drawn], [200, [0, 1, 2, 32, 199]]);
});

test("a picture has a pixel a cell, in the palette's colours", () => {
  let image;
  globalThis.ImageData = class { constructor(w, h) { this.data = new Uint8Array(4 * w * h); } };
  const canvas = { getContext: () => ({ putImageData: (it) => { image = it; } }) };
  const palette = Uint8Array.from({ length: 1024 }, (_, i) => i >> 2);
  paint(canvas, lane([1], [0], [[1e-4, 1e1]]), LOG, palette);
  assert.deepEqual([canvas.width, canvas.height, [...image.data]], [1, 2, [255, 255, 255, 255, 3, 3, 3, 3]]);
});
