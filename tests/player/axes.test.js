import assert from "node:assert/strict";
import test from "node:test";
import { domainTicks, filledChart, lossTicks, spanOf, tickWords, valueDomain } from "../../assets/player/axes.js";

const log = { scale: "log", domain: [1e-4, 10] };

test("a live axis keeps its own range and grows by three decades", () => {
  assert.deepEqual(valueDomain(log, [], true, false), { lo: 1e-4, hi: 10, scale: "log", below: false, above: false, zeros: false, broken: false });
  const grown = valueDomain(log, [[5e-6, 0, NaN, 200]], true, false);
  assert.deepEqual([grown.lo, grown.hi, grown.zeros, grown.broken], [1e-7, 1e4, true, true]);
  assert.equal(valueDomain(log, [[1e-30]], false, false).below, true);
  assert.equal(valueDomain(log, [[7]], false, true).hi, 10);
});

test("ticks are whole decades, and say what lies beyond", () => {
  const axis = { lo: 1e-9, hi: 1e3, scale: "log", below: true, above: false };
  assert.deepEqual(domainTicks(axis), [1e-9, 1e-7, 1e-5, 1e-3, 1e-1, 10, 1e3]);
  assert.match(tickWords(axis), /'≤'/);
  assert.deepEqual(lossTicks([1, 5]), [1, 1.5, 2, 3, 4, 5]);
});

test("a long run's axis is as long as half of what it holds at most, and ends with the run", () => {
  const after = (taken, steps) => spanOf([{ steps, loss: Array(taken) }, { steps: 100, loss: Array(100) }]);
  assert.deepEqual([0, 300, 375, 376, 1500, 1501, 3000].map((taken) => after(taken, 3000)), [375, 375, 375, 750, 1500, 3000, 3000]);
  assert.deepEqual([10, 250].map((taken) => after(taken, 600)), [600, 600]);
});

test("a chart gets what its template marks, whatever a name holds", () => {
  const marks = { ticks: "[7]", loss_ticks: "[8]", tick_label: "@tick@", title: "@title@", steps: "9.5", columns: "10.5",
    columns_of_legend: "@columns@", legend_limit: '"labelLimit": 1', low: "11.5", high: "12.5", labels: ["@a@"], colors: ["@c@"], dashes: ["[13]"] };
  const chart = filledChart('{"x": [9.5, 10.5, 11.5, 12.5], "t": [7], "n": "@a@", "c": "@c@", "d": [13]}', marks,
    { domain: { lo: 0, hi: 4, scale: "linear" }, steps: 300, labels: ["A $& Pre"], styles: [["#fff", [1, 0]]], title: "T" });
  assert.deepEqual(chart, { x: [299.5, 299.5, 0, 4], t: [0, 1, 2, 3, 4], n: "A $& Pre", c: "#fff", d: [1, 0] });
});
