import assert from "node:assert/strict";
import test from "node:test";
import { shownValues } from "../../assets/player/trained.js";

// The messages are compared with the app's in test_trained.py.
test("rounding is 0, a cosine is its distance from 1, and what was not measured is left out", () => {
  const lane = { records: [{ step: 0, layers: { a: [1, 1e-9], c: [1, 0.25], u: null } }, { step: 3, layers: { a: [2, 2], c: [1, 1], u: [5, 5] } }] };
  lane.records.forEach(({ layers }) => { layers.big = [1, 1]; });
  assert.deepEqual(shownValues(lane, { key: "a", shown: "value", rounds_with: "big" }, 1e-6), { steps: [0, 3], rows: [[1, 0], [2, 2]] });
  assert.deepEqual(shownValues(lane, { key: "c", shown: "one_minus" }, 1e-6).rows, [[0, 0.75], [0, 0]]);
  assert.deepEqual(shownValues(lane, { key: "u", shown: "value" }, 1e-6), { steps: [3], rows: [[5, 5]] });
});
